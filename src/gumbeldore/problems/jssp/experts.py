"""Schedules by outside solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import require
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import MINUTE, Limit, Solved
from gumbeldore.problems.jssp.verify import build_schedule
from gumbeldore.solvers.outside import cp_sat, outside


@dataclass(frozen=True)
class Schedule:
    """When each operation of each job starts, and whether the solver proved the makespan optimal."""

    starts: list[list[int]]
    makespan: int
    optimal: bool


def solve_jssp(
    times: NDArray[Any],
    machines: NDArray[np.integer],
    limit: Limit = MINUTE,
    seed: int = 0,
    hint: Sequence[Sequence[int]] | None = None,
) -> Schedule:
    """A short schedule by OR-Tools CP-SAT on one core: optimal within `seconds` up to about 10 jobs on 10 machines.

    `hint` is a schedule to start from: when each operation of each job starts.
    """
    cp_model = outside("ortools.sat.python.cp_model")
    duration = np.asarray(times)
    require(
        bool((duration == np.rint(duration)).all()),
        f"CP-SAT needs integer `times`, got {duration[duration != np.rint(duration)][:1].tolist()}. Scale them to integers.",
    )
    duration, route = duration.astype(np.int64), np.asarray(machines)
    model, latest = cp_model.CpModel(), int(duration.sum())
    start = [[model.new_int_var(0, latest, "") for _ in job] for job in duration]
    end = model.new_int_var(int(duration.sum(1).max()), latest, "")
    load: dict[int, list[Any]] = {int(machine): [] for machine in route.flat}
    for job, jobs_times in enumerate(duration.tolist()):
        for index, time in enumerate(jobs_times):
            load[int(route[job, index])].append(model.new_fixed_size_interval_var(start[job][index], time, ""))
            model.add((end if index + 1 == len(jobs_times) else start[job][index + 1]) >= start[job][index] + time)
    for intervals in load.values():
        model.add_no_overlap(intervals)
    model.minimize(end)
    for job, begins in enumerate(hint or []):
        for index, begin in enumerate(begins):
            model.add_hint(start[job][index], int(begin))
    if hint:
        model.add_hint(end, max(int(begins[-1]) + int(duration[job, -1]) for job, begins in enumerate(hint)))
    solver, optimal = cp_sat(cp_model, model, limit, random_seed=seed)
    starts = [[int(solver.value(variable)) for variable in job] for job in start]
    makespan = max(
        begin + int(time)
        for row, times_of in zip(starts, duration, strict=True)
        for begin, time in zip(row, times_of, strict=True)
    )
    return Schedule(starts, makespan, optimal)


def jssp_by_ortools(instance: Arrays, limit: Limit, seed: int) -> Solved:
    answer = solve_jssp(instance["times"], instance["machines"], limit)
    return Solved(jobs_by_start(answer.starts), answer.makespan, answer.optimal)


def _warm_started_ortools(given: Instance, starts: Sequence[Sequence[int]], limit: Limit, seed: int) -> list[int]:
    """CP-SAT with the schedule of the best sequence as a hint."""
    times, machines = given.arrays["times"], given.arrays["machines"]
    schedule = build_schedule(times.tolist(), machines.tolist(), starts[0])
    hint = [[0] * times.shape[1] for _ in times]
    for interval in schedule:
        hint[interval.job][interval.operation] = int(interval.start)
    return jobs_by_start(solve_jssp(times, machines, limit, seed, hint).starts)


def jobs_by_start(starts: Sequence[Sequence[int]]) -> list[int]:
    """The jobs of all operations in the order of their starts. Each is then scheduled no later than it was."""
    return [job for _, job in sorted((start, job) for job, row in enumerate(starts) for start in row)]


EXPERTS = {"ortools": jssp_by_ortools}
WARM_STARTED = {"ortools": _warm_started_ortools}
