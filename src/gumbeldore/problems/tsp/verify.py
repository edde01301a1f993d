"""Verifies tours of the travelling salesman problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.kits.verdict import Verdict, permutation_fault


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
