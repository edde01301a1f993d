"""What the permutation flow shop brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from gumbeldore.kits.baselines import OWN, expert
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, Record, SolutionFormat
from gumbeldore.kits.mixture import any_of, numbers
from gumbeldore.local_search.compiling import where_compiled
from gumbeldore.networks.set_transformer import SetSize
from gumbeldore.problem import Problem
from gumbeldore.problems.gantt import plot_schedule
from gumbeldore.problems.pfsp.baselines import BASELINES, searched
from gumbeldore.problems.pfsp.experts import EXPERTS, WARM_STARTED
from gumbeldore.problems.pfsp.files import FLOW_SHOP, FLOW_SHOP_BY_JOB
from gumbeldore.problems.pfsp.improving import local_search
from gumbeldore.problems.pfsp.instances import KIND, STANDARD, PFSPGenerator, verify
from gumbeldore.problems.pfsp.network import PFSPPolicy
from gumbeldore.problems.pfsp.problem import PFSP
from gumbeldore.problems.pfsp.schedules import EXPORTS
from gumbeldore.problems.pfsp.taillard import SIZES, best_makespans
from gumbeldore.problems.pfsp.verify import build_schedule


@dataclass(frozen=True)
class FlowShops:
    """Random permutation flow shops. Several numbers of jobs or machines: each epoch draws one of their combinations."""

    jobs: int | tuple[int, ...] = 20
    machines: int | tuple[int, ...] = 5

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        return any_of(PFSP(*size) for size in product(numbers("jobs", self.jobs), numbers("machines", self.machines)))


def _record(instance: Arrays, actions: Sequence[int]) -> Record:
    schedule = build_schedule(instance["times"].tolist(), actions)
    return {"order": list(actions), "makespan": max(interval.end for interval in schedule)}


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    plot_schedule(path, build_schedule(instance["times"].tolist(), actions), title)


KIT = Kit(
    "pfsp",
    "permutation flow shop scheduling",
    problem=FlowShops(),
    architectures={"set": Architecture(PFSPPolicy, SetSize())},
    cost="makespan",
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(verify, _record, draw, "schedule.png"),
    instances=KIND,
    generator=PFSPGenerator,
    standard=STANDARD,
    known={f"taillard-{jobs}x{machines}": partial(best_makespans, jobs, machines) for jobs, machines in SIZES},
    experts={**EXPERTS, OWN: expert(searched)},
    baselines=BASELINES,
    warm_started=WARM_STARTED,
    formats=(FLOW_SHOP, FLOW_SHOP_BY_JOB),
    exports=EXPORTS,
    local_search=where_compiled(local_search),
)
