"""Local search of one orienteering instance, by the distances of its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gumbeldore.kits.improving import WHOLE
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.distances import Distances, Matrix, Plane
from gumbeldore.local_search.prizes import PrizeSearch
from gumbeldore.problems.distances import of_file
from gumbeldore.problems.op.files import TourPrize
from gumbeldore.problems.op.instances import DISTANCES


class TourImprovement:
    """Tours as actions, which end with a 0."""

    anneals, optimal = True, False

    def __init__(self, given: Instance, seed: int, begin: Sequence[int] | None) -> None:
        ways = of_file(given.cost.weights, given.cost.nodes) if isinstance(given.cost, TourPrize) else distances(given.arrays)
        arrays, first = given.arrays, None if begin is None else list(begin)[:-1]
        self.search = PrizeSearch(ways, arrays["prizes"], float(arrays["budget"]), seed=seed, tour=first)

    @property
    def actions(self) -> list[int]:
        return [*self.search.best, 0]

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] = WHOLE) -> None:
        self.search.run(work=work, seconds=seconds, progress=progress)

    def offer(self, actions: Sequence[int]) -> None:
        self.search.offer(list(actions)[:-1])


def distances(arrays: Arrays) -> Distances:
    """Those of an instance that are its own, or those of the plane."""
    if DISTANCES in arrays:
        return Matrix(np.asarray(arrays[DISTANCES]))
    return Plane(np.asarray(arrays["nodes"], dtype=np.float64))
