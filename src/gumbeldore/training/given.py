"""Instances that are given instead of generated, of one size or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import torch

from gumbeldore.errors import require
from gumbeldore.problem import Problem, S


@dataclass(frozen=True)
class GivenInstances(Generic[S]):
    """Initial states, one for each size, to be drawn from."""

    states: tuple[S, ...]

    def __post_init__(self) -> None:
        require(len(self.states) >= 1, "`instances` must hold at least one instance, got none.")

    @property
    def count(self) -> int:
        return sum(state.row_count for state in self.states)

    def draw(self, count: int, generator: torch.Generator) -> list[S]:
        """So many instances in a random order, none a second time before all others have come; those of one size together."""
        rounds = -(-count // self.count)
        drawn = torch.cat([torch.randperm(self.count, generator=generator) for _ in range(rounds)])[:count]
        found, start = [], 0
        for state in self.states:
            rows = drawn[(drawn >= start) & (drawn < start + state.row_count)] - start
            start += state.row_count
            if len(rows):
                found.append(state.rows(rows).compact())
        return found


def fresh(source: Problem[S] | GivenInstances[S], count: int, generator: torch.Generator) -> list[S]:
    """Instances to solve: generated ones, all of one size, or some of those that are given."""
    if isinstance(source, GivenInstances):
        return source.draw(count, generator)
    return [source.generate(count, generator=generator)]


def parts(instances: S | Sequence[S]) -> Sequence[S]:
    """Instances by their sizes."""
    return instances if isinstance(instances, list | tuple) else [instances]  # type: ignore[list-item]
