"""What vehicle routing with time windows brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from gumbeldore.kits.baselines import OWN, expert
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, SolutionFormat
from gumbeldore.kits.mixture import any_of, numbers
from gumbeldore.local_search.compiling import where_compiled
from gumbeldore.networks.features import ComposedSize, read
from gumbeldore.networks.layers import TransformerSize
from gumbeldore.problem import Problem
from gumbeldore.problems.route_plot import plot_routes
from gumbeldore.problems.routes import route_exports, routes
from gumbeldore.problems.vrptw.baselines import BASELINES
from gumbeldore.problems.vrptw.experts import EXPERTS, WARM_STARTED
from gumbeldore.problems.vrptw.files import SOLOMON, VRPLIB
from gumbeldore.problems.vrptw.improving import TimedRouteImprovement, searched
from gumbeldore.problems.vrptw.instances import KIND, STANDARD, VRPTWGenerator, verify
from gumbeldore.problems.vrptw.network import VRPTWPolicy
from gumbeldore.problems.vrptw.problem import VRPTW
from gumbeldore.problems.vrptw.verify import schedule


@dataclass(frozen=True)
class TimedSize(ComposedSize, TransformerSize):
    """Size of the BQ network, and what it is composed of."""

    network: ClassVar = VRPTWPolicy

    d: int = 64
    layers: int = 3
    heads: int = 4
    ff: int = 256
    features: tuple[str, ...] = ("windows",)  # by name: distance-bias, frame, windows

    def __post_init__(self) -> None:
        super().__post_init__()
        for feature in read(self.features, VRPTWPolicy.known):
            feature.check(self.d, self.heads)


@dataclass(frozen=True)
class TimedDeliveries:
    """Random customers with time windows. Several numbers of them: each epoch draws one."""

    customers: int | tuple[int, ...] = 100
    capacity: int | None = None  # of the vehicle; none: 30 + customers / 5, and 30 for up to 20 customers
    order: Literal["earliest", "given"] = "earliest"  # which subtour comes next in training examples

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        return any_of(VRPTW(customers, self.capacity, self.order) for customers in numbers("customers", self.customers))


@dataclass(frozen=True)
class TimedRoutes:
    """Routes that begin and end at the depot. Customers are counted from 0."""

    customers: list[int]  # in the order of their visits
    via_depot: list[bool]  # whether the vehicle comes from the depot
    routes: list[list[int]]  # the same: the customers of each route
    begins: list[list[float]]  # when service begins there


def record(instance: Arrays, actions: Sequence[int]) -> TimedRoutes:
    found, parts = routes(actions), int(instance["parts"])
    nodes, windows, service = (instance[name].tolist() for name in ("nodes", "windows", "service"))
    begins = [[visit.begin for visit in schedule(nodes, windows, service, route, parts)[:-1]] for route in found]
    return TimedRoutes([action // 2 for action in actions], [bool(action % 2) for action in actions], found, begins)


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    plot_routes(path, instance["nodes"], routes(actions), title)


KIT = Kit(
    "vrptw",
    "vehicle routing with time windows",
    problem=TimedDeliveries(),
    architectures={"bq": Architecture(VRPTWPolicy, TimedSize(), "BQ network")},
    cost="length of all subtours",
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(verify, record, draw, "routes.png"),
    instances=KIND,
    generator=VRPTWGenerator,
    standard=STANDARD,
    experts={**EXPERTS, OWN: expert(searched)},
    baselines=BASELINES,
    warm_started=WARM_STARTED,
    formats=(SOLOMON, VRPLIB),
    exports=route_exports(verify),
    restrict=lambda problem, nearest: replace(problem, nearest=nearest),
    local_search=where_compiled(TimedRouteImprovement),
)
