"""Instances of the job shop from text files, in the standard (JSPLIB) and in Taillard's layout. Readers execute nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.job_shops import UNSUPPORTED, layout
from gumbeldore.io.text import integer, is_number, number, text_format
from gumbeldore.io.tsplib import is_tsplib
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.jssp.instances import KIND
from gumbeldore.problems.jssp.known import known_makespan

Row = list[str]
_LONGEST = 1e9  # an operation; makespans stay exact
_REFUSED = f"Flexible and recirculating job shops: --problem fjsp. {UNSUPPORTED}"
_NAMED = re.compile(r"\binstance:?\s+(\w+)", re.IGNORECASE)


class Shop(NamedTuple):
    """An instance as a file has it."""

    times: list[Row]
    machines: list[Row]
    first: int | None  # number of the first machine, if the layout says so
    header: Row = []  # noqa: RUF012  # jobs, machines; Taillard's also seeds and bounds


def _parse(text: str, stem: str) -> list[Instance]:
    """The instance of a file, or all of them in one with Taillard's headings."""
    lines = [line.strip() for line in text.splitlines()]
    found = [match[1] for line in lines if not _is_row(line) and (match := _NAMED.search(line))]
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    while rows and not _is_numeric(rows[0]) and not _heading(rows[0]):
        rows.pop(0)  # a title
    shops = _headed(rows) if any(map(_heading, rows)) else [_plain(rows)]
    if len(shops) == 1:
        return [_given(shops[0], found[0] if found else stem, stem)]
    return [_given(shop, f"{stem}[{place}]") for place, shop in enumerate(shops)]


def _headed(rows: list[Row]) -> list[Shop]:
    """Blocks of rows under `Times` and `Machines`, each pair after a row with the numbers of jobs and machines, or without."""
    shops: list[Shop] = []
    header: Row = []
    times: list[Row] = []
    blocks: list[tuple[str, list[Row]]] = [("", [])]
    for row in rows:
        if _is_numeric(row):
            blocks[-1][1].append(row)
        else:
            blocks.append((_heading(row), []))
    for heading, block in blocks:
        if heading == "times":
            times = block
        elif heading == "machines":
            shops.append(Shop(times, block, 1, header))
            header, times = [], []
        elif block:
            if len(block) > 1 or times:
                raise FormatError("Rows of numbers must stand under `Times` or `Machines`.")
            header = block[0]
    if not shops or header or times:
        raise FormatError("`Times` and `Machines` must both be there, in this order.")
    return shops


def _plain(rows: list[Row]) -> Shop:
    """Numbers only: the numbers of jobs and machines, then a row for each job, or Taillard's two blocks."""
    for row in rows:
        if not _is_numeric(row):
            raise FormatError(f"There are words between the numbers: {' '.join(row)[:40]!r}. {UNSUPPORTED}")
    if _is_bare(rows):
        half = len(rows) // 2
        return Shop(rows[:half], rows[half:], 1)
    header, rows = rows[0] if rows else [], rows[1:]
    if len(header) < 2 or not rows:
        raise FormatError("The first row must hold the numbers of jobs and machines, and a row for each job must follow.")
    count = integer(header[1], "The number of machines")
    if len(rows[0]) == count:
        half = len(rows) // 2
        return Shop(rows[:half], rows[half:], 1, header)
    if len(header) != 2:
        raise FormatError(
            f"The first row must hold the numbers of jobs and machines only, got {len(header)} numbers. {_REFUSED}"
        )
    for job, row in enumerate(rows, 1):
        if len(row) != 2 * count:
            raise FormatError(
                f"Job {job} must have {2 * count} numbers, a machine and a time for each of {count} machines, got {len(row)}. {_REFUSED}"
            )
    return Shop([row[1::2] for row in rows], [row[::2] for row in rows], None, header)


def _is_bare(rows: list[Row]) -> bool:
    """Whether there are Taillard's two blocks and nothing else: the second half are orders of the machines 1 .. M."""
    half, width = divmod(len(rows), 2)[0], len(rows[0]) if rows else 0
    orders = rows[half:]
    return (
        width > 2
        and len(rows) == 2 * half
        and all(len(row) == width for row in rows)
        and all(sorted(row) == sorted(map(str, range(1, width + 1))) for row in orders)
    )


