"""Verifies solutions of the capacitated vehicle routing problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from gumbeldore.errors import require
from gumbeldore.kits.verdict import Verdict, permutation_fault
from gumbeldore.problems.routes import split_routes


def verify_cvrp(
    nodes: Any, demands: Any, capacity: Any, customers: Sequence[int] | Any, via_depot: Sequence[int] | Any
) -> Verdict:
    """Checks that each customer is served once and no vehicle is overloaded; the objective is minus the total length.

    - `nodes` (1 + N, 2) and `demands` (1 + N) begin with the depot, whose demand is 0.
    - `customers` are 0-based: customer c is node c + 1. `via_depot[i]` says that customer i of the sequence begins a new
      subtour. The first one must; the last vehicle returns to the depot.
    """
    points, load = np.asarray(nodes, dtype=np.float64), np.asarray(demands)
    require(
        points.ndim == 2 and points.shape[0] >= 1 and points.shape[1] == 2,
        f"`nodes` must have the shape (1 + customers, 2), got {points.shape}.",
    )
    require(load.shape == points.shape[:1], f"`demands` must have one entry per node ({len(points)}), got {load.shape}.")
    order, flags = [int(customer) for customer in customers], [bool(flag) for flag in via_depot]
    if len(order) != len(flags):
        return Verdict.infeasible(f"there are {len(order)} customers but {len(flags)} flags")
    if fault := permutation_fault(order, len(points) - 1, "customer", "customers"):
        return Verdict.infeasible(fault)
    if flags and not flags[0]:
        return Verdict.infeasible("the first customer must be reached via the depot")
    routes = split_routes(order, flags)
    for number, route in enumerate(routes):
        total = math.fsum(load[customer + 1].item() for customer in route)
        if total > capacity:
            return Verdict.infeasible(f"subtour {number} carries {total:g}, more than the capacity {capacity:g}")
    return Verdict(True, -math.fsum(_route_length(points, route) for route in routes))


def _route_length(points: Float[np.ndarray, "node 2"], route: Sequence[int]) -> float:
    """The length of depot, customers, depot."""
    stops = points[[0, *(customer + 1 for customer in route), 0]].tolist()
    return math.fsum(math.dist(a, b) for a, b in pairwise(stops))
