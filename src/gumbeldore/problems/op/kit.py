"""What the orienteering problem brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from gumbeldore.kits.baselines import OWN, expert
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, SolutionFormat
from gumbeldore.kits.mixture import any_of, numbers
from gumbeldore.local_search.compiling import where_compiled
from gumbeldore.networks.features import ComposedSize, read
from gumbeldore.networks.layers import TransformerSize
from gumbeldore.problem import Problem
from gumbeldore.problems.op.baselines import BASELINES, searched
from gumbeldore.problems.op.experts import EXPERTS, WARM_STARTED
from gumbeldore.problems.op.files import OPLIB
from gumbeldore.problems.op.improving import TourImprovement
from gumbeldore.problems.op.instances import KIND, STANDARD, OPGenerator, verify
from gumbeldore.problems.op.network import OPPolicy
from gumbeldore.problems.op.plot import plot_prizes
from gumbeldore.problems.op.problem import OP
from gumbeldore.problems.op.tours import EXPORTS


@dataclass(frozen=True)
class PrizeSize(ComposedSize, TransformerSize):
    """Size of the BQ network, and what it is composed of."""

    network: ClassVar = OPPolicy

    d: int = 192
    heads: int = 12
    features: tuple[str, ...] = ()  # by name: distance-bias, frame, prize-per-way

    def __post_init__(self) -> None:
        super().__post_init__()
        for feature in read(self.features, OPPolicy.known):
            feature.check(self.d, self.heads)


@dataclass(frozen=True)
class Outings:
    """Random customers. Several numbers of them, or kinds of prizes: each epoch draws one of their combinations."""

    customers: int | tuple[int, ...] = 100
    prizes: str | tuple[str, ...] = "distance"  # uniform, constant
    budget: float | None = None  # the longest tour; without it 2, 3, 4 for 20, 50, 100 customers

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        kinds = (self.prizes,) if isinstance(self.prizes, str) else self.prizes
        sizes = product(numbers("customers", self.customers), kinds)
        return any_of(OP(customers, prizes, self.budget) for customers, prizes in sizes)


@dataclass(frozen=True)
class Outing:
    """A tour from the depot, node 0, and back."""

    tour: list[int]  # the nodes from 1 in the order of their visits


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    plot_prizes(path, instance["nodes"], instance["prizes"], [action for action in actions if action], title)


KIT = Kit(
    "op",
    "orienteering",
    problem=Outings(),
    architectures={"bq": Architecture(OPPolicy, PrizeSize(), "BQ network")},
    cost="prize",
    maximises=True,
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(verify, lambda instance, actions: Outing([a for a in actions if a]), draw, "tour.png"),
    instances=KIND,
    generator=OPGenerator,
    standard=STANDARD,
    experts={**EXPERTS, OWN: expert(searched)},
    baselines=BASELINES,
    warm_started=WARM_STARTED,
    formats=(OPLIB,),
    exports=EXPORTS,
    local_search=where_compiled(TourImprovement),
)