def _given(shop: Shop, name: str, stem: str = "") -> Instance:
    times, machines, notes = _arrays(shop)
    arrays = {"times": times, "machines": machines}
    unit, scale = KIND.unit(arrays)
    known = known_makespan(times, machines, shop.header, name, stem)
    return Instance(
        arrays, unit, scale, known.name or name, known=known.cost, known_from=known.source, notes=(*notes, *known.notes)
    )


def _arrays(shop: Shop) -> tuple[NDArray[np.int64] | NDArray[np.float64], NDArray[np.int64], tuple[str, ...]]:
    """Times and machines (from 0), checked."""
    jobs, count = len(shop.times), len(shop.times[0]) if shop.times else 0
    if shop.header:
        if len(shop.header) < 2:
            raise FormatError("The row before `Times` must hold the numbers of jobs and machines, got one number.")
        jobs, count = integer(shop.header[0], "The number of jobs"), integer(shop.header[1], "The number of machines")
    for what, rows in (("times", shop.times), ("machines", shop.machines)):
        if len(rows) != jobs or not jobs:
            raise FormatError(f"There must be {max(jobs, 1)} rows of {what}, one for each job, got {len(rows)}.")
        for job, row in enumerate(rows, 1):
            if len(row) != count or not count:
                raise FormatError(
                    f"Job {job} must have {max(count, 1)} {what}, one for each machine, got {len(row)}. {_REFUSED}"
                )
    routes = np.array([[integer(word, f"A machine of job {job}") for word in row] for job, row in enumerate(shop.machines, 1)])
    first = shop.first if shop.first is not None else int(routes.min() == 1 and routes.max() == count)
    _check_routes(routes, first)
    notes = () if first == shop.first or not first else ("Machines are numbered from 1 in this file, from 0 in solutions.",)
    return _times(shop.times), routes - first, notes


def _check_routes(routes: NDArray[np.int64], first: int) -> None:
    machines = set(range(first, first + routes.shape[1]))
    for job, route in enumerate(routes.tolist(), 1):
        if outside := set(route) - machines:
            raise FormatError(f"Job {job} visits machine {min(outside)}, but machines are numbered {first} .. {max(machines)}.")
        if missing := machines - set(route):
            twice = next(machine for machine in route if route.count(machine) > 1)
            raise FormatError(f"Job {job} visits machine {twice} more than once and machine {min(missing)} never. {_REFUSED}")


def _times(rows: Sequence[Row]) -> NDArray[np.int64] | NDArray[np.float64]:
    values = np.array([[number(word, f"A time of job {job}") for word in row] for job, row in enumerate(rows, 1)])
    wrong = ~((values >= 0) & (values <= _LONGEST))  # also a NaN
    if wrong.any():
        job, operation = np.argwhere(wrong)[0]
        raise FormatError(
            f"Operation {operation + 1} of job {job + 1} takes {values[job, operation]:g}, but times must lie in 0 .. {_LONGEST:g}."
        )
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values


def _is_numeric(row: Row) -> bool:
    return all(map(is_number, row))


def _is_row(line: str) -> bool:
    return bool(line) and _is_numeric(line.split())


def _heading(row: Row) -> str:
    """What the block below a line of words holds, by Taillard's headings; empty for anything else."""
    word = row[0].lower().rstrip(":")
    return {"times": "times", "machines": "machines", "nb": "header"}.get(word, "")


def _claims(lines: list[str]) -> bool:
    """A first row of two counts and a row that fits them, or Taillard's headings; no flexible or recirculating job shop."""
    if layout(lines) != "other":
        return False
    rows = [line.split() for line in map(str.strip, lines) if line and not line.startswith("#")]
    if any(_heading(row) in ("times", "header") for row in rows):
        return True
    numeric = [row for row in rows if _is_numeric(row)]
    if is_tsplib(lines) or len(numeric) < 2 or not all(word.isdigit() for word in numeric[0][:2]):
        return False
    width = len(numeric[1])
    return width > 2 or (len(numeric[0]) == 2 and numeric[0][1] == "1" and len(numeric) == 1 + int(numeric[0][0]))


JOB_SHOP = text_format("job shop text", (".jsp", ".jss", ".jssp", ".txt"), _claims, _parse)
