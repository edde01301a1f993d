"""The distances of an instance's file as local search takes them."""

from __future__ import annotations

from typing import Any

from gumbeldore.errors import ContractError
from gumbeldore.io.tsplib_distances import PLANAR, Geographical, Planar, Weights
from gumbeldore.io.tsplib_distances import Matrix as Listed
from gumbeldore.local_search.distances import Distances, Matrix, Plane

_RULES = {rule: name for name, rule in PLANAR.items()}


def of_file(weights: Weights, order: Any = slice(None)) -> Distances:
    """By the same rule, to the last digit; `order` says which nodes of the file ours are."""
    if isinstance(weights, Planar):
        return Plane(weights.points[order], _RULES[weights.rule])  # type: ignore[arg-type]
    if isinstance(weights, Geographical):
        return Plane(weights.angles[order], "GEO")
    if isinstance(weights, Listed):
        return Matrix(weights.matrix[order][:, order])
    raise ContractError(f"Local search knows no distances of the kind {type(weights).__name__}.")
