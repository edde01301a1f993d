"""A problem with a matrix between its items, as a kit in one file: the asymmetric travelling salesman. Its network is a `MatrixPolicy`.

gumbeldore check examples/asymmetric_tour.py:KIT
gumbeldore train examples/asymmetric_tour.py:KIT --folder runs/asymmetric
gumbeldore solve examples/asymmetric_tour.py:KIT --policy runs/asymmetric/policy.safetensors --count 5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor

from gumbeldore import Problem, State
from gumbeldore.kits import Architecture, Features, Kit, MatrixPolicy, MatrixSize, SolutionFormat, Verdict


@dataclass(frozen=True)
class AsymmetricState(State):
    """Tours that begin at city 0, stand at `current`, and return in the end."""

    per_instance: ClassVar[tuple[str, ...]] = ("times",)

    times: Tensor  # batch city city: from, to
    current: Tensor  # row
    visited: Tensor  # row city
    length: Tensor  # row


@dataclass(frozen=True)
class AsymmetricTour(Problem[AsymmetricState]):
    """Visit all cities once and return to city 0 in the least time, which depends on the direction. Action: the next city.

    Random times are uniform in (0, 1), then made as short as the shortest path, as in the literature on ATSP.
    """

    cities: int = 20

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> AsymmetricState:
        times = torch.rand(count, self.cities, self.cities, generator=generator, dtype=torch.float64)
        times.diagonal(dim1=1, dim2=2).zero_()
        for city in range(self.cities):  # Floyd and Warshall
            times = torch.minimum(times, times[:, :, city, None] + times[:, None, city])
        return self.instances(times.to(device))

    def instances(self, times: Tensor) -> AsymmetricState:
        first = torch.zeros(len(times), dtype=torch.long, device=times.device)
        visited = torch.zeros(times.shape[:2], dtype=torch.bool, device=times.device)
        visited[:, 0] = True
        return AsymmetricState(
            torch.arange(len(times), device=times.device), times, first, visited, times.new_zeros(len(times))
        )

    def mask(self, state: AsymmetricState) -> Tensor:
        return ~state.visited

    def done(self, state: AsymmetricState) -> Tensor:
        return state.visited.all(1)

    def step(self, state: AsymmetricState, action: Tensor) -> AsymmetricState:
        action = action.where(~self.done(state), state.current)
        length = state.length + state.times[state.instance, state.current, action]
        return replace(state, current=action, visited=state.visited.scatter(1, action[:, None], True), length=length)

    def objective(self, state: AsymmetricState) -> Tensor:
        return -(state.length + state.times[state.instance, state.current, 0])

    def horizon(self, state: AsymmetricState) -> int:
        return int((~state.visited).sum(1).max())


class AsymmetricPolicy(MatrixPolicy):
    """A city by the way there from where we are, and the way back to the start from there; between two cities, the ways there and back."""

    item_features, pair_features = 2, 2

    def features(self, state: AsymmetricState) -> Features:
        there, back = state.times[state.instance, state.current], state.times[state.instance, :, 0]
        return Features(self.scaled(torch.stack([there, back], -1), state), ~state.visited)

    def pairs(self, state: AsymmetricState) -> Tensor:
        return self.scaled(torch.stack([state.times, state.times.transpose(1, 2)], -1), state)

    def scaled(self, times: Tensor, state: AsymmetricState) -> Tensor:
        """A usual time on a good tour is about 1."""
        return times * state.times.shape[1] / 2


def verify(instance: Any, actions: Sequence[int]) -> Verdict:
    times, tour = instance["times"], [0, *actions, 0]
    if sorted(actions) != list(range(1, len(times))):
        return Verdict.infeasible(f"a tour visits each of the cities 1 .. {len(times) - 1} once, got {list(actions)}")
    return Verdict(True, -float(sum(times[a, b] for a, b in pairwise(tour))))


KIT = Kit(
    "asymmetric",
    "asymmetric travelling salesman",
    problem=AsymmetricTour(),
    architectures={"matrix": Architecture(AsymmetricPolicy, MatrixSize())},
    cost="time",
    solution_format=SolutionFormat(verify, lambda instance, actions: {"tour": [0, *actions]}),
)
