"""Tours that nothing has learned: rules, assignments, our own local search, outside solvers."""

from __future__ import annotations

import numpy as np
import torch

from gumbeldore.kits.baselines import constructive, local_search, solver
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search.assignment import assign, look_ahead
from gumbeldore.local_search.matrix_tours import MatrixTourSearch
from gumbeldore.problems.atsp.experts import atsp_by_ortools, atsp_by_pyvrp, atsp_by_routing
from gumbeldore.problems.tours import DISTANCES

_TRIES = 8
_LEANING = 0.1
"""What the bound's growth counts beside the length of a patched tour."""


def nearest_neighbour(instance: Arrays) -> list[int]:
    """From city 0 always on to the nearest unvisited city; of equally near ones to the first."""
    distances = np.array(instance[DISTANCES], dtype=np.float64)
    tour = [0]
    distances[:, 0] = np.inf
    while len(tour) < len(distances):
        tour.append(int(distances[tour[-1]].argmin()))
        distances[:, tour[-1]] = np.inf
    return tour[1:]


def greedy_edge(instance: Arrays) -> list[int]:
    """The shortest edges first, as long as they can belong to one tour."""
    distances = np.asarray(instance[DISTANCES], dtype=np.float64)
    count = len(distances)
    follower, end = np.full(count, -1), np.arange(count)  # of the first and last city of a path, its other end
    reached, joined = np.zeros(count, dtype=bool), 0
    for edge in np.argsort(distances, axis=None, kind="stable").tolist():
        a, b = divmod(edge, count)
        if a == b or follower[a] >= 0 or reached[b] or (end[a] == b and joined < count - 1):
            continue
        follower[a], reached[b], joined = b, True, joined + 1
        first, last = end[a], end[b]
        end[first], end[last] = last, first
    tour = [0]
    while len(tour) < count:
        tour.append(int(follower[tour[-1]]))
    return tour[1:]


def patching(instance: Arrays) -> list[int]:
    """The cycles of the least assignment, the two largest joined until there is one (Karp 1979)."""
    return assign(np.asarray(instance[DISTANCES], dtype=np.float64)[None]).tour[0, 1:].tolist()


def by_assignments(instance: Arrays) -> list[int]:
    """On to the city with the shortest patched tour and the least bound of tours through it, of those that seem best by assignments of what is left.

    It knows what `ATSPPolicy` knows, so it shows what the network adds.
    """
    distances = torch.as_tensor(np.asarray(instance[DISTANCES], dtype=np.float64))[None]
    tour, left, first = [0], list(range(1, distances.shape[1])), torch.zeros(1, dtype=torch.int64)
    while left:
        found = look_ahead(distances, first, torch.tensor([[tour[-1], 0]]), torch.tensor([left]), tries=_TRIES)
        worth = found.detour + _LEANING * found.regret
        tour.append(left.pop(int(worth.masked_fill(found.tried == 0, torch.inf).argmin())))
    return tour[1:]


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """Segments put elsewhere, iterated with double bridges: `limit.work` of them per city."""
    search = MatrixTourSearch(np.asarray(instance[DISTANCES], dtype=np.float64), seed=seed)
    search.run(work=limit.units(len(search.distances)), seconds=limit.seconds)
    return search.best[1:].tolist()


BASELINES = {
    "nearest-neighbour": constructive("on to the nearest unvisited city", nearest_neighbour),
    "greedy-edge": constructive("the shortest edges first", greedy_edge),
    "patching": constructive("cycles of the least assignment, joined (Karp)", patching),
    "assignments": constructive("on to where patched assignments of what is left are shortest", by_assignments),
    "local-search": local_search(
        "our compiled Or-3opt with double bridges, by reduced distances", searched, 10, "double bridges per city", clock=True
    ),
    "pyvrp": solver("PyVRP's iterated local search", atsp_by_pyvrp, "pyvrp", "iterations"),
    "or-tools": solver("OR-Tools routing, guided local search", atsp_by_routing, "ortools", "solutions", random=False),
    "cpsat": solver(
        "OR-Tools CP-SAT, exact for some dozens of cities", atsp_by_ortools, "ortools", "deterministic time", random=False
    ),
}
