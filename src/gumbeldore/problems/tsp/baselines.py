"""Tours that nothing has learned: simple constructions, our own local search, outside solvers."""

from __future__ import annotations

import numpy as np
import torch

from gumbeldore.problems.baselines import constructive, local_search, solver
from gumbeldore.problems.instances import Arrays
from gumbeldore.problems.local_search import polish_tours
from gumbeldore.problems.ortools_routing import ortools_routes
from gumbeldore.problems.solvers import Limit, Solved, distance_matrix
from gumbeldore.problems.tsp.experts import tsp_by_ortools, tsp_by_pyvrp


def nearest_neighbour(instance: Arrays) -> list[int]:
    """From city 0 always on to the nearest unvisited city; of equally near ones to the first."""
    distances = distance_matrix(np.asarray(instance["coordinates"], dtype=np.float64))
    tour = [0]
    distances[:, 0] = np.inf
    while len(tour) < len(distances):
        tour.append(int(distances[tour[-1]].argmin()))
        distances[:, tour[-1]] = np.inf
    return tour[1:]


def farthest_insertion(instance: Arrays) -> list[int]:
    """Begins with city 0; the city farthest from the tour is always next, inserted where that adds least."""
    distances = distance_matrix(np.asarray(instance["coordinates"], dtype=np.float64))
    tour, away = np.zeros(1, dtype=np.int64), distances[0].copy()
    away[0] = -np.inf
    while len(tour) < len(distances):
        city = int(away.argmax())
        following = np.roll(tour, -1)
        added = distances[tour, city] + distances[city, following] - distances[tour, following]
        tour = np.insert(tour, int(added.argmin()) + 1, city)
        away = np.minimum(away, distances[city])
        away[city] = -np.inf
    return tour[1:].tolist()


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """Nearest neighbour, then 2-opt and Or-opt, iterated with double bridges: `limit.work` of them per city."""
    points = torch.as_tensor(np.asarray(instance["coordinates"], dtype=np.float64))
    tour = [0, *nearest_neighbour(instance)]
    rounds = int((limit.work or 0) * len(tour))
    polished = polish_tours(points[None], torch.tensor([tour]), torch.tensor([seed]), rounds)[0].tolist()
    first = polished.index(0)
    return [*polished[first + 1 :], *polished[:first]]


def tsp_by_routing(instance: Arrays, limit: Limit, seed: int) -> Solved:
    points = np.asarray(instance["coordinates"], dtype=np.float64)
    (customers,) = ortools_routes(points, np.zeros(len(points)), 0, limit, vehicles=1)
    return Solved([customer + 1 for customer in customers], float("inf"), False)


BASELINES = {
    "nearest-neighbour": constructive("on to the nearest unvisited city", nearest_neighbour),
    "farthest-insertion": constructive("the farthest city next, inserted where it adds least", farthest_insertion),
    "local-search": local_search(
        "nearest neighbour, then our compiled 2-opt and Or-opt with double bridges", searched, 10, "double bridges per city"
    ),
    "pyvrp": solver("PyVRP's iterated local search", tsp_by_pyvrp, "pyvrp", "iterations"),
    "or-tools": solver("OR-Tools routing, guided local search", tsp_by_routing, "ortools", "solutions", random=False),
    "cpsat": solver(
        "OR-Tools CP-SAT, exact for some dozens of cities", tsp_by_ortools, "ortools", "deterministic time", random=False
    ),
}
