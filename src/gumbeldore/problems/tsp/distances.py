"""Verifies tours through cities of which only the distances are known: a matrix, which need not be symmetric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.verdict import Verdict, permutation_fault
from gumbeldore.problems.tsp.files import DISTANCES


def verify(given: Arrays, actions: Sequence[int]) -> Verdict:
    """Whether every city is visited once; the objective is minus the length."""
    tour, matrix = [0, *map(int, actions)], np.asarray(given[DISTANCES])
    if fault := permutation_fault(tour, len(matrix), "city", "cities"):
        return Verdict.infeasible(fault)
    return Verdict(True, -float(matrix[tour, np.roll(tour, -1)].sum()))
