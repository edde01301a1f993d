"""Local search of one permutation flow shop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gumbeldore.kits.improving import LocalSearch, Repeated, verified_cost
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.permutations import improve_permutations
from gumbeldore.problems.pfsp.baselines import neh
from gumbeldore.problems.pfsp.instances import verify


def local_search(given: Instance, seed: int, begin: Sequence[int] | None) -> LocalSearch:
    """Iterated greedy, from NEH's order if there is no other."""
    times = torch.as_tensor(np.asarray(given.arrays["times"]))[None]

    def polish(actions: list[int], seed: int, rounds: int) -> list[int]:
        return improve_permutations(times, torch.tensor([actions]), torch.tensor([seed]), rounds)[0].tolist()

    cost = given.cost or verified_cost(given.arrays, verify)
    return Repeated(polish, cost, neh(given.arrays) if begin is None else begin, seed)
