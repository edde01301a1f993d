"""Verifies solutions of the orienteering problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.kits.verdict import Verdict

TOLERANCE = 1e-8
"""So much of the budget a tour may be longer: other sums of the same distances are rounded otherwise."""


def verify_op(nodes: Any, prizes: Any, budget: Any, stops: Sequence[int] | Any, distances: Any = None) -> Verdict:
    """Checks that no node comes twice and the tour is within the budget; the objective is the sum of the prizes.

    `nodes` (1 + N, 2) and `prizes` (1 + N) begin with the depot, whose prize every tour collects. `stops` are nodes in 1 .. N, with a 0 at the end. Ways are those of the plane, or
    listed in `distances` (1 + N, 1 + N).
    """
    points, worth, limit = np.asarray(nodes, dtype=np.float64), np.asarray(prizes, dtype=np.float64), float(budget)
    require(points.ndim == 2 and points.shape[1] == 2, f"`nodes` must have the shape (1 + customers, 2), got {points.shape}.")
    require(worth.shape == points.shape[:1], f"`prizes` must have one entry per node ({len(points)}), got {worth.shape}.")
    order = [int(stop) for stop in stops]
    if fault := order_fault(order, len(points)):
        return Verdict.infeasible(fault)
    way = tour_length(points, order, None if distances is None else np.asarray(distances))
    if way > limit * (1 + TOLERANCE):
        return Verdict.infeasible(f"the tour is {way:.15g} long, more than the budget {limit:.15g}")
    return Verdict(True, math.fsum(worth[order].tolist()))


def order_fault(order: Sequence[int], count: int) -> str:
    """Why these are no stops of a tour, or an empty string if they are."""
    if not order or order[-1] != 0:
        return "the tour does not end at the depot"
    seen = set[int]()
    for position, node in enumerate(order[:-1]):
        if not 1 <= node < count:
            return f"node {node} at position {position} is no customer: they are 1 .. {count - 1}"
        if node in seen:
            return f"node {node} is visited again at position {position}"
        seen.add(node)
    return ""


def tour_length(points: Any, order: Sequence[int], distances: Any = None) -> float:
    """From the depot over all stops, of which the last is the depot."""
    legs = list(zip([0, *order[:-1]], order, strict=True))
    if distances is None:
        return math.fsum(math.dist(points[a], points[b]) for a, b in legs)
    return math.fsum(float(distances[a, b]) for a, b in legs)
