"""Schedules that nothing has learned: dispatching rules, our own local search, and CP-SAT.

A dispatching rule never keeps a machine idle while an operation waits for it: of the operations that could start earliest, the rule
picks one, the first job's where it has no preference (non-delay schedules, as in Haupt, "A survey of priority rule-based scheduling",
OR Spektrum 11, 1989).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.kits.baselines import constructive, local_search, solver
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search.schedules import ScheduleSearch
from gumbeldore.problems.jssp.experts import jssp_by_ortools

Numbers = NDArray[Any]  # one per job


@dataclass(frozen=True)
class Waiting:
    """What a rule may look at, for each job's next operation."""

    time: Numbers  # how long it takes
    arrival: Numbers  # since when it waits: the end of the job's operation before
    work: Numbers  # of the job, this operation included
    operations: Numbers  # of the job, this one included


Rule = Callable[[Waiting], Numbers]  # the smallest number goes first


def dispatch(rule: Rule, instance: Arrays) -> list[int]:
    """The jobs in the order in which their operations are started."""
    times, machines = np.asarray(instance["times"]), np.asarray(instance["machines"])
    jobs, operations = times.shape
    work = np.cumsum(times[:, ::-1], axis=1)[:, ::-1]  # from each operation on
    following, arrival, free = np.zeros(jobs, dtype=np.int64), np.zeros(jobs), np.zeros(operations)
    every, order = np.arange(jobs), []
    for _ in range(jobs * operations):
        place = every, np.minimum(following, operations - 1)
        start = np.where(following < operations, np.maximum(arrival, free[machines[place]]), np.inf)
        rank = rule(Waiting(times[place], arrival, work[place], operations - following))
        job = int(np.where(start == start.min(), rank, np.inf).argmin())
        machine, end = machines[job, following[job]], start[job] + times[job, following[job]]
        arrival[job] = free[machine] = end
        following[job] += 1
        order.append(job)
    return order


def spt(waiting: Waiting) -> Numbers:
    return waiting.time


def lpt(waiting: Waiting) -> Numbers:
    return -waiting.time


def mwkr(waiting: Waiting) -> Numbers:
    return -waiting.work


def lwkr(waiting: Waiting) -> Numbers:
    return waiting.work


def mopnr(waiting: Waiting) -> Numbers:
    return -waiting.operations


def lopnr(waiting: Waiting) -> Numbers:
    return waiting.operations


def fifo(waiting: Waiting) -> Numbers:
    return waiting.arrival


def est(waiting: Waiting) -> Numbers:
    return np.zeros(len(waiting.time))


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """The most work remaining first, then tabu search: `limit.work` moves per operation."""
    times, machines = (np.asarray(instance[name]) for name in ("times", "machines"))
    search = ScheduleSearch(times, machines, seed=seed, schedule=dispatch(mwkr, instance))
    search.run(work=limit.units(times.size), seconds=limit.seconds)
    return search.best.tolist()


RULES: dict[str, tuple[str, Rule]] = {
    "spt": ("the shortest processing time first", spt),
    "lpt": ("the longest processing time first", lpt),
    "mwkr": ("the most work remaining first", mwkr),
    "lwkr": ("the least work remaining first", lwkr),
    "mopnr": ("the most operations remaining first", mopnr),
    "lopnr": ("the fewest operations remaining first", lopnr),
    "fifo": ("first in, first out", fifo),
    "est": ("the earliest possible start, in the order of the jobs", est),
}

BASELINES = {
    **{name: constructive(f"dispatching: {summary}", partial(dispatch, rule)) for name, (summary, rule) in RULES.items()},
    "local-search": local_search(
        "the most work remaining first, then our compiled tabu search", searched, 10, "moves per operation", clock=True
    ),
    "cpsat": solver("OR-Tools CP-SAT on one core", jssp_by_ortools, "ortools", "deterministic time", random=False),
}
