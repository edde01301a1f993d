"""Distances that a local search goes by: those of points, computed when they are needed, or a matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import NDArray

from gumbeldore.errors import require
from gumbeldore.local_search.compiling import code

RULES = ("exact", "EUC_2D", "CEIL_2D", "ATT", "GEO", "MAN_2D", "MAX_2D")
"""How far two points are apart: in the plane, or as TSPLIB 95 rounds it; for GEO they are latitudes and longitudes in radians."""


@dataclass(frozen=True, eq=False)
class Plane:
    """Points, and the rule for their distances. Nothing of size n x n is kept, so there may be a hundred thousand of them."""

    points: Float[np.ndarray, "node 2"]
    rule: str = "exact"
    compiled: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require(self.rule in RULES, f"`rule` must be one of {', '.join(RULES)}, got {self.rule}.")
        points = np.ascontiguousarray(self.points, np.float64)
        object.__setattr__(self, "compiled", code().plane_distances(points, RULES.index(self.rule)))

    def __len__(self) -> int:
        return len(self.points)

    @property
    def whole(self) -> bool:
        """Whether all distances are whole numbers."""
        return self.rule != "exact"


@dataclass(frozen=True, eq=False)
class Matrix:
    """Distances from nodes (rows) to nodes (columns), in both directions alike or not. The diagonal is not looked at."""

    values: Num[np.ndarray, "node another"]
    whole: bool = field(init=False)
    compiled: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = np.ascontiguousarray(self.values, np.float64)
        require(
            values.ndim == 2 and values.shape[0] == values.shape[1], f"A matrix must be square, got the shape {values.shape}."
        )
        whole = bool((np.isfinite(values) & (values == np.trunc(values))).all())
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "compiled", code().matrix_distances(values, whole))

    def __len__(self) -> int:
        return len(self.values)


Distances: TypeAlias = Plane | Matrix


def path_cost(distances: Distances, nodes: Any) -> float | int:
    """The way along nodes, from the first to the last."""
    return number(distances, code().path_cost(distances.compiled, np.ascontiguousarray(nodes, np.int64)))


def number(distances: Distances, cost: float) -> float | int:
    """A cost, as a whole number where all distances are."""
    return round(cost) if distances.whole else cost


def indices(values: Any) -> NDArray[np.int64]:
    """Whole numbers as the boundary takes them."""
    found = np.asarray(values)
    require(found.size == 0 or found.dtype.kind in "iu", f"Nodes and demands must be whole numbers, got {found.dtype}.")
    return np.ascontiguousarray(found, np.int64)
