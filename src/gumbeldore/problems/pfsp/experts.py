"""Orders by outside solvers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import require
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import MINUTE, Limit, Solved
from gumbeldore.solvers.outside import cp_sat, outside


def _solve_pfsp(
    times: NDArray[Any], limit: Limit = MINUTE, seed: int = 0, hint: Sequence[int] = ()
) -> tuple[list[int], int, bool]:
    """OR-Tools CP-SAT on one core: which job is at which position, and when positions end on machines (Wagner's model of 1959)."""
    cp_model = outside("ortools.sat.python.cp_model")
    table = np.asarray(times)
    require(bool((table == np.rint(table)).all()), "CP-SAT needs integer `times`. Scale them to integers.")
    table = table.astype(np.int64)
    jobs, machines = table.shape
    model, latest = cp_model.CpModel(), int(table.sum())
    at = [[model.new_bool_var("") for _ in range(jobs)] for _ in range(jobs)]  # position, job
    for index in range(jobs):
        model.add_exactly_one(at[index])
        model.add_exactly_one(row[index] for row in at)
    before: list[Any] = [0] * machines
    for row in at:
        ends: list[Any] = []
        for machine in range(machines):
            time = cp_model.LinearExpr.weighted_sum(row, table[:, machine].tolist())
            end = model.new_int_var(0, latest, "")
            model.add(end >= before[machine] + time)
            if machine:
                model.add(end >= ends[-1] + time)
            ends.append(end)
        before = ends
    model.minimize(before[-1])
    for position, job in enumerate(hint):
        for other in range(jobs):
            model.add_hint(at[position][other], other == job)
    solver, optimal = cp_sat(cp_model, model, limit, random_seed=seed)
    order = [next(job for job, here in enumerate(row) if solver.value(here)) for row in at]
    return order, int(solver.objective_value), optimal


def pfsp_by_ortools(instance: Arrays, limit: Limit, seed: int) -> Solved:
    return Solved(*_solve_pfsp(instance["times"], limit))


def _warm_started_ortools(given: Instance, starts: Sequence[Sequence[int]], limit: Limit, seed: int) -> list[int]:
    """CP-SAT with the best order as a hint."""
    return _solve_pfsp(given.arrays["times"], limit, seed, starts[0])[0]


EXPERTS = {"ortools": pfsp_by_ortools}
WARM_STARTED = {"ortools": _warm_started_ortools}
