"""Tours that nothing has learned: simple constructions, our own local search, outside solvers."""

from __future__ import annotations

import numpy as np
import torch

from gumbeldore.kits.baselines import constructive, local_search, solver
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.solver import Limit, Solved
from gumbeldore.local_search.distances import Plane
from gumbeldore.local_search.tours import TourSearch
from gumbeldore.problems.tsp.bounds import SpanningTreeBounds
from gumbeldore.problems.tsp.experts import tsp_by_ortools, tsp_by_pyvrp
from gumbeldore.solvers.ortools_routing import ortools_routes
from gumbeldore.solvers.outside import distance_matrix


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


def _by_trees(instance: Arrays) -> list[int]:
    """On to the city with the least bound of the way through it, of those that seem best in spanning trees of what is left.

    It knows what networks with `SpanningTreeBounds` know, so it shows what they add.
    """
    points = torch.as_tensor(np.asarray(instance["coordinates"], dtype=np.float64))
    points = (points - points.amin(0)) / (points.amax(0) - points.amin(0)).max().clamp(min=1e-300)
    tour, left = [0], list(range(1, len(points)))
    while left:
        path = points[[tour[-1], *left, 0]][None]
        found = SpanningTreeBounds().of(path, torch.tensor([path.shape[1]]))
        tour.append(left.pop(int(found.regret.masked_fill(found.tried == 0, torch.inf)[0, 1:-1].argmin())))
    return tour[1:]


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """Chains of 3-opt moves, iterated with double bridges: `limit.work` of them per city."""
    search = TourSearch(Plane(np.asarray(instance["coordinates"], dtype=np.float64)), seed=seed)
    search.run(work=limit.units(len(search.distances)), seconds=limit.seconds)
    return search.best[1:].tolist()


def _tsp_by_routing(instance: Arrays, limit: Limit, seed: int) -> Solved:
    points = np.asarray(instance["coordinates"], dtype=np.float64)
    (customers,) = ortools_routes(points, np.zeros(len(points)), 0, limit, vehicles=1)
    return Solved([customer + 1 for customer in customers], float("inf"), False)


BASELINES = {
    "nearest-neighbour": constructive("on to the nearest unvisited city", nearest_neighbour),
    "farthest-insertion": constructive("the farthest city next, inserted where it adds least", farthest_insertion),
    "spanning-trees": constructive("on to where Held and Karp's spanning trees of what is left go", _by_trees),
    "local-search": local_search(
        "our compiled chains of 3-opt moves with double bridges", searched, 10, "double bridges per city", clock=True
    ),
    "pyvrp": solver("PyVRP's iterated local search", tsp_by_pyvrp, "pyvrp", "iterations"),
    "or-tools": solver("OR-Tools routing, guided local search", _tsp_by_routing, "ortools", "solutions", random=False),
    "cpsat": solver(
        "OR-Tools CP-SAT, exact for some dozens of cities", tsp_by_ortools, "ortools", "deterministic time", random=False
    ),
}
