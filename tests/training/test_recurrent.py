"""What a network may remember: nothing that trainable weights computed on the way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from gumbeldore import ContractError, Greedy, Network, Problem, State, TrainingSettings, check_problem, self_improve


@dataclass(frozen=True)
class Walk(State):
    """Steps to the left or right, with a hidden vector."""

    per_instance: ClassVar[tuple[str, ...]] = ()

    place: Tensor
    taken: Tensor
    hidden: Tensor


@dataclass(frozen=True)
class Walking(Problem[Walk]):
    """Three steps, each +1 or -1; the further to the right the better. `cell` may compute a hidden vector on the way."""

    cell: nn.Module | None = field(default=None, compare=False)

    def generate(self, count: int, *, generator: torch.Generator, device: Any = "cpu") -> Walk:
        none = torch.zeros(count, dtype=torch.long)
        return Walk(torch.arange(count), none, none, torch.rand(count, 1, generator=generator))

    def mask(self, state: Walk) -> Tensor:
        return torch.ones(state.row_count, 2, dtype=torch.bool)

    def step(self, state: Walk, action: Tensor) -> Walk:
        moving = ~self.done(state)
        hidden = state.hidden if self.cell is None else self.cell(state.hidden).where(moving[:, None], state.hidden)
        place = state.place + (2 * action - 1) * moving
        return replace(state, place=place, taken=state.taken + moving, hidden=hidden)

    def done(self, state: Walk) -> Tensor:
        return state.taken >= 3

    def objective(self, state: Walk) -> Tensor:
        return state.place.double()

    def horizon(self, state: Walk) -> int:
        return int((3 - state.taken).max())


class Hidden(Walking):
    """Keeps the weights where nobody looks."""

    def step(self, state: Walk, action: Tensor) -> Walk:
        return replace(super().step(state, action), hidden=CELL(state.hidden))


CELL = nn.Linear(1, 1)


class Reader(Network):
    """Reads the hidden vector, and changes it if it is told to."""

    def __init__(self, changes: bool = False) -> None:
        super().__init__()
        self.config = {"changes": changes}
        self.out = nn.Linear(1, 2)

    def forward(self, state: Walk, context: None = None) -> Tensor:
        if self.config["changes"] and torch.is_grad_enabled():
            state.hidden.add_(1)
        return self.out(state.hidden)


def train(problem: Walking, policy: Network) -> list[Any]:
    validation = Walking().generate(4, generator=torch.Generator().manual_seed(0))
    settings = TrainingSettings(epochs=1, instances=4, batches=2, batch_size=4)
    return list(self_improve(problem, policy, Greedy(), validation=validation, settings=settings))


def test_plain_numbers_in_the_state_are_fine() -> None:
    check_problem(Walking())
    assert len(train(Walking(), Reader())) == 1


def test_a_problem_with_trainable_weights_is_refused() -> None:
    with pytest.raises(
        ContractError, match=r"`Walking.cell` must not be trainable, got a Linear. Training replays solutions without"
    ):
        check_problem(Walking(nn.Linear(1, 1)))
    with pytest.raises(ContractError, match=r"`Walking.cell` must not be trainable"):
        train(Walking(nn.Linear(1, 1)), Reader())


def test_frozen_weights_are_fine() -> None:
    frozen = nn.Linear(1, 1).requires_grad_(False)
    check_problem(Walking(frozen))
    assert len(train(Walking(frozen), Reader())) == 1


def test_a_hidden_vector_of_trainable_weights_is_refused_wherever_they_are() -> None:
    with pytest.raises(ContractError, match=r"`Walk.hidden` must not come from trainable weights"):
        check_problem(Hidden())
    with pytest.raises(ContractError, match=r"`Walk.hidden` must not come from trainable weights"):
        train(Hidden(), Reader())


def test_a_policy_that_changes_the_state_is_refused() -> None:
    with pytest.raises(ContractError, match=r"`Reader` must not change the state that it is given"):
        train(Walking(), Reader(changes=True))
