"""Anytime local search for one tour (`compiled/tour_search.cpp`): chains of 3-opt moves, iterated with double bridges."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from gumbeldore.local_search.compiling import code
from gumbeldore.local_search.distances import Distances, indices, number
from gumbeldore.local_search.limits import limits


class TourSearch:
    """A search that can be run again and again, and goes on where it was. What it finds depends on the work done and the seed alone.

    Distances need not be alike in both directions. A tour begins with any node; without one the search builds its own. One unit of work is a double
    bridge; the descent from the first tour comes before.
    """

    def __init__(self, distances: Distances, *, seed: int, tour: Any = None) -> None:
        self.distances, self.work = distances, 0
        self._search = code().tour_search(distances.compiled, seed, None if tour is None else indices(tour))

    def run(self, *, work: int | None = None, seconds: float | None = None) -> int:
        """Searches on until either is used up, or `stop` is called. Returns the work done."""
        done = code().run_tours(self._search, *limits(work, seconds))
        self.work += done
        return done

    @property
    def best(self) -> Int[np.ndarray, " node"]:
        """The shortest tour so far, from node 0 on."""
        return self._best()[0]

    @property
    def cost(self) -> float | int:
        """Its length, by the distances as they were given."""
        return self._best()[1]

    def _best(self) -> tuple[Int[np.ndarray, " node"], float | int]:
        tour = np.empty(len(self.distances), np.int64)
        cost = code().best_tour(self._search, tour)
        return tour, number(self.distances, cost)

    def offer(self, tour: Any) -> bool:
        """Goes on from this tour, if it is shorter than the best so far; says whether it is."""
        return code().offer_tour(self._search, indices(tour))

    def stop(self) -> None:
        """From another thread: `run` returns at once."""
        code().stop_tours(self._search)
