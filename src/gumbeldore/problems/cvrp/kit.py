"""What capacitated vehicle routing brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from gumbeldore.kits.baselines import OWN, expert
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, SolutionFormat
from gumbeldore.kits.mixture import any_of, numbers
from gumbeldore.kits.verdict import Verdict
from gumbeldore.local_search.compiling import where_compiled
from gumbeldore.networks.features import ComposedSize, read
from gumbeldore.networks.layers import TransformerSize
from gumbeldore.problem import Problem
from gumbeldore.problems.cvrp import distances, published
from gumbeldore.problems.cvrp.baselines import BASELINES, searched
from gumbeldore.problems.cvrp.bq import CVRPPolicy
from gumbeldore.problems.cvrp.experts import EXPERTS, WARM_STARTED
from gumbeldore.problems.cvrp.files import CVRPLIB, DISTANCES
from gumbeldore.problems.cvrp.improving import RouteImprovement
from gumbeldore.problems.cvrp.instances import KIND, STANDARD, CVRPGenerator, verify
from gumbeldore.problems.cvrp.lehd import CVRPLehdPolicy
from gumbeldore.problems.cvrp.problem import CVRP
from gumbeldore.problems.route_plot import plot_routes
from gumbeldore.problems.routes import route_exports, routes


@dataclass(frozen=True)
class DeliverySize(ComposedSize, TransformerSize):
    """Size of the BQ network, and what it is composed of."""

    network: ClassVar = CVRPPolicy

    d: int = 192
    heads: int = 12
    features: tuple[str, ...] = ()  # by name: distance-bias, frame, loads, savings

    def __post_init__(self) -> None:
        super().__post_init__()
        for feature in read(self.features, CVRPPolicy.known):
            feature.check(self.d, self.heads)


@dataclass(frozen=True)
class Deliveries:
    """Random customers. Several numbers of them: each epoch draws one."""

    customers: int | tuple[int, ...] = 100
    capacity: int | tuple[int, ...] = 50  # of the vehicle; two numbers: uniform between them; more: several ranges
    order: Literal["fullest", "given"] = "fullest"  # which subtour comes next in training examples

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        return any_of(CVRP(customers, self.capacity, order=self.order) for customers in numbers("customers", self.customers))


@dataclass(frozen=True)
class Routes:
    """Routes that begin and end at the depot. Customers are counted from 0."""

    customers: list[int]  # in the order of their visits
    via_depot: list[bool]  # whether the vehicle comes from the depot
    routes: list[list[int]]  # the same: the customers of each route


def _record(instance: Arrays, actions: Sequence[int]) -> Routes:
    return Routes([action // 2 for action in actions], [bool(action % 2) for action in actions], routes(actions))


def _verify_any(instance: Arrays, actions: Sequence[int]) -> Verdict:
    """By places, or by the distances if those are all that is known."""
    return distances.verify(instance, actions) if DISTANCES in instance else verify(instance, actions)


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    plot_routes(path, instance["nodes"], routes(actions), title)


KIT = Kit(
    "cvrp",
    "capacitated vehicle routing",
    problem=Deliveries(),
    architectures={
        "bq": Architecture(CVRPPolicy, DeliverySize(), "BQ network", published=published.BQ),
        "lehd": Architecture(CVRPLehdPolicy, TransformerSize(layers=6), "LEHD network", published=published.LEHD),
    },
    cost="length of all subtours",
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(_verify_any, _record, draw, "routes.png"),
    instances=KIND,
    generator=CVRPGenerator,
    standard=STANDARD,
    experts={**EXPERTS, OWN: expert(searched)},
    baselines=BASELINES,
    warm_started=WARM_STARTED,
    formats=(CVRPLIB,),
    exports=route_exports(_verify_any),
    published=published.DATA,
    restrict=lambda problem, nearest: replace(problem, nearest=nearest),
    local_search=where_compiled(RouteImprovement),
)
