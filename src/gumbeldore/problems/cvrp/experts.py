"""Routes by outside solvers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import require
from gumbeldore.io.tsplib_distances import all_pairs
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import SHORT, Limit, Solved
from gumbeldore.problems.cvrp.files import RoutesCost
from gumbeldore.problems.routes import routes
from gumbeldore.solvers.outside import distance_matrix, outside, pyvrp_routes

_NO_CLOCK = 0.0
"""As HGS's time limit; with any other one it starts again after its iterations, until the time is up."""


@dataclass(frozen=True)
class Routes:
    """Subtours that begin and end at the depot; customers count from 0 (customer c is node c + 1)."""

    routes: list[list[int]]
    length: float


def solve_cvrp(
    nodes: NDArray[np.floating],
    demands: NDArray[np.integer],
    capacity: int,
    limit: Limit = SHORT,
    seed: int = 0,
    solver: str = "hygese",
) -> Routes:
    """Good subtours by HGS ("hygese") or by PyVRP's iterated local search ("pyvrp"). Node 0 is the depot."""
    solvers = {"hygese": _hygese_routes, "pyvrp": pyvrp_routes}
    require(solver in solvers, f"`solver` must be one of {', '.join(solvers)}, got {solver!r}.")
    points, load = np.asarray(nodes, dtype=np.float64), np.asarray(demands)
    if len(points) == 2 or not np.ptp(points, axis=0).any():  # HGS hangs on one customer and crashes if all is one point
        routes = [[customer] for customer in range(len(points) - 1)]
    else:
        routes = solvers[solver](points, load, int(capacity), limit, seed)
    distances = distance_matrix(points)
    stops = [[0, *(customer + 1 for customer in route), 0] for route in routes]
    return Routes(routes, math.fsum(distances[a, b] for stop in stops for a, b in pairwise(stop)))


def cvrp_by(solver: str, instance: Arrays, limit: Limit, seed: int) -> Solved:
    answer = solve_cvrp(instance["nodes"], instance["demands"], int(instance["capacity"]), limit, seed, solver)
    return Solved([2 * c + (place == 0) for route in answer.routes for place, c in enumerate(route)], answer.length, False)


def _hygese_routes(
    points: NDArray[np.float64], demands: NDArray[Any], capacity: int, limit: Limit, seed: int
) -> list[list[int]]:
    """The routes of HGS, as customers from 0. Its clock counts processor time.

    Coordinates are scaled to 0 .. 1000: it wants none below 0 and works with absolute tolerances. Two routes that fit into one
    vehicle can be joined without loss, so no more vehicles are needed than twice the least number.
    """
    hygese = outside("hygese")
    if not demands.any():  # it would find nothing
        demands, capacity = np.ones_like(demands), len(demands)
    moved = points - points.min(0)
    moved *= 1000 / moved.max()
    data = {
        "x_coordinates": moved[:, 0],
        "y_coordinates": moved[:, 1],
        "demands": demands.astype(np.float64),
        "vehicle_capacity": float(capacity),
        "num_vehicles": 1 + int(2 * demands.sum() // capacity),
    }
    effort = {"timeLimit": limit.seconds} if limit.work is None else {"nbIter": int(limit.work), "timeLimit": _NO_CLOCK}
    solver = hygese.Solver(hygese.AlgorithmParameters(**effort, seed=seed), verbose=False)
    return [[customer - 1 for customer in route] for route in solver.solve_cvrp(data, rounding=False).routes]


def _warm_started_pyvrp(given: Instance, starts: Sequence[Sequence[int]], limit: Limit, seed: int) -> list[int]:
    """PyVRP from the best routes, by the distances of the instance's file."""
    points, demands, capacity = (np.asarray(given.arrays[name]) for name in ("nodes", "demands", "capacity"))
    distances = None
    if isinstance(given.cost, RoutesCost):
        distances = all_pairs(given.cost.weights, len(points))[np.ix_(given.cost.nodes, given.cost.nodes)]
    found = pyvrp_routes(
        points.astype(np.float64), demands, int(capacity), limit, seed, distances=distances, start=routes(starts[0])
    )
    return [2 * customer + (place == 0) for route in found for place, customer in enumerate(route)]


EXPERTS = {"hygese": partial(cvrp_by, "hygese"), "pyvrp": partial(cvrp_by, "pyvrp")}
WARM_STARTED = {"pyvrp": _warm_started_pyvrp}
