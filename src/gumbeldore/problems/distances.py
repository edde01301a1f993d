"""The distances of an instance's file as local search takes them."""

from __future__ import annotations

from gumbeldore.errors import ContractError
from gumbeldore.io.tsplib_distances import PLANAR, Geographical, Planar, Weights
from gumbeldore.io.tsplib_distances import Matrix as Listed
from gumbeldore.local_search.distances import Distances, Matrix, Plane

RULES = {rule: name for name, rule in PLANAR.items()}


def of_file(weights: Weights) -> Distances:
    """By the same rule, to the last digit."""
    if isinstance(weights, Planar):
        return Plane(weights.points, RULES[weights.rule])  # type: ignore[arg-type]
    if isinstance(weights, Geographical):
        return Plane(weights.angles, "GEO")
    if isinstance(weights, Listed):
        return Matrix(weights.matrix)
    raise ContractError(f"Local search knows no distances of the kind {type(weights).__name__}.")
