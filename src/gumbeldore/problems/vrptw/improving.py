"""Local search of one instance with time windows, by the distances of its file."""

from __future__ import annotations

from collections.abc import Sequence

from gumbeldore.kits.improving import WHOLE
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search.distances import Matrix
from gumbeldore.local_search.routes import RouteSearch
from gumbeldore.problems.routes import actions_of, routes
from gumbeldore.problems.vrptw.insertion import travel_times


class TimedRouteImprovement:
    """Routes as actions; the search counts customers from 1."""

    anneals, optimal = True, False

    def __init__(self, given: Instance, seed: int, begin: Sequence[int] | None) -> None:
        self.search = search_of(given.arrays, seed, None if begin is None else nodes(begin))

    @property
    def actions(self) -> list[int]:
        return actions_of([[node - 1 for node in route] for route in self.search.best])

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] = WHOLE) -> None:
        self.search.run(work=work, seconds=seconds, progress=progress)

    def offer(self, actions: Sequence[int]) -> None:
        self.search.offer(nodes(actions))


def nodes(actions: Sequence[int]) -> list[list[int]]:
    return [[customer + 1 for customer in route] for route in routes(actions)]


def search_of(given: Arrays, seed: int, begin: list[list[int]] | None = None) -> RouteSearch:
    windows, service = given["windows"], given["service"]
    ways, capacity = Matrix(travel_times(given)), int(given["capacity"])
    return RouteSearch(ways, given["demands"], capacity, seed=seed, routes=begin, windows=windows, service=service)


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """Insertion, then strings of customers are taken out and put back, `limit.work` times per customer."""
    search = search_of(instance, seed)
    search.run(work=limit.units(len(instance["demands"]) - 1), seconds=limit.seconds, progress=WHOLE)
    return actions_of([node - 1 for node in route] for route in search.best)
