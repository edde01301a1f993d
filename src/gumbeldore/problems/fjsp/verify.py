"""Verifies schedules of flexible job shops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.intervals import Interval, overlap


def verify_fjsp(times: Any, actions: Sequence[int] | Any) -> Verdict:
    """Builds the schedule that a sequence of actions stands for and checks it; the objective is minus the makespan.

    `times` has the shape (jobs, operations, machines), with -1 where an operation cannot run. The n-th action of a job, job * M + machine, puts
    its n-th operation on a machine, where it starts as soon as the job's previous operation and all operations put there before have ended.
    """
    table = np.asarray(times)
    require(table.ndim == 3, f"`times` must have the shape (jobs, operations, machines), got {table.shape}.")
    shop = operations(table)
    pairs = [divmod(int(action), table.shape[2]) for action in actions]
    if fault := _sequence_fault(pairs, shop):
        return Verdict.infeasible(fault)
    schedule = build_schedule(shop, pairs)
    if fault := schedule_fault(schedule, shop):
        return Verdict.infeasible(fault)
    return Verdict(True, -float(max(interval.end for interval in schedule)))


def operations(times: Any) -> list[list[dict[int, float]]]:
    """For each operation of each job its time on each machine that can do it."""
    table = np.asarray(times).tolist()
    rows = [[{machine: time for machine, time in enumerate(row) if time >= 0} for row in job] for job in table]
    return [[row for row in job if row] for job in rows]


def _sequence_fault(pairs: Sequence[tuple[int, int]], shop: Sequence[Sequence[dict[int, float]]]) -> str:
    """Why pairs of a job and a machine do not put every operation on a machine that can do it, or an empty string if they do."""
    counts = [0] * len(shop)
    for position, (job, machine) in enumerate(pairs):
        if not 0 <= job < len(shop):
            return f"job {job} at position {position} does not exist: jobs are 0 .. {len(shop) - 1}"
        if counts[job] == len(shop[job]):
            return f"job {job} at position {position} is finished: it has only {len(shop[job])} operations"
        if machine not in shop[job][counts[job]]:
            return f"operation {counts[job]} of job {job} at position {position} cannot run on machine {machine}"
        counts[job] += 1
    for job, count in enumerate(counts):
        if count < len(shop[job]):
            return f"job {job} is scheduled {count} times, but has {len(shop[job])} operations"
    return ""


def build_schedule(shop: Sequence[Sequence[dict[int, float]]], pairs: Sequence[tuple[int, int]]) -> list[Interval]:
    """The intervals of all operations, in the order of the sequence."""
    ends_of_jobs: dict[int, list[float]] = {}
    ends_on_machines: dict[int, float] = {}
    schedule = []
    for job, machine in pairs:
        ends = ends_of_jobs.setdefault(job, [])
        start = max([0, *ends[-1:], ends_on_machines.get(machine, 0)])
        interval = Interval(start, start + shop[job][len(ends)][machine], machine, job, len(ends))
        ends.append(interval.end)
        ends_on_machines[machine] = interval.end
        schedule.append(interval)
    return schedule


def schedule_fault(schedule: Sequence[Interval], shop: Sequence[Sequence[dict[int, float]]]) -> str:
    """Why intervals are not a schedule of the instance, or an empty string if they are: looks at nothing but intervals."""
    if sorted((i.job, i.operation) for i in schedule) != [(j, n) for j, job in enumerate(shop) for n in range(len(job))]:
        return "some operation is not scheduled exactly once"
    for interval in schedule:
        name, takes = f"operation {interval.operation} of job {interval.job}", shop[interval.job][interval.operation]
        if interval.start < 0:
            return f"{name} starts at {interval.start}, before time 0"
        if interval.machine not in takes:
            return f"{name} runs on machine {interval.machine}, which cannot do it"
        if interval.end != interval.start + takes[interval.machine]:
            return f"{name} does not run as long as it takes"
    return overlap(schedule)
