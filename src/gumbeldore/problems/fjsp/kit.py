"""What flexible job shop scheduling brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

from gumbeldore.errors import require, require_positive
from gumbeldore.kits.baselines import OWN, expert
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, Record, SolutionFormat
from gumbeldore.kits.mixture import any_of, numbers
from gumbeldore.local_search.compiling import where_compiled
from gumbeldore.problem import Problem
from gumbeldore.problems.fjsp.baselines import BASELINES, searched
from gumbeldore.problems.fjsp.distributions import Distribution
from gumbeldore.problems.fjsp.experts import EXPERTS, WARM_STARTED
from gumbeldore.problems.fjsp.files import FLEXIBLE, GENERAL
from gumbeldore.problems.fjsp.improving import local_search
from gumbeldore.problems.fjsp.instances import KIND, STANDARD, FJSPGenerator, verify
from gumbeldore.problems.fjsp.network import FJSPPolicy
from gumbeldore.problems.fjsp.problem import FJSP
from gumbeldore.problems.fjsp.schedules import EXPORTS
from gumbeldore.problems.fjsp.verify import build_schedule, operations
from gumbeldore.problems.gantt import plot_schedule
from gumbeldore.problems.intervals import Interval


@dataclass(frozen=True)
class FlexibleJobShops:
    """Random flexible job shops. Several numbers of jobs or machines: each epoch draws one of their combinations."""

    jobs: int | tuple[int, ...] = 10
    machines: int | tuple[int, ...] = 5
    times: Distribution = "sd1"  # how the literature draws them

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        sizes = product(numbers("jobs", self.jobs), numbers("machines", self.machines))
        return any_of(FJSP(jobs, machines, self.times) for jobs, machines in sizes)


@dataclass(frozen=True)
class FlexibleJobShopSize:
    """Size of the flexible job shop's transformer."""

    d: int = 64  # width
    pairs: int = 3  # of a job-wise and a machine-wise layer
    heads: int = 8
    ff: int = 256  # width of the feed-forward part
    actions: Literal["all", "active"] = "active"  # active: operations begin before any other could have ended
    assignment_weight: float = 0.0  # of the auxiliary loss: predicting the machine of every operation; 0: off

    def __post_init__(self) -> None:
        require_positive(d=self.d, pairs=self.pairs, heads=self.heads, ff=self.ff)
        require(self.d % self.heads == 0, f"`d` must be a multiple of `heads`, got d={self.d} and heads={self.heads}.")
        weight = self.assignment_weight
        require(0 <= weight < float("inf"), f"`assignment_weight` must be a number from 0 on (0: off), got {weight}.")


def _schedule(instance: Arrays, actions: Sequence[int]) -> list[Interval]:
    times = instance["times"]
    return build_schedule(operations(times), [divmod(int(action), times.shape[2]) for action in actions])


def _record(instance: Arrays, actions: Sequence[int]) -> Record:
    intervals = _schedule(instance, actions)
    return {
        "jobs": [interval.job for interval in intervals],
        "machines": [interval.machine for interval in intervals],
        "makespan": max(interval.end for interval in intervals),
    }


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    plot_schedule(path, _schedule(instance, actions), title)


KIT = Kit(
    "fjsp",
    "flexible job shop scheduling",
    problem=FlexibleJobShops(),
    architectures={"pairs": Architecture(FJSPPolicy, FlexibleJobShopSize())},
    cost="makespan",
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(verify, _record, draw, "schedule.png"),
    instances=KIND,
    generator=FJSPGenerator,
    standard=STANDARD,
    experts={**EXPERTS, OWN: expert(searched)},
    baselines=BASELINES,
    warm_started=WARM_STARTED,
    formats=(FLEXIBLE, GENERAL),
    exports=EXPORTS,
    local_search=where_compiled(local_search),
)
