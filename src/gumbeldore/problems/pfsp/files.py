"""Permutation flow shops from text files, and back. Readers execute nothing.

Taillard's layout: the numbers of jobs and machines (then his seed and bounds, if they are there), and a row for each machine; words stand between.
The layout of job shops, in which each job visits machines 0, 1, 2, ..., as the VRF instances have it, is read where a flow shop is asked for:
by itself it is a job shop, which need not have one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.job_shops import FLOW, UNSUPPORTED, layout
from gumbeldore.io.text import integer, is_number, number, text_format
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.pfsp.taillard import SOURCE, recognised

Row = list[str]
_LONGEST = 1e9  # an operation; makespans stay exact


def parse_machines(text: str, stem: str) -> list[Instance]:
    """The instances of a file in Taillard's layout."""
    found, rows = list[Instance](), _rows(text)
    blocks = list[tuple[Row, list[Row]]]()
    for row in rows:
        wanted = integer(blocks[-1][0][1], "The number of machines") if blocks else 0
        if not blocks or len(blocks[-1][1]) >= wanted:
            if not 2 <= len(row) <= 5:
                raise FormatError(f"A row with the numbers of jobs and machines must have 2 to 5 numbers, got {len(row)}.")
            blocks.append((row, []))
        else:
            blocks[-1][1].append(row)
    if not blocks:
        raise FormatError("There must be a row with the numbers of jobs and machines, got no numbers.")
    for place, (header, block) in enumerate(blocks):
        jobs, machines = _sizes(header)
        if len(block) != machines:
            raise FormatError(f"There must be {machines} rows of times, one for each machine, got {len(block)}.")
        table = _table(block, jobs, "machine").T
        bound = float(header[3]) if len(header) == 5 and is_number(header[3]) else None
        found.append(_instance(np.ascontiguousarray(table), stem if len(blocks) == 1 else f"{stem}[{place}]", bound))
    return found


def _parse_jobs(text: str, stem: str) -> list[Instance]:
    """The instance of a file in the layout of job shops."""
    rows = _rows(text)
    if not rows or len(rows[0]) != 2:
        raise FormatError("The first row must hold the numbers of jobs and machines only.")
    jobs, machines = _sizes(rows[0])
    if len(rows) != jobs + 1:
        raise FormatError(f"There must be {jobs} rows, one for each job, got {len(rows) - 1}.")
    for job, row in enumerate(rows[1:], 1):
        route = [integer(word, f"A machine of job {job}") for word in row[::2]]
        if len(row) != 2 * machines or route != list(range(route[0], route[0] + machines)):
            raise FormatError(
                f"Job {job} must visit machines 0 .. {machines - 1} in this order: other job shops are no flow shops."
            )
    return [_instance(_table([row[1::2] for row in rows[1:]], machines, "job"), stem, None)]


def _rows(text: str) -> list[Row]:
    """The rows of numbers; those of words are left out."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    for row in rows:
        words = [word for word in row if not is_number(word)]
        if words and is_number(row[0]):
            raise FormatError(f"There are words between the numbers: {' '.join(row)[:40]!r}. {UNSUPPORTED}")
    return [row for row in rows if is_number(row[0])]


def _sizes(header: Row) -> tuple[int, int]:
    jobs, machines = integer(header[0], "The number of jobs"), integer(header[1], "The number of machines")
    if jobs < 1 or machines < 1:
        raise FormatError(f"There must be at least 1 job and 1 machine, got {jobs} and {machines}.")
    return jobs, machines


def _table(rows: Sequence[Row], width: int, what: str) -> NDArray[np.int64] | NDArray[np.float64]:
    for index, row in enumerate(rows, 1):
        if len(row) != width:
            raise FormatError(f"The row of {what} {index} must have {width} times, got {len(row)}.")
    values = np.array([[number(word, f"A time of {what} {index}") for word in row] for index, row in enumerate(rows, 1)])
    wrong = ~((values >= 0) & (values <= _LONGEST))  # also a NaN
    if wrong.any():
        index, place = np.argwhere(wrong)[0]
        raise FormatError(
            f"Time {place + 1} of {what} {index + 1} is {values[index, place]:g}, but times must lie in 0 .. {_LONGEST:g}."
        )
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values


def _instance(times: NDArray[Any], name: str, bound: float | None) -> Instance:
    arrays = {"times": times}
    if (known := recognised(times)) is not None:
        return Instance(arrays, arrays, 1.0, known.name, known=float(known.best), known_from=f"{SOURCE}, {known.name})")
    usable = bound is not None and 0 < bound < float("inf")
    return Instance(
        arrays, arrays, 1.0, name, known=bound if usable else None, known_from="the file's header" if usable else ""
    )


def write_fsp(instance: Arrays) -> str:
    """The text of a file in Taillard's layout."""
    times = instance["times"]
    rows = [" ".join(repr(time.item()) for time in row) for row in times.T]
    return "\n".join(["number of jobs, number of machines :", f"{times.shape[0]} {times.shape[1]}", f"{FLOW} :", *rows, ""])


def _claims_jobs(lines: list[str]) -> bool:
    """Rows of job shops whose machines count up."""
    rows = [line.split() for line in lines if line.strip()]
    if len(rows) < 2 or len(rows[0]) != 2 or not all(word.isascii() and word.isdigit() for row in rows for word in row[::2]):
        return False
    return all(len(row) % 2 == 0 and [int(word[:9]) for word in row[::2]] == list(range(len(row) // 2)) for row in rows[1:])


FLOW_SHOP = text_format("flow shop text", (".fsp", ".txt"), lambda lines: layout(lines) == "flow", parse_machines)
FLOW_SHOP_BY_JOB = text_format("flow shop as a job shop", (".txt", ".jsp"), _claims_jobs, _parse_jobs)
