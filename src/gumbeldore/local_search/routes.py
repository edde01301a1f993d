"""Anytime local search for vehicle routes (`compiled/route_search.cpp`): strings of customers are taken out and put back, annealed."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.local_search.compiling import code
from gumbeldore.local_search.distances import Distances, indices, number
from gumbeldore.local_search.limits import limits

Routes = list[list[int]]


class RouteSearch:
    """A search that can be run again and again, and goes on where it was. What it finds depends on the work done and the seed alone.

    Node 0 is the depot; a route is a list of other nodes. Without routes the search begins with those by savings. One unit of work is a round of removal and
    reinsertion.

    With `windows` (node, 2) and `service` times, distances are travel times: service at each node begins within its window, the vehicle leaves the depot when
    that opens and is back before it closes. Without routes the search begins by insertion then.
    """

    def __init__(
        self,
        distances: Distances,
        demands: Any,
        capacity: int,
        *,
        seed: int,
        routes: Sequence[Sequence[int]] | None = None,
        windows: Any = None,
        service: Any = None,
    ) -> None:
        self.distances, self.work = distances, 0
        start = None if routes is None else _flat(routes)
        times = (None if each is None else np.ascontiguousarray(each, np.float64) for each in (windows, service))
        self._search = code().route_search(distances.compiled, indices(demands), capacity, *times, seed, start)

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] | None = None) -> int:
        """Searches on until either is used up, or `stop` is called. Returns the work done.

        Longer routes are accepted now and then, the less often the more of the search is over. `progress` says where in the whole of it this run begins
        and ends: (0, 1) if there is no other. Without, the search anneals again and again, each time twice as long.
        """
        done = code().run_routes(self._search, *limits(work, seconds), *(progress or (nan, nan)))
        self.work += done
        return done

    @property
    def best(self) -> Routes:
        """The shortest routes so far."""
        return self._best()[0]

    @property
    def cost(self) -> float | int:
        """Their length, by the distances as they were given."""
        return self._best()[1]

    def _best(self) -> tuple[Routes, float | int]:
        nodes = np.empty(2 * len(self.distances), np.int64)
        cost = code().best_routes(self._search, nodes)
        routes: Routes = [[]]
        for node in nodes.tolist():
            if node:
                routes[-1].append(node)
            elif routes[-1]:
                routes.append([])
        return routes[:-1], number(self.distances, cost)

    def offer(self, routes: Sequence[Sequence[int]]) -> bool:
        """Goes on from these routes, if they are shorter than the best so far; says whether they are."""
        return code().offer_routes(self._search, _flat(routes))

    def stop(self) -> None:
        """From another thread: `run` returns at once."""
        code().stop_routes(self._search)


def _flat(routes: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """One list of nodes, with the depot between two routes."""
    return indices([node for index, route in enumerate(routes) for node in ([0] if index else []) + list(map(int, route))])
