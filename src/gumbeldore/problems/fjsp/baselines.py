"""Schedules that nothing has learned: dispatching rules, our own local search, and CP-SAT.

A dispatching rule never keeps a machine idle while an operation could begin on it: of the pairs of a job and a machine that could begin
earliest, the rule chooses the job, the first where it has no preference, and of this job's machines among them the one that ends first
(as in Song et al. 2023). `eet` alone looks at all pairs, and takes the one that ends earliest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gumbeldore.kits.baselines import constructive, local_search, solver
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search.flexible import improve_flexible
from gumbeldore.problems.fjsp.experts import fjsp_by_ortools

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Waiting:
    """What a rule may look at: each job's next operation, on each machine."""

    start: Numbers  # job machine; infinite where it cannot run
    time: Numbers  # job machine; infinite likewise
    arrival: Numbers  # job: since when it waits
    work: Numbers  # job: of the job, this operation included, mean times
    operations: Numbers  # job: of the job, this one included


Rule = Callable[[Waiting], Numbers]  # job machine: the smallest number goes first, of those that could start earliest


def dispatch(rule: Rule, instance: Arrays) -> list[int]:
    """Actions in the order in which operations are started."""
    times = np.asarray(instance["times"], dtype=np.float64)
    times = np.where(times < 0, np.inf, times)
    jobs, longest, machines = times.shape
    exists = np.isfinite(times).any(2)
    mean = np.where(np.isfinite(times), times, 0).sum(2) / np.isfinite(times).sum(2).clip(1)
    work, counts = np.cumsum(mean[:, ::-1], axis=1)[:, ::-1], exists.sum(1)
    following, arrival, free = np.zeros(jobs, dtype=np.int64), np.zeros(jobs), np.zeros(machines)
    every, order = np.arange(jobs), []
    for _ in range(int(counts.sum())):
        place = every, np.minimum(following, longest - 1)
        time = np.where((following < counts)[:, None], times[place], np.inf)
        start = np.where(np.isfinite(time), np.maximum(arrival[:, None], free), np.inf)
        rank = rule(Waiting(start, time, arrival, work[place], counts - following))
        job, machine = divmod(int(rank.argmin()), machines)
        arrival[job] = free[machine] = start[job, machine] + time[job, machine]
        following[job] += 1
        order.append(job * machines + machine)
    return order


def _non_delay(order: Callable[[Waiting], Numbers]) -> Rule:
    """Of the pairs that could start earliest the job that comes first by this order; of its machines the one that ends first."""

    def rule(waiting: Waiting) -> Numbers:
        soonest = np.where(waiting.start == waiting.start.min(), waiting.time, np.inf)
        preferred = np.where(np.isfinite(soonest.min(1)), order(waiting), np.inf)
        job = int(preferred.argmin())
        return np.where(np.arange(len(preferred))[:, None] == job, soonest, np.inf)

    return rule


RULES: dict[str, tuple[str, Rule]] = {
    "spt": ("the shortest processing time first", lambda waiting: _rule_of_pairs(waiting, waiting.time)),
    "eet": ("the earliest end of all", lambda waiting: waiting.start + waiting.time),
    "mwkr": ("the most work remaining first", _non_delay(lambda waiting: -waiting.work)),
    "mopnr": ("the most operations remaining first", _non_delay(lambda waiting: -waiting.operations)),
    "fifo": ("first in, first out", _non_delay(lambda waiting: waiting.arrival)),
}


def _rule_of_pairs(waiting: Waiting, rank: Numbers) -> Numbers:
    return np.where(waiting.start == waiting.start.min(), rank, np.inf)


def _dispatched(name: str, instance: Arrays) -> list[int]:
    """By a rule of that name, which worker processes find by it."""
    return dispatch(RULES[name][1], instance)


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """The most work remaining first, then tabu search: `limit.work` moves per operation."""
    begin = torch.tensor([dispatch(RULES["mwkr"][1], instance)])
    times = torch.as_tensor(np.asarray(instance["times"]))[None]
    return improve_flexible(times, begin, torch.tensor([seed]), int((limit.work or 0) * begin.shape[1]))[0].tolist()


BASELINES = {
    **{name: constructive(f"dispatching: {summary}", partial(_dispatched, name)) for name, (summary, _) in RULES.items()},
    "local-search": local_search(
        "the most work remaining first, then our compiled tabu search", searched, 100, "moves per operation"
    ),
    "cpsat": solver("OR-Tools CP-SAT on one core", fjsp_by_ortools, "ortools", "deterministic time", random=False),
}
