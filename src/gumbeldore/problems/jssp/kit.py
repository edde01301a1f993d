"""What job shop scheduling brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

from gumbeldore.errors import require, require_positive
from gumbeldore.kits.baselines import OWN, expert
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, SolutionFormat
from gumbeldore.kits.mixture import any_of, numbers
from gumbeldore.local_search.compiling import where_compiled
from gumbeldore.networks.features import ComposedSize, read
from gumbeldore.problem import Problem
from gumbeldore.problems.gantt import plot_schedule
from gumbeldore.problems.jssp import published
from gumbeldore.problems.jssp.baselines import BASELINES, searched
from gumbeldore.problems.jssp.experts import EXPERTS, WARM_STARTED
from gumbeldore.problems.jssp.files import JOB_SHOP
from gumbeldore.problems.jssp.improving import ScheduleImprovement
from gumbeldore.problems.jssp.instances import KIND, STANDARD, TAILLARD_SIZES, JSSPGenerator, verify
from gumbeldore.problems.jssp.known import taillard_makespans
from gumbeldore.problems.jssp.network import JSSPPolicy
from gumbeldore.problems.jssp.problem import JSSP
from gumbeldore.problems.jssp.schedules import EXPORTS
from gumbeldore.problems.jssp.verify import build_schedule


@dataclass(frozen=True)
class JobShops:
    """Random job shops. Several numbers of jobs or machines: each epoch draws one of their combinations."""

    jobs: int | tuple[int, ...] = 15
    machines: int | tuple[int, ...] = 15

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        return any_of(JSSP(*size) for size in product(numbers("jobs", self.jobs), numbers("machines", self.machines)))


@dataclass(frozen=True)
class JobShopSize(ComposedSize):
    """Size of the job shop's transformer; the defaults are the paper's."""

    network: ClassVar = JSSPPolicy

    d: int = 64  # width
    pairs: int = 3  # of a job-wise and a machine-wise layer
    heads: int = 8
    ff: int = 256  # width of the feed-forward part
    features: tuple[str, ...] = ()  # by name: bounds
    actions: Literal["all", "active"] = (
        "all"  # active: only active schedules, in which no operation could begin earlier by itself
    )
    successor_weight: float = (
        0.0  # of the auxiliary loss: predicting the next operation on each machine; 0: off, as in the paper
    )

    def __post_init__(self) -> None:
        require_positive(d=self.d, pairs=self.pairs, heads=self.heads, ff=self.ff)
        require(self.d % self.heads == 0, f"`d` must be a multiple of `heads`, got d={self.d} and heads={self.heads}.")
        read(self.features, JSSPPolicy.known)
        weight = self.successor_weight
        require(0 <= weight < float("inf"), f"`successor_weight` must be a number from 0 on (0: off), got {weight}.")


@dataclass(frozen=True)
class JobSequence:
    """A schedule as the order in which operations are started."""

    jobs: list[int]  # whose next operation it is, as early as its job and its machine allow
    makespan: float


def _record(instance: Arrays, actions: Sequence[int]) -> JobSequence:
    schedule = build_schedule(instance["times"].tolist(), instance["machines"].tolist(), actions)
    return JobSequence(list(actions), max(interval.end for interval in schedule))


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    plot_schedule(path, build_schedule(instance["times"].tolist(), instance["machines"].tolist(), actions), title)


KIT = Kit(
    "jssp",
    "job shop scheduling",
    problem=JobShops(),
    architectures={"pairs": Architecture(JSSPPolicy, JobShopSize(), published=published.NETWORK)},
    cost="makespan",
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(verify, _record, draw, "schedule.png"),
    instances=KIND,
    generator=JSSPGenerator,
    standard=STANDARD,
    known={f"taillard-{jobs}x{machines}": partial(taillard_makespans, jobs, machines) for jobs, machines in TAILLARD_SIZES},
    experts={**EXPERTS, OWN: expert(searched)},
    baselines=BASELINES,
    warm_started=WARM_STARTED,
    formats=(JOB_SHOP,),
    exports=EXPORTS,
    published=published.DATA,
    local_search=where_compiled(ScheduleImprovement),
)
