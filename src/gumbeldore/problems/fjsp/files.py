"""Instances of flexible and general job shops from text files, and back. Readers execute nothing.

`.fjs`: a row with the numbers of jobs and machines (and a third number, which is left alone: machines per operation, on average), then a row
for each job: the number of its operations, and for each of them the number of its machines and as many pairs of a machine and a time.
Copies of the public sets number machines from 1 or from 0. A job shop whose jobs skip or revisit machines has pairs of a machine and a time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.job_shops import UNSUPPORTED, layout
from gumbeldore.io.text import integer, is_number, number, text_format
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.fjsp.known import known_makespan

_LONGEST = 1e9  # an operation; makespans stay exact
_CELLS = 10**8  # jobs x operations x machines


class Pair(NamedTuple):
    """A machine that can do an operation, as the file numbers it, and the time it takes."""

    machine: int
    time: float


Shop = list[list[list[Pair]]]
"""Of each job, of each operation."""


def parse_flexible(text: str, stem: str) -> list[Instance]:
    machines, rows = _rows(text)
    return [_instance([_flexible_job(row, job) for job, row in enumerate(rows, 1)], machines, stem)]


def _parse_general(text: str, stem: str) -> list[Instance]:
    machines, rows = _rows(text)
    return [_instance([_job(row, job) for job, row in enumerate(rows, 1)], machines, stem)]


def _rows(text: str) -> tuple[int, list[list[str]]]:
    """The number of machines, and the row of each job."""
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    while rows and not is_number(rows[0][0]):
        rows.pop(0)  # a title
    if not rows or len(rows[0]) not in (2, 3):
        raise FormatError("The first row must hold the numbers of jobs and machines.")
    jobs, machines = integer(rows[0][0], "The number of jobs"), integer(rows[0][1], "The number of machines")
    if jobs < 1 or machines < 1:
        raise FormatError(f"There must be at least 1 job and 1 machine, got {jobs} and {machines}.")
    if len(rows) != jobs + 1:
        raise FormatError(f"There must be {jobs} rows, one for each job, got {len(rows) - 1}. {UNSUPPORTED}")
    return machines, rows[1:]


def _flexible_job(row: Sequence[str], job: int) -> list[list[Pair]]:
    count, place, found = integer(row[0], f"The number of operations of job {job}"), 1, list[list[Pair]]()
    if not 1 <= count <= len(row):
        raise FormatError(
            f"Job {job} must have at least 1 operation, and a number for each, got {count} in {len(row)} numbers."
        )
    for step in range(1, count + 1):
        if place >= len(row):
            raise FormatError(f"Job {job} has {count} operations, but its row ends before operation {step}.")
        alternatives = integer(row[place], f"The number of machines of operation {step} of job {job}")
        words = row[place + 1 : place + 1 + 2 * max(alternatives, 0)]
        if alternatives < 1 or len(words) < 2 * alternatives:
            raise FormatError(
                f"Operation {step} of job {job} must have at least 1 machine, and a time for each, got {alternatives} and {len(words)} numbers."
            )
        found.append(_pairs(words, f"operation {step} of job {job}"))
        place += 1 + 2 * alternatives
    if place < len(row):
        raise FormatError(f"Job {job} has {len(row) - place} numbers behind its {count} operations. {UNSUPPORTED}")
    return found


def _job(row: Sequence[str], job: int) -> list[list[Pair]]:
    if len(row) % 2:
        raise FormatError(f"Job {job} must have a machine and a time for each operation, got {len(row)} numbers. {UNSUPPORTED}")
    return [[pair] for pair in _pairs(row, f"job {job}")]


def _pairs(words: Sequence[str], where: str) -> list[Pair]:
    return [
        Pair(integer(machine, f"A machine of {where}"), number(time, f"A time of {where}"))
        for machine, time in zip(words[::2], words[1::2], strict=True)
    ]


def _instance(shop: Shop, machines: int, stem: str) -> Instance:
    first, note = _first_machine(shop, machines)
    times = _times(shop, machines, first)
    known = known_makespan(times)
    arrays = {"times": times}
    notes = (note,) if note else ()
    return Instance(arrays, arrays, 1.0, known.name or stem, known=known.cost, known_from=known.source, notes=notes)


def _first_machine(shop: Shop, machines: int) -> tuple[int, str]:
    """Whether the file numbers its machines from 0 or from 1, and what to say about it."""
    used = {pair.machine for job in shop for operation in job for pair in operation}
    if min(used) < 0 or max(used) > machines or (min(used) == 0 and max(used) == machines):
        raise FormatError(
            f"{machines} machines must be numbered 0 .. {machines - 1} or 1 .. {machines}, got {min(used)} .. {max(used)}."
        )
    if min(used) == 0:
        return 0, ""
    sure = max(used) == machines
    return 1, "Machines are numbered from 1 in this file, from 0 in solutions." + (
        ""
        if sure
        else f" (The file uses neither machine 0 nor machine {machines}, so it might number them from 0: that changes names only.)"
    )


def _times(shop: Shop, machines: int, first: int) -> NDArray[np.int64] | NDArray[np.float64]:
    shape = len(shop), max(map(len, shop)), machines
    if np.prod([float(size) for size in shape]) > _CELLS:
        raise FormatError(
            f"{shape[0]} jobs of up to {shape[1]} operations on {shape[2]} machines are too many to be held in memory."
        )
    times = np.full(shape, -1.0)
    for job, operations in enumerate(shop):
        for step, pairs in enumerate(operations):
            for machine, time in pairs:
                where = f"Operation {step + 1} of job {job + 1}"
                if not 0 <= time <= _LONGEST:  # also a NaN
                    raise FormatError(f"{where} takes {time:g}, but times must lie in 0 .. {_LONGEST:g}.")
                if times[job, step, machine - first] >= 0:
                    raise FormatError(f"{where} has two times on machine {machine}.")
                times[job, step, machine - first] = time
    whole = times.astype(np.int64)
    return whole if (whole == times).all() else times


def write_fjs(instance: Arrays) -> str:
    """The text of an .fjs file, with machines from 1, as the original ones."""
    times = instance["times"]
    able = times >= 0
    exists = able.any(2)
    lines = [f"{times.shape[0]} {times.shape[2]} {able.sum() / exists.sum():.6g}"]
    for job, count in enumerate(exists.sum(1).tolist()):
        words = [str(count)]
        for step in range(count):
            here = able[job, step].nonzero()[0].tolist()
            words += [str(len(here)), *(f"{machine + 1} {times[job, step, machine].item()!r}" for machine in here)]
        lines.append(" ".join(words))
    return "\n".join([*lines, ""])


FLEXIBLE = text_format("flexible job shop text", (".fjs", ".txt"), lambda lines: layout(lines) == "flexible", parse_flexible)
GENERAL = text_format("general job shop text", (".jsp", ".jss"), lambda lines: layout(lines) == "general", _parse_general)
