"""Verifies routes between nodes of which only the distances are known: a matrix, which need not be symmetric."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.cvrp.files import DISTANCES
from gumbeldore.problems.cvrp.instances import verify as verify_places
from gumbeldore.problems.routes import routes


def verify(given: Arrays, actions: Sequence[int]) -> Verdict:
    """The same rules as in the plane; the objective is minus the length by the matrix, in which node 0 is the depot."""
    matrix = np.asarray(given[DISTANCES])
    verdict = verify_places({**given, "nodes": np.zeros((len(matrix), 2))}, actions)
    if not verdict.feasible:
        return verdict
    ways = [[0, *(customer + 1 for customer in route), 0] for route in routes(actions)]
    return Verdict(True, -math.fsum(matrix[way[:-1], way[1:]].sum() for way in ways))
