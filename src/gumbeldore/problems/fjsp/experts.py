"""Schedules by outside solvers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import require
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import MINUTE, Limit, Solved
from gumbeldore.problems.fjsp.verify import build_schedule, operations
from gumbeldore.problems.intervals import Interval
from gumbeldore.solvers.outside import cp_sat, outside


def _solve_fjsp(
    times: NDArray[Any], limit: Limit = MINUTE, seed: int = 0, hint: Sequence[Interval] = ()
) -> tuple[list[Interval], bool]:
    """The schedule of OR-Tools CP-SAT on one core, and whether it is proved optimal. `hint` is a schedule to start from."""
    cp_model = outside("ortools.sat.python.cp_model")
    table = np.asarray(times)
    require(bool((table == np.rint(table)).all()), "CP-SAT needs integer `times`. Scale them to integers.")
    shop = operations(table.astype(np.int64))
    latest = int(sum(max(takes.values()) for job in shop for takes in job))
    model, on_machine = cp_model.CpModel(), dict[int, list[Any]]()
    end = model.new_int_var(0, latest, "")
    start, chosen = dict[tuple[int, int], Any](), dict[tuple[int, int, int], Any]()
    for job, steps in enumerate(shop):
        before: Any = 0
        for step, takes in enumerate(steps):
            begins, ends = model.new_int_var(0, latest, ""), model.new_int_var(0, latest, "")
            model.add(begins >= before)
            for machine, time in takes.items():
                used = model.new_bool_var("")
                interval = model.new_optional_interval_var(begins, int(time), ends, used, "")
                on_machine.setdefault(machine, []).append(interval)
                chosen[job, step, machine] = used
            model.add_exactly_one(chosen[job, step, machine] for machine in takes)
            start[job, step], before = begins, ends
        model.add(end >= before)
    for intervals in on_machine.values():
        model.add_no_overlap(intervals)
    model.minimize(end)
    for interval in hint:
        model.add_hint(start[interval.job, interval.operation], int(interval.start))
        for machine in shop[interval.job][interval.operation]:
            model.add_hint(chosen[interval.job, interval.operation, machine], machine == interval.machine)
    solver, optimal = cp_sat(cp_model, model, limit, random_seed=seed)
    found = []
    for (job, step, machine), used in chosen.items():
        if solver.value(used):
            begin = int(solver.value(start[job, step]))
            found.append(Interval(begin, begin + int(shop[job][step][machine]), machine, job, step))
    return found, optimal


def fjsp_by_ortools(instance: Arrays, limit: Limit, seed: int) -> Solved:
    found, optimal = _solve_fjsp(instance["times"], limit)
    return Solved(actions_by_start(found, instance["times"].shape[2]), max(interval.end for interval in found), optimal)


def _warm_started_ortools(given: Instance, starts: Sequence[Sequence[int]], limit: Limit, seed: int) -> list[int]:
    """CP-SAT with the schedule of the best sequence as a hint."""
    times = given.arrays["times"]
    machines = times.shape[2]
    hint = build_schedule(operations(times), [divmod(action, machines) for action in starts[0]])
    return actions_by_start(_solve_fjsp(times, limit, seed, hint)[0], machines)


def actions_by_start(schedule: Sequence[Interval], machines: int) -> list[int]:
    """The actions of all operations in the order of their starts. Each is then scheduled no later than it was."""
    ordered = sorted(schedule, key=lambda i: (i.start, i.end, i.job, i.operation))
    return [interval.job * machines + interval.machine for interval in ordered]


EXPERTS = {"ortools": fjsp_by_ortools}
WARM_STARTED = {"ortools": _warm_started_ortools}
