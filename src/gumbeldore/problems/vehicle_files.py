"""What files in the syntax of CVRPLIB say of vehicles: where the depot is, and what is demanded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.tsplib import Tsplib


def depot_first(file: Tsplib, count: int) -> NDArray[np.int64]:
    """The nodes from 0 in our order: the depot, then the others as in the file."""
    depots = file.listed("DEPOT")
    if len(depots) != 1:
        raise FormatError(f"DEPOT_SECTION must name one depot, got {len(depots)}.")
    if not 1 <= depots[0] <= count:
        raise FormatError(f"DEPOT_SECTION names node {depots[0]}, but nodes are numbered 1 .. {count}.")
    depot = depots[0] - 1
    return np.array([depot, *(node for node in range(count) if node != depot)])


def demands_of(file: Tsplib, capacity: int) -> NDArray[np.int64]:
    given = file.rows("DEMAND", 1)[:, 0]
    for node, demand in enumerate(given.tolist(), 1):
        if not demand == np.floor(demand):  # also a NaN
            raise FormatError(
                f"The demand of node {node} must be an integer, got {demand:g}. Scale all demands and the capacity."
            )
        if demand < 0:
            raise FormatError(f"The demand of node {node} must be at least 0, got {demand:g}.")
        if demand > capacity:
            raise FormatError(f"The demand of node {node} is {demand:g}, more than the CAPACITY {capacity}.")
    return given.astype(np.int64)
