"""Anytime local search for one tour by a matrix that need not be symmetric.

`TourSearch` on what the prices of the least assignment leave of the distances: all tours become shorter by the same length, and the nearest of a
city are those that are of use to tours, not those that are near to all. It begins with the assignment's cycles, joined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.local_search.assignment import assign
from gumbeldore.local_search.compiling import plain
from gumbeldore.local_search.distances import Matrix, path_cost
from gumbeldore.local_search.tours import TourSearch

_MOST = 1500
"""Beyond so many cities an assignment takes seconds."""
_LEANING = 1e-4
"""Longer edges count a little more. Where no detour is longer than the way many tours are equally short, and training should see the same of them."""


class MatrixTourSearch:
    """As `TourSearch`: it can be run again and again, and goes on where it was. What it finds depends on the work done and the seed alone."""

    def __init__(self, distances: Float[np.ndarray, "city another"], *, seed: int, tour: Any = None) -> None:
        values = np.where(np.eye(len(distances), dtype=bool), 0.0, np.asarray(distances, np.float64))
        self.distances = Matrix(values)
        searched = self.distances
        if 2 <= len(values) <= _MOST and not (values == values.T).all():
            found = assign(values[None])
            leaving, reaching = found.prices[0]
            searched = Matrix(np.where(np.eye(len(values), dtype=bool), 0.0, values - leaving[:, None] - reaching))
            tour = found.tour[0] if tour is None else tour
        self._search = TourSearch(searched, seed=seed, tour=tour)

    def run(self, *, work: int | None = None, seconds: float | None = None) -> int:
        """Searches on until either is used up. Returns the work done."""
        return self._search.run(work=work, seconds=seconds)

    @property
    def best(self) -> Int[np.ndarray, " city"]:
        """The shortest tour so far, from city 0 on."""
        return self._search.best

    @property
    def cost(self) -> float | int:
        """Its length."""
        return path_cost(self.distances, [*self.best, 0])

    def offer(self, tour: Any) -> bool:
        """Goes on from this tour, if it is shorter than the best so far; says whether it is."""
        return self._search.offer(tour)


def improve_matrix_tours(
    distances: Float[Tensor, "batch city another"], seeds: Int[Tensor, " batch"], rounds: int
) -> Int[Tensor, "batch city"]:
    """Tours from city 0 on that are no longer than those from city to city in their order: the better of these and of joined assignments, after
    `rounds` of double bridges."""
    found = [_improved(matrix, int(seed), rounds) for matrix, seed in zip(plain(distances, torch.float64), seeds, strict=True)]
    return torch.from_numpy(np.stack(found)).to(distances.device)


def _improved(matrix: Float[np.ndarray, "city another"], seed: int, rounds: int) -> Int[np.ndarray, " city"]:
    given = np.arange(len(matrix))
    search = MatrixTourSearch(matrix * (1 + _LEANING * matrix / max(float(np.abs(matrix).mean()), 1e-300)), seed=seed)
    search.offer(given)
    search.run(work=rounds)
    found = search.best
    return found if matrix[found, np.roll(found, -1)].sum() <= matrix[given, np.roll(given, -1)].sum() else given
