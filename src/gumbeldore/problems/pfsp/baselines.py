"""Orders that nothing has learned: index rules, insertion, iterated greedy, and CP-SAT."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gumbeldore.kits.baselines import constructive, local_search, solver
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search.permutations import improve_permutations, insert_jobs
from gumbeldore.problems.pfsp.experts import pfsp_by_ortools


def _by_work(instance: Arrays) -> list[int]:
    """The most work first."""
    return np.argsort(-instance["times"].sum(1), kind="stable").tolist()


def by_slope(instance: Arrays) -> list[int]:
    """Jobs whose times grow from machine to machine first (Palmer 1965)."""
    times: NDArray[Any] = instance["times"]
    machines = times.shape[1]
    return np.argsort(-(times * (2 * np.arange(1, machines + 1) - machines - 1)).sum(1), kind="stable").tolist()


def neh(instance: Arrays) -> list[int]:
    """Jobs are inserted where they fit best, those with the most work first (Nawaz, Enscore and Ham 1983)."""
    return insert_jobs(_times(instance), torch.tensor([_by_work(instance)]))[0].tolist()


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """NEH, then iterated greedy: `limit.work` destructions per job."""
    begin = torch.tensor([neh(instance)])
    rounds = int((limit.work or 0) * begin.shape[1])
    return improve_permutations(_times(instance), begin, torch.tensor([seed]), rounds)[0].tolist()


def _times(instance: Arrays) -> torch.Tensor:
    return torch.as_tensor(np.asarray(instance["times"]))[None]


RULES = {
    "work": ("the most work first", _by_work),
    "palmer": ("Palmer's slope index: times that grow from machine to machine first", by_slope),
    "neh": ("NEH: insertion where it fits best, the most work first", neh),
}

BASELINES = {
    **{name: constructive(summary, partial(rule)) for name, (summary, rule) in RULES.items()},
    "local-search": local_search("NEH, then our compiled iterated greedy", searched, 100, "destructions per job"),
    "cpsat": solver("OR-Tools CP-SAT on one core", pfsp_by_ortools, "ortools", "deterministic time", random=False),
}
