"""Tours by outside solvers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import MINUTE, Limit, Solved
from gumbeldore.problems.tours import DISTANCES, verify_by_matrix
from gumbeldore.solvers.ortools_routing import ortools_routes
from gumbeldore.solvers.outside import SCALE, cp_sat, outside, pyvrp_routes


def solve_atsp(distances: NDArray[Any], limit: Limit = MINUTE) -> tuple[list[int], bool]:
    """A provably shortest tour by OR-Tools CP-SAT with a circuit constraint, for distances that are whole numbers or rounded to six digits; fit for some
    dozens of cities. Returns its actions, and whether it was proved optimal."""
    cp_model = outside("ortools.sat.python.cp_model")
    matrix = np.asarray(distances, dtype=np.float64)
    whole = bool((matrix == np.rint(matrix)).all())
    costs = np.rint(matrix * (1 if whole else SCALE / (np.abs(matrix).max() or 1.0))).astype(np.int64)
    model, count = cp_model.CpModel(), len(costs)
    arcs = [(i, j, model.new_bool_var("")) for i in range(count) for j in range(count) if i != j]
    model.add_circuit(arcs)
    model.minimize(sum(int(costs[i, j]) * chosen for i, j, chosen in arcs))
    solver, optimal = cp_sat(cp_model, model, limit, linearization_level=2)
    successor = {i: j for i, j, chosen in arcs if solver.value(chosen)}
    tour = [0]
    while len(tour) < count:
        tour.append(successor[tour[-1]])
    return tour[1:], optimal


def atsp_by_ortools(instance: Arrays, limit: Limit, seed: int) -> Solved:
    return _solved(instance, *solve_atsp(instance[DISTANCES], limit))


def atsp_by_pyvrp(instance: Arrays, limit: Limit, seed: int) -> Solved:
    return _solved(instance, _by_pyvrp(instance[DISTANCES], limit, seed))


def atsp_by_routing(instance: Arrays, limit: Limit, seed: int) -> Solved:
    matrix = np.asarray(instance[DISTANCES], dtype=np.float64)
    (customers,) = ortools_routes(np.zeros((len(matrix), 2)), np.zeros(len(matrix)), 0, limit, vehicles=1, distances=matrix)
    return _solved(instance, [customer + 1 for customer in customers])


def warm_started_pyvrp(given: Instance, starts: Sequence[Sequence[int]], limit: Limit, seed: int) -> list[int]:
    """PyVRP from the best tour."""
    return _by_pyvrp(given.arrays[DISTANCES], limit, seed, [[city - 1 for city in starts[0]]])


def _solved(instance: Arrays, actions: list[int], optimal: bool = False) -> Solved:
    return Solved(actions, -verify_by_matrix(instance, actions).objective, optimal)


def _by_pyvrp(distances: NDArray[Any], limit: Limit, seed: int, start: Sequence[Sequence[int]] | None = None) -> list[int]:
    matrix = np.asarray(distances, dtype=np.float64)
    nowhere, nothing = np.zeros((len(matrix), 2)), np.zeros(len(matrix))
    (customers,) = pyvrp_routes(nowhere, nothing, 0, limit, seed, vehicles=1, distances=matrix, start=start)
    return [customer + 1 for customer in customers]


EXPERTS = {"pyvrp": atsp_by_pyvrp, "ortools": atsp_by_ortools}
WARM_STARTED = {"pyvrp": warm_started_pyvrp}
