"""Training on several variants of a problem, for example on several sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.problem import Augmentations, Examples, Problem, S


@dataclass(frozen=True)
class AnyOf(Problem[S], Generic[S]):
    """Augmentations of one problem that share their `State` and their rules and differ only in the instances they generate.

    `generate` draws one of the problems, all equally likely, and takes all instances from it. Everything else is the first one's, so
    it must hold for the states of all of them: problems whose rules read the state and not their settings, like ours.
    """

    problems: tuple[Problem[S], ...]

    def __post_init__(self) -> None:
        require(len(self.problems) >= 1, "`problems` must hold at least one problem, got none.")
        kinds = sorted({type(problem).__name__ for problem in self.problems})
        require(len(kinds) == 1, f"`problems` must be variants of one problem, got {' and '.join(kinds)}.")

    @property
    def dead_end_objective(self) -> float | None:  # type: ignore[override]
        return self.problems[0].dead_end_objective

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> S:
        drawn = int(torch.randint(len(self.problems), (), generator=generator, device=generator.device))
        return self.problems[drawn].generate(count, generator=generator, device=device)

    def instances(self, *arrays: Any, **options: Any) -> S:
        """Initial states for given data, as the problem itself makes them."""
        return self.problems[0].instances(*arrays, **options)  # type: ignore[attr-defined]

    def mask(self, state: S) -> Bool[Tensor, "row action"]:
        return self.problems[0].mask(state)

    def step(self, state: S, action: Int[Tensor, " row"]) -> S:
        return self.problems[0].step(state, action)

    def done(self, state: S) -> Bool[Tensor, " row"]:
        return self.problems[0].done(state)

    def objective(self, state: S) -> Float[Tensor, " row"]:
        return self.problems[0].objective(state)

    def horizon(self, state: S) -> int:
        return self.problems[0].horizon(state)

    def examples(self, state: S, actions: Int[Tensor, "row depth"], *, generator: torch.Generator) -> Examples[S]:
        return self.problems[0].examples(state, actions, generator=generator)

    def examples_after(
        self, state: S, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[S]:
        return self.problems[0].examples_after(state, actions, steps, generator=generator)

    def local_search(
        self, state: S, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        return self.problems[0].local_search(state, actions, effort=effort, seeds=seeds, kept=kept)

    def augmentations(self, state: S, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[S] | None:
        return self.problems[0].augmentations(state, count, seeds=seeds)

    def inverse_transform(self, state: S, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        return self.problems[0].inverse_transform(state, tag, actions)

    def key(self, state: S) -> Int[Tensor, "row 2"] | None:
        return self.problems[0].key(state)


def any_of(problems: Iterable[Problem[S]]) -> Problem[S]:
    """A mixture of them, or the only one there is."""
    found = tuple(problems)
    return found[0] if len(found) == 1 else AnyOf(found)


def numbers(name: str, given: int | tuple[int, ...]) -> tuple[int, ...]:
    """A setting that is one number or several."""
    found = (given,) if isinstance(given, int) else given
    require(len(found) > 0, f"`{name}` must be a number, or several, got none.")
    return found
