"""Tours that nothing has learned: rules, our own local search, outside solvers."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gumbeldore.kits.baselines import constructive, local_search, solver
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search.prizes import PrizeSearch
from gumbeldore.problems.op.experts import op_by_pyvrp
from gumbeldore.problems.op.improving import distances
from gumbeldore.problems.op.instances import DISTANCES
from gumbeldore.solvers.outside import distance_matrix

TRIES = 100
"""Tours by the rule of Tsiligirides, of which the best counts."""
POWER, CHOICES = 4, 4
"""The exponent of prize per way, and among how many nodes each step draws."""


def matrix(instance: Arrays) -> NDArray[np.float64]:
    """The distances between all nodes."""
    if DISTANCES in instance:
        return np.asarray(instance[DISTANCES], dtype=np.float64)
    return distance_matrix(np.asarray(instance["nodes"], dtype=np.float64))


def insertion(instance: Arrays) -> list[int]:
    """The node that brings most for its detour is put in where that is least, while the budget lasts."""
    ways, prizes, budget = matrix(instance), np.asarray(instance["prizes"], dtype=np.float64), float(instance["budget"])
    tour, length, absent = [0, 0], 0.0, np.arange(1, len(prizes))
    while len(absent):
        a, b = np.array(tour[:-1]), np.array(tour[1:])
        detours = ways[a[:, None], absent] + ways[b[:, None], absent] - ways[a, b][:, None]
        place, least = detours.argmin(0), detours.min(0)
        score = np.where(length + least <= budget, prizes[absent] / np.maximum(least, 1e-12 * max(budget, 1e-300)), -1.0)
        best = int(score.argmax())
        if score[best] < 0:
            break
        tour.insert(int(place[best]) + 1, int(absent[best]))
        length += float(least[best])
        absent = np.delete(absent, best)
    return tour[1:]


def greedy(instance: Arrays) -> list[int]:
    """On to the node that brings most for the way there, of those from which the depot can be reached."""
    return _walked(instance, None)[0]


def tsiligirides(instance: Arrays) -> list[int]:
    """The best of some tours that go on to one of the four nodes with the most prize per way, drawn by its fourth power."""
    random = np.random.RandomState(0)
    return max((_walked(instance, random) for _ in range(TRIES)), key=lambda found: found[1])[0]


def _walked(instance: Arrays, random: np.random.RandomState | None) -> tuple[list[int], float]:
    """A tour node by node, and its prize."""
    ways, prizes, budget = matrix(instance), np.asarray(instance["prizes"], dtype=np.float64), float(instance["budget"])
    stops, here, length, free = list[int](), 0, 0.0, np.ones(len(prizes), dtype=bool)
    free[0] = False
    while len(near := np.flatnonzero(free & (length + ways[here] + ways[0] <= budget))):
        score = prizes[near] / np.maximum(ways[here, near], 1e-12)
        if random is None:
            chosen = int(near[score.argmax()])
        else:
            top = np.argsort(-score, kind="stable")[:CHOICES]
            weight = (score[top] / max(score[top[0]], 1e-300)) ** POWER + 1e-12
            chosen = int(near[top[np.searchsorted(np.cumsum(weight / weight.sum()), random.uniform()).clip(max=len(top) - 1)]])
        stops.append(chosen)
        length, here, free[chosen] = length + float(ways[here, chosen]), chosen, False
    return [*stops, 0], float(prizes[stops].sum())


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """Insertion, then nodes are taken out and others put in, `limit.work` times per customer."""
    prizes = np.asarray(instance["prizes"])
    search = PrizeSearch(distances(instance), prizes, float(instance["budget"]), seed=seed)
    search.run(work=limit.units(len(prizes) - 1), seconds=limit.seconds, progress=(0.0, 1.0))
    return [*search.best, 0]


RULES = {
    "greedy": ("on to the node with the most prize per way", greedy),
    "insertion": ("the node with the most prize per detour is put in, while the budget lasts", insertion),
    "tsiligirides": (f"the best of {TRIES} tours drawn by prize per way", tsiligirides),
}

BASELINES = {
    **{name: constructive(summary, partial(rule)) for name, (summary, rule) in RULES.items()},
    "local-search": local_search(
        "insertion, then our compiled removal and reinsertion", searched, 100, "rounds per customer", clock=True
    ),
    "pyvrp": solver("PyVRP's iterated local search, with prizes", op_by_pyvrp, "pyvrp", "iterations"),
}
