"""Local search of one job shop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gumbeldore.kits.improving import LocalSearch, Repeated, verified_cost
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.improve import improve_schedules
from gumbeldore.problems.jssp.baselines import dispatch, mwkr
from gumbeldore.problems.jssp.instances import verify


def local_search(given: Instance, seed: int, begin: Sequence[int] | None) -> LocalSearch:
    """Tabu search, from the schedule by most work remaining if there is no other."""
    times, machines = (torch.as_tensor(np.asarray(given.arrays[name]))[None] for name in ("times", "machines"))

    def polish(actions: list[int], seed: int, rounds: int) -> list[int]:
        return improve_schedules(times, machines, torch.tensor([actions]), torch.tensor([seed]), rounds)[0].tolist()

    cost = given.cost or verified_cost(given.arrays, verify)
    return Repeated(polish, cost, dispatch(mwkr, given.arrays) if begin is None else begin, seed)
