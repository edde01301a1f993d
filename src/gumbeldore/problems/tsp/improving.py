"""Local search of one TSP instance, by the distances of its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gumbeldore.kits.improving import WHOLE
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.distances import Distances, Plane
from gumbeldore.local_search.tours import TourSearch
from gumbeldore.problems.distances import of_file
from gumbeldore.problems.tours import TourCost


class TourImprovement:
    """Tours as actions, from city 0 on."""

    anneals = optimal = False

    def __init__(self, given: Instance, seed: int, begin: Sequence[int] | None) -> None:
        self.search = TourSearch(_distances(given), seed=seed, tour=None if begin is None else [0, *begin])

    @property
    def actions(self) -> list[int]:
        return self.search.best.tolist()[1:]

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] = WHOLE) -> None:
        self.search.run(work=work, seconds=seconds)

    def offer(self, actions: Sequence[int]) -> None:
        self.search.offer([0, *actions])


def _distances(given: Instance) -> Distances:
    if isinstance(given.cost, TourCost):
        return of_file(given.cost.weights)
    return Plane(np.asarray(given.arrays["coordinates"], dtype=np.float64))
