"""Local search of one TSP instance, by the distances of its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gumbeldore.kits.improving import LocalSearch, Repeated, verified_cost
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.improve import improve_tours
from gumbeldore.problems.tsp.baselines import nearest_neighbour
from gumbeldore.problems.tsp.instances import verify


def local_search(given: Instance, seed: int, begin: Sequence[int] | None) -> LocalSearch:
    """2-opt and Or-opt with double bridges, from the tour to the nearest neighbour if there is no other."""
    points = torch.as_tensor(np.asarray(given.unit["coordinates"], dtype=np.float32))[None]

    def polish(actions: list[int], seed: int, rounds: int) -> list[int]:
        tour = improve_tours(points, torch.tensor([[0, *actions]]), torch.tensor([seed]), rounds)[0].tolist()
        first = tour.index(0)
        return [*tour[first + 1 :], *tour[:first]]

    cost = given.cost or verified_cost(given.arrays, verify)
    return Repeated(polish, cost, nearest_neighbour(given.arrays) if begin is None else begin, seed)
