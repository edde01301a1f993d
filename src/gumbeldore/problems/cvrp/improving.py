"""Local search of one CVRP instance, by the distances of its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gumbeldore.kits.improving import WHOLE
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.distances import Distances, Plane
from gumbeldore.local_search.routes import RouteSearch
from gumbeldore.problems.cvrp.files import RoutesCost
from gumbeldore.problems.distances import of_file
from gumbeldore.problems.routes import actions_of, routes


class RouteImprovement:
    """Routes as actions; the search counts customers from 1."""

    anneals, optimal = True, False

    def __init__(self, given: Instance, seed: int, begin: Sequence[int] | None) -> None:
        capacity, first = int(given.arrays["capacity"]), None if begin is None else nodes(begin)
        self.search = RouteSearch(_distances(given), given.arrays["demands"], capacity, seed=seed, routes=first)

    @property
    def actions(self) -> list[int]:
        return actions_of([[node - 1 for node in route] for route in self.search.best])

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] = WHOLE) -> None:
        self.search.run(work=work, seconds=seconds, progress=progress)

    def offer(self, actions: Sequence[int]) -> None:
        self.search.offer(nodes(actions))


def nodes(actions: Sequence[int]) -> list[list[int]]:
    return [[customer + 1 for customer in route] for route in routes(actions)]


def _distances(given: Instance) -> Distances:
    if isinstance(given.cost, RoutesCost):
        return of_file(given.cost.weights, given.cost.nodes)
    return Plane(np.asarray(given.arrays["nodes"], dtype=np.float64))
