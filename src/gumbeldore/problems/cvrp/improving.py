"""Local search of one CVRP instance, by the distances of its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gumbeldore.kits.improving import LocalSearch, Repeated, verified_cost
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.improve import improve_routes
from gumbeldore.problems.cvrp.baselines import savings
from gumbeldore.problems.cvrp.instances import verify


def local_search(given: Instance, seed: int, begin: Sequence[int] | None) -> LocalSearch:
    """Strings of customers are taken out and put back, from the routes by savings if there are no others."""
    points, demands, capacity = (
        torch.as_tensor(np.asarray(given.unit[name]))[None] for name in ("nodes", "demands", "capacity")
    )

    def polish(actions: list[int], seed: int, rounds: int) -> list[int]:
        seeds = torch.tensor([seed])
        return improve_routes(points, demands, capacity, torch.tensor([actions]), seeds, rounds)[0].tolist()

    cost = given.cost or verified_cost(given.arrays, verify)
    return Repeated(polish, cost, savings(given.arrays) if begin is None else begin, seed)
