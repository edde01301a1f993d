"""Local search of one flexible job shop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gumbeldore.kits.improving import LocalSearch, Repeated, verified_cost
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.flexible import improve_flexible
from gumbeldore.problems.fjsp.baselines import RULES, dispatch
from gumbeldore.problems.fjsp.instances import verify


def local_search(given: Instance, seed: int, begin: Sequence[int] | None) -> LocalSearch:
    """Tabu search, from the schedule by most work remaining if there is no other."""
    times = torch.as_tensor(np.asarray(given.arrays["times"]))[None]

    def polish(actions: list[int], seed: int, rounds: int) -> list[int]:
        return improve_flexible(times, torch.tensor([actions]), torch.tensor([seed]), rounds)[0].tolist()

    cost = given.cost or verified_cost(given.arrays, verify)
    return Repeated(polish, cost, dispatch(RULES["mwkr"][1], given.arrays) if begin is None else begin, seed)
