"""Local search of one instance of the ATSP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gumbeldore.kits.improving import WHOLE
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.matrix_tours import MatrixTourSearch
from gumbeldore.problems.tours import DISTANCES


class MatrixTourImprovement:
    """Tours as actions, from city 0 on."""

    anneals = optimal = False

    def __init__(self, given: Instance, seed: int, begin: Sequence[int] | None) -> None:
        matrix = np.asarray(given.arrays[DISTANCES], dtype=np.float64)
        self.search = MatrixTourSearch(matrix, seed=seed, tour=None if begin is None else [0, *begin])

    @property
    def actions(self) -> list[int]:
        return self.search.best.tolist()[1:]

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] = WHOLE) -> None:
        self.search.run(work=work, seconds=seconds)

    def offer(self, actions: Sequence[int]) -> None:
        self.search.offer([0, *actions])
