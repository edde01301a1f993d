"""Verifies schedules of the job shop scheduling problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.intervals import Interval, overlap


def verify_jssp(times: Any, machines: Any, jobs_sequence: Sequence[int] | Any) -> Verdict:
    """Builds the schedule that a sequence of jobs stands for and checks it; the objective is minus the makespan.

    `times` and `machines` have the shape (jobs, operations), machines and jobs are 0-based. The n-th occurrence of a job is
    its n-th operation, which starts as soon as the job's previous operation and all operations scheduled before on its
    machine have ended.
    """
    durations, routes = np.asarray(times), np.asarray(machines)
    require(durations.ndim == 2, f"`times` must have the shape (jobs, operations), got {durations.shape}.")
    require(
        routes.shape == durations.shape, f"`machines` must have the shape of `times` {durations.shape}, got {routes.shape}."
    )
    sequence = [int(job) for job in jobs_sequence]
    if fault := _sequence_fault(sequence, *durations.shape) or _route_fault(routes.tolist()):
        return Verdict.infeasible(fault)
    schedule = build_schedule(durations.tolist(), routes.tolist(), sequence)
    if fault := schedule_fault(schedule, durations.tolist(), routes.tolist()):
        return Verdict.infeasible(fault)
    return Verdict(True, -float(max(interval.end for interval in schedule)))


def _sequence_fault(sequence: Sequence[int], jobs: int, operations: int) -> str:
    """Why `sequence` does not contain each job exactly `operations` times, or an empty string if it does."""
    counts = [0] * jobs
    for position, job in enumerate(sequence):
        if not 0 <= job < jobs:
            return f"job {job} at position {position} does not exist: jobs are 0 .. {jobs - 1}"
        counts[job] += 1
        if counts[job] > operations:
            return f"job {job} at position {position} is finished: it has only {operations} operations"
    unfinished = [job for job, count in enumerate(counts) if count < operations]
    if unfinished:
        return f"job {unfinished[0]} is scheduled {counts[unfinished[0]]} times, but has {operations} operations"
    return ""


def _route_fault(routes: Sequence[Sequence[int]]) -> str:
    """Why some job does not visit each machine exactly once, or an empty string if all do."""
    for job, route in enumerate(routes):
        if set(route) != set(range(len(route))):
            return f"job {job} does not visit each machine 0 .. {len(route) - 1} exactly once"
    return ""


def build_schedule(
    times: Sequence[Sequence[float]], machines: Sequence[Sequence[int]], sequence: Sequence[int]
) -> list[Interval]:
    """The intervals of all operations, in the order of the sequence."""
    of_job: dict[int, list[Interval]] = {}
    on_machine: dict[int, list[Interval]] = {}
    schedule = []
    for job in sequence:
        before = of_job.setdefault(job, [])
        operation = len(before)
        machine = machines[job][operation]
        earlier = on_machine.setdefault(machine, [])
        start = max([interval.end for interval in before[-1:] + earlier[-1:]], default=0)
        interval = Interval(start, start + times[job][operation], machine, job, operation)
        before.append(interval)
        earlier.append(interval)
        schedule.append(interval)
    return schedule


def schedule_fault(schedule: Sequence[Interval], times: Sequence[Sequence[float]], machines: Sequence[Sequence[int]]) -> str:
    """Why intervals are not a schedule of the instance, or an empty string if they are: looks at nothing but intervals."""
    if sorted((i.job, i.operation) for i in schedule) != [
        (j, n) for j, route in enumerate(machines) for n in range(len(route))
    ]:
        return "some operation is not scheduled exactly once"
    for interval in schedule:
        name = f"operation {interval.operation} of job {interval.job}"
        if interval.start < 0:
            return f"{name} starts at {interval.start}, before time 0"
        if interval.machine != machines[interval.job][interval.operation]:
            return f"{name} runs on machine {interval.machine}, which is not its own"
        if interval.end != interval.start + times[interval.job][interval.operation]:
            return f"{name} does not run as long as it takes"
    return overlap(schedule)
