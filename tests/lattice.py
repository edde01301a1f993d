"""A lattice, on which prefixes meet, and policies that are hashes of what they see of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.problem import Problem, State
from gumbeldore.problems import CVRP, JSSP, TSP, Gomoku
from gumbeldore.search.gumbel import mix

DEPTH = 4


@dataclass(frozen=True)
class LatticeState(State):
    """Steps right and up so far, and what they earned on the way."""

    per_instance: ClassVar[tuple[str, ...]] = ("reward",)

    reward: Float[Tensor, "batch right up 2"]
    right: Int[Tensor, " row"]
    up: Int[Tensor, " row"]
    earned: Float[Tensor, " row"]


class Lattice(Problem[LatticeState]):
    """`DEPTH` steps right or up. After t steps 2^t prefixes have met in t + 1 points."""

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> LatticeState:
        reward = torch.randn(count, DEPTH, DEPTH, 2, generator=generator, dtype=torch.float64)
        zeros = torch.zeros(count, dtype=torch.long)
        return LatticeState(torch.arange(count), reward, zeros, zeros, torch.zeros(count, dtype=torch.float64))

    def mask(self, state: LatticeState) -> Bool[Tensor, "row action"]:
        return torch.ones(state.row_count, 2, dtype=torch.bool)

    def done(self, state: LatticeState) -> Bool[Tensor, " row"]:
        return state.right + state.up == DEPTH

    def step(self, state: LatticeState, action: Int[Tensor, " row"]) -> LatticeState:
        moving = (~self.done(state)).long()
        at = [axis.clamp(max=DEPTH - 1) for axis in (state.right, state.up)]
        earned = state.earned + state.reward[state.instance, at[0], at[1], action] * moving
        return replace(state, right=state.right + moving * (1 - action), up=state.up + moving * action, earned=earned)

    def objective(self, state: LatticeState) -> Float[Tensor, " row"]:
        return state.earned

    def horizon(self, state: LatticeState) -> int:
        return int((DEPTH - state.right - state.up).max())

    def key(self, state: LatticeState) -> Int[Tensor, "row 2"]:
        return torch.stack([state.right, state.up], 1)


def lattice_sight(state: LatticeState) -> list[Tensor]:
    return [state.right[:, None], state.up[:, None]]


def tsp_sight(state: Any) -> list[Tensor]:
    return [state.visited, state.current[:, None], state.start[:, None]]


def cvrp_sight(state: Any) -> list[Tensor]:
    return [state.visited, state.current[:, None], state.remaining[:, None]]


def jssp_sight(state: Any) -> list[Tensor]:
    return [state.scheduled, state.next_starts().where(state.unfinished, -1), state.machine_available]


def gomoku_sight(state: Any) -> list[Tensor]:
    return [state.board, state.to_move[:, None]]


@dataclass
class HashPolicy:
    """Logits that are a table, by hash, of what a policy may see of a state: `sight`. It writes down what it saw.

    It does not use `Problem.key`, so that a key that covers too little makes a difference.
    """

    problem: Problem[Any]
    sight: Callable[[Any], list[Tensor]]
    confidence: float = 12.0
    seen: list[tuple[int, ...]] = field(default_factory=list)

    def prepare(self, state: Any) -> None:
        return None

    def __call__(self, state: Any, context: None) -> Float[Tensor, "row action"]:
        columns = torch.cat([values.long() for values in self.sight(state)], 1)
        self.seen += [(i, *row) for i, row in zip(state.instance.tolist(), columns.tolist(), strict=True)]
        code = torch.zeros_like(state.instance)
        for column in columns.unbind(1):
            code = mix(code * 3 + column + 1)
        actions = torch.arange(1, self.problem.mask(state).shape[1] + 1)
        return (mix(code[:, None] + mix(actions)) >> 40).double() / 2**23 * self.confidence


PROBLEMS: dict[str, tuple[Problem[Any], Callable[[Any], list[Tensor]]]] = {
    "lattice": (Lattice(), lattice_sight),
    "tsp": (TSP(8), tsp_sight),
    "nearest tsp": (TSP(9, nearest=3), tsp_sight),
    "cvrp": (CVRP(6, capacity=15), cvrp_sight),
    "jssp": (JSSP(4, 3), jssp_sight),
    "gomoku": (Gomoku(5), gomoku_sight),
}
