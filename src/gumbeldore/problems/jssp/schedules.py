"""Schedules as text and as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from gumbeldore.errors import FormatError
from gumbeldore.io.text import integer, number
from gumbeldore.kits.kit import Export, Instance
from gumbeldore.problems.jssp.verify import Interval, build_schedule

COLUMNS = ("job", "operation", "machine", "start", "end")


def schedule(given: Instance, actions: Sequence[int]) -> list[Interval]:
    return build_schedule(given.arrays["times"].tolist(), given.arrays["machines"].tolist(), actions)


def write_text(given: Instance, actions: Sequence[int]) -> str:
    """For people: the makespan, and what each machine does when."""
    intervals = schedule(given, actions)
    lines = [
        f"# {given.name or 'schedule'}",
        f"# makespan {max(i.end for i in intervals):g}",
        "# job.operation[start, end), all from 0",
    ]
    for machine in range(given.arrays["machines"].shape[1]):
        here = sorted((i for i in intervals if i.machine == machine), key=lambda i: i.start)
        lines.append(f"machine {machine}: " + " ".join(f"{i.job}.{i.operation}[{i.start:.15g}, {i.end:.15g})" for i in here))
    return "\n".join([*lines, ""])


def write_csv(given: Instance, actions: Sequence[int]) -> str:
    """For programs: a row for each operation, all numbers from 0, in the order of the jobs."""
    ordered = sorted(schedule(given, actions), key=lambda i: (i.job, i.operation))
    rows = (f"{i.job},{i.operation},{i.machine},{i.start!r},{i.end!r}" for i in ordered)
    return "\n".join([",".join(COLUMNS), *rows, ""])


def read_csv(given: Instance, text: str) -> list[int]:
    """The jobs in the order in which their operations start, which gives a schedule that ends no later."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or [cell.strip().lower() for cell in lines[0].split(",")] != list(COLUMNS):
        raise FormatError(f"The first line of a schedule must be {','.join(COLUMNS)}.")
    rows = [line.split(",") for line in lines[1:]]
    for place, row in enumerate(rows, 2):
        if len(row) != len(COLUMNS):
            raise FormatError(f"Row {place} must have {len(COLUMNS)} cells, got {len(row)}.")
    order = []
    for row in rows:
        job, operation, _, start, end = (cell.strip() for cell in row)
        order.append(
            (number(start, "A start"), number(end, "An end"), integer(operation, "An operation"), integer(job, "A job"))
        )
    return [job for *_, job in sorted(order)]


EXPORTS = {"schedule": Export(".schedule.txt", write_text), "csv": Export(".schedule.csv", write_csv, read_csv)}
