"""Verifies orders of permutation flow shops."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.kits.verdict import Verdict, permutation_fault
from gumbeldore.problems.intervals import Interval


def verify_pfsp(times: Any, order: Sequence[int] | Any) -> Verdict:
    """Builds the schedule of an order of jobs and checks it; the objective is minus the makespan. `times` has the shape (jobs, machines)."""
    table = np.asarray(times)
    require(table.ndim == 2, f"`times` must have the shape (jobs, machines), got {table.shape}.")
    sequence = [int(job) for job in order]
    if fault := permutation_fault(sequence, len(table), "job", "jobs"):
        return Verdict.infeasible(fault)
    schedule = build_schedule(table.tolist(), sequence)
    if fault := schedule_fault(schedule, table.tolist()):
        return Verdict.infeasible(fault)
    return Verdict(True, -float(max(interval.end for interval in schedule)))


def build_schedule(times: Sequence[Sequence[float]], order: Sequence[int]) -> list[Interval]:
    """The intervals of all operations, job by job."""
    free, schedule = [0.0 * time for time in times[0]], list[Interval]()
    for job in order:
        left: float = 0
        for machine, time in enumerate(times[job]):
            start = max(left, free[machine])
            left = free[machine] = start + time
            schedule.append(Interval(start, left, machine, job, machine))
    return schedule


def schedule_fault(schedule: Sequence[Interval], times: Sequence[Sequence[float]]) -> str:
    """Why intervals are no schedule of the shop in one order, or an empty string if they are: looks at nothing but intervals."""
    runs: dict[tuple[int, int], Interval] = {(i.job, i.machine): i for i in schedule}
    if len(runs) != len(schedule) or len(runs) != len(times) * len(times[0]):
        return "some operation is not scheduled exactly once"
    for (job, machine), interval in runs.items():
        if interval.end != interval.start + times[job][machine]:
            return f"job {job} does not run as long as it takes on machine {machine}"
        if machine and interval.start < runs[job, machine - 1].end:
            return f"job {job} starts on machine {machine} before it ends on machine {machine - 1}"
    first = list(dict.fromkeys(interval.job for interval in schedule))
    for earlier, later in itertools.pairwise(first):
        for machine in range(len(times[0])):
            if runs[later, machine].start < runs[earlier, machine].end:
                return f"jobs {earlier} and {later} are on machine {machine} at the same time"
    return ""
