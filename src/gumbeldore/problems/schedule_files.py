"""Schedules as text and as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from gumbeldore.errors import FormatError
from gumbeldore.io.text import integer, number
from gumbeldore.kits.kit import Export, Instance

_COLUMNS = ("job", "operation", "machine", "start", "end")


class Slot(NamedTuple):
    """When an operation runs, and where; all numbers from 0."""

    start: float
    end: float
    machine: int
    job: int
    operation: int


Build = Callable[[Instance, Sequence[int]], Sequence[Slot]]


def schedule_exports(build: Build, read: Callable[[Instance, list[Slot]], list[int]]) -> dict[str, Export]:
    """For a problem that builds a schedule from actions, and reads actions from the rows of one."""
    text, table = (partial(write, build) for write in (_write_text, _write_csv))
    return {"schedule": Export(".schedule.txt", text), "csv": Export(".schedule.csv", table, partial(_read, read))}


def _write_text(build: Build, given: Instance, actions: Sequence[int]) -> str:
    """For people: the makespan, and what each machine does when."""
    slots = build(given, actions)
    lines = [
        f"# {given.name or 'schedule'}",
        f"# makespan {max(i.end for i in slots):g}",
        "# job.operation[start, end), all from 0",
    ]
    for machine in range(1 + max(i.machine for i in slots)):
        here = sorted((i for i in slots if i.machine == machine), key=lambda i: (i.start, i.end))
        lines.append(f"machine {machine}: " + " ".join(f"{i.job}.{i.operation}[{i.start:.15g}, {i.end:.15g})" for i in here))
    return "\n".join([*lines, ""])


def _write_csv(build: Build, given: Instance, actions: Sequence[int]) -> str:
    """For programs: a row for each operation, in the order of the jobs."""
    ordered = sorted(build(given, actions), key=lambda i: (i.job, i.operation))
    rows = (f"{i.job},{i.operation},{i.machine},{i.start!r},{i.end!r}" for i in ordered)
    return "\n".join([",".join(_COLUMNS), *rows, ""])


def _read_csv(text: str) -> list[Slot]:
    """The rows in the order in which operations start."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or [cell.strip().lower() for cell in lines[0].split(",")] != list(_COLUMNS):
        raise FormatError(f"The first line of a schedule must be {','.join(_COLUMNS)}.")
    slots = []
    for place, row in enumerate((line.split(",") for line in lines[1:]), 2):
        if len(row) != len(_COLUMNS):
            raise FormatError(f"Row {place} must have {len(_COLUMNS)} cells, got {len(row)}.")
        job, operation, machine, start, end = (cell.strip() for cell in row)
        numbers = [integer(cell, name) for cell, name in ((machine, "A machine"), (job, "A job"), (operation, "An operation"))]
        slots.append(Slot(number(start, "A start"), number(end, "An end"), *numbers))
    return sorted(slots, key=lambda i: (i.start, i.end, i.operation, i.job))


def _read(read: Callable[[Instance, list[Slot]], list[int]], given: Instance, text: str) -> list[int]:
    return read(given, _read_csv(text))
