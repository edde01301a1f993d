"""Tours by outside solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gumbeldore.io.tsplib_distances import all_pairs
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import MINUTE, SHORT, Limit, Solved
from gumbeldore.problems.tours import TourCost
from gumbeldore.solvers.outside import SCALE, cp_sat, distance_matrix, outside, pyvrp_routes


@dataclass(frozen=True)
class ExactTour:
    """A tour and whether the solver proved it optimal (for distances rounded to six decimals)."""

    tour: list[int]
    length: float
    optimal: bool


def solve_tsp(coordinates: NDArray[np.floating], limit: Limit = MINUTE) -> ExactTour:
    """A provably shortest tour by OR-Tools CP-SAT with a circuit constraint; fit for some dozens of cities."""
    cp_model = outside("ortools.sat.python.cp_model")
    points = np.asarray(coordinates, dtype=np.float64)
    distances = distance_matrix(points)
    model = cp_model.CpModel()
    count = len(points)
    arcs = [(i, j, model.new_bool_var("")) for i in range(count) for j in range(count) if i != j]
    model.add_circuit(arcs)
    model.minimize(sum(int(round(distances[i, j] * SCALE)) * chosen for i, j, chosen in arcs))
    solver, optimal = cp_sat(cp_model, model, limit, linearization_level=2)
    successor = {i: j for i, j, chosen in arcs if solver.value(chosen)}
    tour = [0]
    while len(tour) < count:
        tour.append(successor[tour[-1]])
    length = float(distances[tour, np.roll(tour, -1)].sum())
    return ExactTour(tour, length, optimal)


def approximate_tsp(coordinates: NDArray[np.floating], limit: Limit = SHORT, seed: int = 0) -> ExactTour:
    """A short tour by PyVRP's iterated local search, beginning at city 0; fit for hundreds of cities, never proved optimal."""
    points = np.asarray(coordinates, dtype=np.float64)
    (customers,) = pyvrp_routes(points, np.zeros(len(points)), 0, limit, seed, vehicles=1)
    tour = [0, *(customer + 1 for customer in customers)]
    return ExactTour(tour, float(distance_matrix(points)[tour, np.roll(tour, -1)].sum()), False)


def tsp_by_pyvrp(instance: Arrays, limit: Limit, seed: int) -> Solved:
    answer = approximate_tsp(instance["coordinates"], limit, seed)
    return Solved(answer.tour[1:], answer.length, answer.optimal)


def tsp_by_ortools(instance: Arrays, limit: Limit, seed: int) -> Solved:
    answer = solve_tsp(instance["coordinates"], limit)
    return Solved(answer.tour[1:], answer.length, answer.optimal)


def _warm_started_pyvrp(given: Instance, starts: Sequence[Sequence[int]], limit: Limit, seed: int) -> list[int]:
    """PyVRP from the best tour, by the distances of the instance's file."""
    points = np.asarray(given.arrays["coordinates"], dtype=np.float64)
    distances = all_pairs(given.cost.weights, len(points)) if isinstance(given.cost, TourCost) else None
    tour = [[city - 1 for city in starts[0]]]
    (customers,) = pyvrp_routes(points, np.zeros(len(points)), 0, limit, seed, vehicles=1, distances=distances, start=tour)
    return [customer + 1 for customer in customers]


EXPERTS = {"pyvrp": tsp_by_pyvrp, "ortools": tsp_by_ortools}
WARM_STARTED = {"pyvrp": _warm_started_pyvrp}
