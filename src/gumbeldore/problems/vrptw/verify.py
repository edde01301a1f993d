"""Verifies solutions of the vehicle routing problem with time windows, vehicle by vehicle, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gumbeldore.errors import require
from gumbeldore.kits.verdict import Verdict, permutation_fault
from gumbeldore.problems.routes import split_routes

ROUNDING = 2e-9
"""So much later than allowed is in time, as a share of when the depot closes: sums of floating point numbers are rounded."""


class Visit(NamedTuple):
    """When a vehicle comes to a node, when service begins there, and when it ends."""

    node: int
    arrival: float
    begin: float
    end: float


def verify_vrptw(
    nodes: Any,
    demands: Any,
    capacity: Any,
    windows: Any,
    service: Any,
    customers: Sequence[int] | Any,
    via_depot: Sequence[int] | Any,
    parts: Any = 0,
) -> Verdict:
    """Checks that each customer is served once, in time, and no vehicle is overloaded; the objective is minus the total length.

    - `nodes` (1 + N, 2), `demands` (1 + N), `windows` (1 + N, 2) and `service` (1 + N) begin with the depot.
    - `customers` are 0-based: customer c is node c + 1. `via_depot[i]` says that customer i of the sequence begins a new subtour.
    - Distances, which are travel times, too, are cut down to multiples of 1 / `parts`; 0: exact.
    """
    points, load, open_at, takes = (np.asarray(each, dtype=np.float64) for each in (nodes, demands, windows, service))
    require(
        points.ndim == 2 and points.shape[0] >= 1 and points.shape[1] == 2,
        f"`nodes` must have the shape (1 + customers, 2), got {points.shape}.",
    )
    for name, array, shape in (
        ("demands", load, points.shape[:1]),
        ("windows", open_at, points.shape),
        ("service", takes, points.shape[:1]),
    ):
        require(array.shape == shape, f"`{name}` must have the shape {shape}, got {array.shape}.")
    order, flags = [int(customer) for customer in customers], [bool(flag) for flag in via_depot]
    if len(order) != len(flags):
        return Verdict.infeasible(f"there are {len(order)} customers but {len(flags)} flags")
    if fault := permutation_fault(order, len(points) - 1, "customer", "customers"):
        return Verdict.infeasible(fault)
    if flags and not flags[0]:
        return Verdict.infeasible("the first customer must be reached via the depot")
    lengths = list[float]()
    late = ROUNDING * float(np.abs(open_at[0]).max())
    for number, route in enumerate(split_routes(order, flags)):
        total = math.fsum(load[customer + 1].item() for customer in route)
        if total > capacity:
            return Verdict.infeasible(f"subtour {number} carries {total:g}, more than the capacity {capacity:g}")
        for visit in schedule(points, open_at, takes, route, int(parts)):
            if visit.begin > open_at[visit.node, 1] + late:
                where = f"customer {visit.node - 1}" if visit.node else "the depot"
                return Verdict.infeasible(
                    f"subtour {number} comes to {where} at {visit.arrival:.10g}, after the window has closed at {open_at[visit.node, 1]:.10g}"
                )
        stops = [0, *(customer + 1 for customer in route), 0]
        lengths += [distance(points, a, b, int(parts)) for a, b in pairwise(stops)]
    return Verdict(True, -math.fsum(lengths))


def schedule(points: Any, windows: Any, service: Any, route: Sequence[int], parts: int) -> list[Visit]:
    """What a vehicle does that leaves the depot when it opens and goes on as early as possible; the last visit is its return."""
    last, clock, visits = 0, float(windows[0][0]), list[Visit]()
    for node in [*(customer + 1 for customer in route), 0]:
        arrival = clock + distance(points, last, node, parts)
        begin = max(arrival, float(windows[node][0]))
        clock = begin + float(service[node])
        visits.append(Visit(node, arrival, begin, clock))
        last = node
    return visits


def distance(points: Any, a: int, b: int, parts: int) -> float:
    """Euclidean, cut down to a multiple of 1 / `parts`."""
    x, y = (float(points[a][axis]) - float(points[b][axis]) for axis in (0, 1))
    exact = math.sqrt(x * x + y * y)
    return math.floor(exact * parts) / parts if parts else exact
