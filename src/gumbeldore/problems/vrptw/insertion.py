"""Routes by rules that nothing has learned (Solomon 1987, "Algorithms for the vehicle routing and scheduling problems with time window
constraints", Operations Research 35)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbeldore.kits.instances import Arrays
from gumbeldore.problems.routes import actions_of

Numbers = NDArray[np.float64]

NEXT = 0.4, 0.4, 0.2
"""What counts for the nearest neighbour: the way, the time until service begins there, how soon it must."""


class Settings(NamedTuple):
    """Of the insertion heuristic I1."""

    saved: float  # mu: how much of the edge counts that an insertion removes
    far: float  # lambda: how much it counts to serve a customer far from the depot without a vehicle of its own
    way: float  # alpha 1: the share of the detour; the rest is that of the delay


I1 = Settings(1, 1, 1), Settings(1, 2, 1), Settings(1, 1, 0), Settings(1, 2, 0)
"""Those that Solomon tried, with two ways to begin a route each; the best of the eight counts."""


@dataclass(frozen=True, eq=False)
class Times:
    """An instance as these rules read it; node 0 is the depot."""

    ways: Numbers
    demands: NDArray[np.int64]
    capacity: int
    opens: Numbers
    closes: Numbers  # the latest that lets a vehicle be back in time
    service: Numbers

    @classmethod
    def of(cls, instance: Arrays) -> Times:
        windows, service = (np.asarray(instance[name], dtype=np.float64) for name in ("windows", "service"))
        ways = travel_times(instance)
        closes = np.minimum(windows[:, 1], windows[0, 1] - service - ways[:, 0])
        closes[0] = windows[0, 1]
        return cls(ways, np.asarray(instance["demands"]), int(instance["capacity"]), windows[:, 0], closes, service)


def travel_times(instance: Arrays) -> Numbers:
    """Between all nodes, cut down as the instance says."""
    nodes, parts = np.asarray(instance["nodes"], dtype=np.float64), int(instance["parts"])
    exact = np.sqrt(np.square(nodes[:, None] - nodes[None]).sum(2))
    return np.floor(exact * parts) / parts if parts else exact


def nearest_neighbour(instance: Arrays) -> list[int]:
    """On to the customer nearest in the way, in time and before it closes, that still fits and is reached in time; otherwise another vehicle."""
    given, routes = Times.of(instance), list[list[int]]()
    waiting = np.ones(len(given.demands), dtype=bool)
    waiting[0] = False
    here, left, time = 0, -1, 0.0
    while waiting.any():
        arrival = time + given.ways[here]
        fits = waiting & (given.demands <= left) & (arrival <= given.closes)
        if not fits.any():
            routes.append([])
            here, left, time = 0, given.capacity, float(given.opens[0])
            arrival, fits = time + given.ways[0], waiting
        begin = np.maximum(arrival, given.opens)
        way, until, urgency = NEXT
        cost = way * given.ways[here] + until * (begin - time) + urgency * (given.closes - arrival)
        here = int(np.where(fits, cost, np.inf).argmin())
        left, time = left - int(given.demands[here]), float(begin[here] + given.service[here])
        waiting[here] = False
        routes[-1].append(here - 1)
    return actions_of(routes)


def insertion(instance: Arrays) -> list[int]:
    """I1: one route after the other, begun far from the depot or where service must begin soon; customers are put where they cost least."""
    given = Times.of(instance)
    found = [_inserted(given, settings, first) for first in (given.ways[0], -given.closes) for settings in I1]
    best = min(found, key=lambda routes: _length(given, routes))
    return actions_of([[node - 1 for node in route] for route in best])


def _length(given: Times, routes: list[list[int]]) -> float:
    return float(sum(given.ways[[0, *route], [*route, 0]].sum() for route in routes))


def _inserted(given: Times, settings: Settings, first: Numbers) -> list[list[int]]:
    waiting = set(range(1, len(given.demands)))
    routes = []
    while waiting:
        route = _Route(given, max(waiting, key=lambda node: (first[node], -node)))
        waiting.discard(route.nodes[0])
        while waiting and (best := route.best(np.array(sorted(waiting)), settings)) is not None:
            route.insert(*best)
            waiting.discard(best[0])
        routes.append(route.nodes)
    return routes


@dataclass
class _Route:
    """A route that grows, with the times at which service begins on it and must begin at the latest."""

    given: Times
    seed: int
    nodes: list[int] = field(init=False)
    begin: Numbers = field(init=False)
    latest: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = [self.seed]
        self._timed()

    def _timed(self) -> None:
        given, stops = self.given, [0, *self.nodes, 0]
        begin, latest = [float(given.opens[0])], [float(given.closes[0])]
        for last, node in pairwise(stops):
            begin.append(max(begin[-1] + float(given.service[last] + given.ways[last, node]), float(given.opens[node])))
        for node, following in zip(stops[-2::-1], stops[:0:-1], strict=True):
            latest.append(min(latest[-1] - float(given.ways[node, following] + given.service[node]), float(given.closes[node])))
        self.begin, self.latest = np.array(begin), np.array(latest[::-1])

    def best(self, nodes: NDArray[np.int64], settings: Settings) -> tuple[int, int] | None:
        """The customer to insert, and behind how many others; None where there is room or time for none."""
        given, stops = self.given, np.array([0, *self.nodes, 0])
        nodes = nodes[given.demands[nodes] + given.demands[stops].sum() <= given.capacity]
        if not len(nodes):
            return None
        last, following = stops[:-1], stops[1:]
        to, on = given.ways[last][:, nodes].T, given.ways[nodes][:, following]
        begin = np.maximum((self.begin[:-1] + given.service[last]) + to, given.opens[nodes][:, None])
        later = begin + given.service[nodes][:, None] + on
        possible = (begin <= given.closes[nodes][:, None]) & (later <= self.latest[1:])
        detour = to + on - settings.saved * given.ways[last, following]
        delay = np.maximum(later, self.begin[1:]) - self.begin[1:]
        cost = np.where(possible, settings.way * detour + (1 - settings.way) * delay, np.inf)
        place = cost.argmin(1)
        worth = settings.far * given.ways[0, nodes] - cost.min(1)
        chosen = int(worth.argmax())
        return (int(nodes[chosen]), int(place[chosen])) if np.isfinite(worth[chosen]) else None

    def insert(self, node: int, place: int) -> None:
        self.nodes.insert(place, node)
        self._timed()


METHODS: dict[str, tuple[str, Any]] = {
    "nearest-neighbour": ("Solomon's nearest neighbour in space and time", nearest_neighbour),
    "insertion": ("Solomon's insertion heuristic I1, the best of eight settings", insertion),
}
