"""Verifies tours of the travelling salesman problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.verification.verdict import Verdict


def verify_tsp(coordinates: Any, tour: Sequence[int] | Any) -> Verdict:
    """Checks that `tour` (0-based, closed implicitly) visits each city once; the objective is minus its length.

    `coordinates` is an array of shape (cities, 2).
    """
    points = np.asarray(coordinates, dtype=np.float64)
    require(points.ndim == 2 and points.shape[1] == 2, f"`coordinates` must have the shape (cities, 2), got {points.shape}.")
    cities = [int(city) for city in tour]
    if fault := permutation_fault(cities, len(points), "city", "cities"):
        return Verdict.infeasible(fault)
    stops = points[cities].tolist()
    return Verdict(True, -math.fsum(math.dist(a, b) for a, b in zip(stops, stops[1:] + stops[:1], strict=True)))


def permutation_fault(order: Sequence[int], count: int, one: str, many: str) -> str:
    """Why `order` is not a permutation of 0 .. count - 1, or an empty string if it is one."""
    seen: set[int] = set()
    for position, entry in enumerate(order):
        if not 0 <= entry < count:
            return f"{one} {entry} at position {position} does not exist: {many} are 0 .. {count - 1}"
        if entry in seen:
            return f"{one} {entry} is visited again at position {position}"
        seen.add(entry)
    if len(seen) < count:
        return f"{count - len(seen)} {many} are never visited, the first is {min(set(range(count)) - seen)}"
    return ""
