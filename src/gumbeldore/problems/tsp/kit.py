"""What the TSP brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from gumbeldore.kits.baselines import OWN, expert
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, SolutionFormat
from gumbeldore.kits.mixture import any_of, numbers
from gumbeldore.kits.verdict import Verdict
from gumbeldore.local_search.compiling import where_compiled
from gumbeldore.networks.features import ComposedSize, read
from gumbeldore.networks.layers import TransformerSize
from gumbeldore.problem import Problem
from gumbeldore.problems.tours import DISTANCES, EXPORTS, Tour, verify_by_matrix
from gumbeldore.problems.tsp import published
from gumbeldore.problems.tsp.baselines import BASELINES, searched
from gumbeldore.problems.tsp.bq import TSPPolicy
from gumbeldore.problems.tsp.experts import EXPERTS, WARM_STARTED
from gumbeldore.problems.tsp.files import TSPLIB
from gumbeldore.problems.tsp.improving import TourImprovement
from gumbeldore.problems.tsp.instances import KIND, STANDARD, TSPGenerator, verify
from gumbeldore.problems.tsp.known import optimal_lengths
from gumbeldore.problems.tsp.lehd import TSPLehdPolicy
from gumbeldore.problems.tsp.plot import plot_tours
from gumbeldore.problems.tsp.points import ARRAY, COLUMNS, JSON
from gumbeldore.problems.tsp.problem import TSP


@dataclass(frozen=True)
class TourSize(ComposedSize, TransformerSize):
    """Size of the BQ network, and what it is composed of."""

    network: ClassVar = TSPPolicy

    features: tuple[str, ...] = ()  # by name: distance-bias, frame, bounds

    def __post_init__(self) -> None:
        super().__post_init__()
        for feature in read(self.features, TSPPolicy.known):
            feature.check(self.d, self.heads)


@dataclass(frozen=True)
class Tours:
    """Random cities. Several numbers of them: each epoch draws one."""

    cities: int | tuple[int, ...] = 100

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        return any_of(TSP(cities) for cities in numbers("cities", self.cities))


def _verify_any(instance: Arrays, actions: Sequence[int]) -> Verdict:
    """By places, or by the distances if those are all that is known."""
    return verify_by_matrix(instance, actions) if DISTANCES in instance else verify(instance, actions)


def compare(path: Path, instance: Arrays, solutions: Sequence[Sequence[int]], titles: Sequence[str]) -> None:
    plot_tours(path, instance["coordinates"], [[0, *actions] for actions in solutions], titles)


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    compare(path, instance, [actions], [title])


KIT = Kit(
    "tsp",
    "travelling salesman",
    problem=Tours(),
    architectures={
        "bq": Architecture(TSPPolicy, TourSize(), "BQ network", published=published.BQ),
        "lehd": Architecture(TSPLehdPolicy, TransformerSize(layers=6), "LEHD network", published=published.LEHD),
    },
    cost="tour length",
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(_verify_any, lambda instance, actions: Tour([0, *actions]), draw, "tour.png", compare),
    instances=KIND,
    generator=TSPGenerator,
    standard=STANDARD,
    known={name: partial(optimal_lengths, name) for name in ("tsp200", "tsp500", "tsp1000")},
    experts={**EXPERTS, OWN: expert(searched)},
    baselines=BASELINES,
    warm_started=WARM_STARTED,
    formats=(TSPLIB, COLUMNS, JSON, ARRAY),
    exports=EXPORTS,
    published=published.DATA,
    restrict=lambda problem, nearest: replace(problem, nearest=nearest),
    local_search=where_compiled(TourImprovement),
)
