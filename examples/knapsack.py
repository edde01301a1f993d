"""A problem of your own in one file: the 0/1 knapsack, its policy, the conformance check, training and solving.

Run it: python examples/knapsack.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from gumbeldore import Gumbeldore, Problem, State, TrainingSettings, check_problem, self_improve
from gumbeldore.kits import Features, SetPolicy


@dataclass(frozen=True)
class KnapsackState(State):
    """Which items are in the bag. Weights and values belong to the instance, the rest to each row."""

    per_instance: ClassVar[tuple[str, ...]] = ("weights", "values")

    weights: Tensor  # batch item
    values: Tensor  # batch item
    packed: Tensor  # row item
    room: Tensor  # row: capacity left


@dataclass(frozen=True)
class Knapsack(Problem[KnapsackState]):
    """Pack items of the greatest total value into a bag that holds a quarter of the total weight.

    Action: the next item to pack, among those that fit. A bag is done when nothing fits any more.
    """

    items: int = 20

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> KnapsackState:
        weights, values = torch.rand(2, count, self.items, generator=generator).to(device)
        weights = 0.05 + weights
        packed = torch.zeros(count, self.items, dtype=torch.bool, device=device)
        return KnapsackState(torch.arange(count, device=device), weights, values, packed, weights.sum(1) / 4)

    def mask(self, state: KnapsackState) -> Tensor:
        return ~state.packed & (state.weights[state.instance] <= state.room[:, None])

    def done(self, state: KnapsackState) -> Tensor:
        return ~self.mask(state).any(1)

    def step(self, state: KnapsackState, action: Tensor) -> KnapsackState:
        chosen = nn.functional.one_hot(action, state.packed.shape[1]).bool() & ~self.done(state)[:, None]
        weight = (state.weights[state.instance] * chosen).sum(1)
        return replace(state, packed=state.packed | chosen, room=state.room - weight)

    def objective(self, state: KnapsackState) -> Tensor:
        return (state.values[state.instance] * state.packed).sum(1)

    def horizon(self, state: KnapsackState) -> int:
        return state.packed.shape[1]


class KnapsackPolicy(SetPolicy):
    """Sees the value and the weight of every item that still fits, and the room left."""

    item_features, whole_features = 2, 1

    def features(self, state: KnapsackState) -> Features:
        fits = ~state.packed & (state.weights[state.instance] <= state.room[:, None])
        items = torch.stack([state.weights[state.instance], state.values[state.instance]], -1)
        return Features(items, fits, state.room[:, None])


def main(epochs: int = 10) -> list[float]:
    torch.manual_seed(0)
    problem, policy = Knapsack(), KnapsackPolicy(d=32, layers=2, ff=64)
    check_problem(problem)
    validation = problem.generate(200, generator=torch.Generator().manual_seed(1))
    settings = TrainingSettings(epochs=epochs, instances=100, batches=50, batch_size=128, learning_rate=1e-3)
    history = []
    for epoch in self_improve(problem, policy, Gumbeldore(16, 2, sigma=1.0), validation=validation, settings=settings):
        print(f"epoch {epoch.index}: loss {epoch.loss:.3f}, greedy value {epoch.validation:.3f}")
        history.append(epoch.validation)
    solutions = Gumbeldore(32, 4, sigma=1.0)(problem, policy, validation, generator=torch.Generator().manual_seed(2))
    print(f"Gumbeldore 32 x 4: value {solutions.best_objective.mean().item():.3f}")
    return history


if __name__ == "__main__":
    main()
