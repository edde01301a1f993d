"""When operations run, and where: what schedules are verified and drawn by."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Interval(NamedTuple):
    """When an operation runs, and where."""

    start: float
    end: float
    machine: int
    job: int
    operation: int


def overlap(schedule: Sequence[Interval]) -> str:
    """Which operations of a job, or on a machine, run at the same time, or an empty string if none do."""
    ordered = sorted(schedule, key=lambda i: (i.job, i.operation))
    for earlier, later in itertools.pairwise(ordered):
        if earlier.job == later.job and later.start < earlier.end:
            return f"operation {later.operation} of job {later.job} starts before operation {earlier.operation} ends"
    ordered = sorted(schedule, key=lambda i: (i.machine, i.start, i.end))
    for earlier, later in itertools.pairwise(ordered):
        if earlier.machine == later.machine and later.start < earlier.end:
            return f"jobs {earlier.job} and {later.job} are on machine {later.machine} at the same time"
    return ""
