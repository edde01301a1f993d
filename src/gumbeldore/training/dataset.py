"""Solved instances to learn from: initial states and their actions, grouped by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.problem import Examples, Problem, S, check_weightless, shapes

_RELABELLED = 0.8
"""How many of all minibatches are about states that a policy came to itself, where there are any."""


_SOLVED = ("actions", "steps", "solution_age")
"""What a group knows of its instances' solutions."""


@dataclass(frozen=True)
class Group(Generic[S]):
    """Instances of one size with a solution each; if there are `steps`, so many actions of it are a policy's own, good or not."""

    state: S  # initial
    actions: Int[Tensor, "row depth"]
    steps: Int[Tensor, " row"] | None = None
    solution_age: Int[Tensor, " row"] | None = None  # in epochs; None: it does not matter

    def joined(self, other: Group[S]) -> Group[S]:
        depth = max(self.actions.shape[1], other.actions.shape[1])
        actions = torch.cat([_pad(self.actions, depth), _pad(other.actions, depth)])
        steps, age = _both(self.steps, other.steps), _both(self.solution_age, other.solution_age)
        return Group(type(self.state).concatenate([self.state, other.state]), actions, steps, age)

    def older(self, epochs: int) -> Group[S]:
        """An epoch later: without those that are then as old as that."""
        age = 1 + (_no_age(self.actions) if self.solution_age is None else self.solution_age)
        young = (age < epochs).nonzero().squeeze(1)
        steps = None if self.steps is None else self.steps[young]
        return Group(self.state.rows(young).compact(), self.actions[young], steps, age[young])

    def is_like(self, other: Group[S]) -> bool:
        return shapes(self.state) == shapes(other.state) and (self.steps is None) == (other.steps is None)


@dataclass
class Dataset(Generic[S]):
    """Pairs of an instance and one solution. Instances of different sizes live in different groups."""

    groups: list[Group[S]] = field(default_factory=list)

    def __len__(self) -> int:
        """How many solutions there are from beginning to end."""
        return sum(len(group.actions) for group in self.groups if group.steps is None)

    def add(self, state: S, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"] | None = None) -> None:
        """Adds solved instances: one row and one row of actions each.

        With `steps`, the first ones of these actions are what a policy did, good or not; what follows is how to go on best from there.
        """
        require(state.row_count == len(actions), f"Got {state.row_count} instances but {len(actions)} solutions.")
        new = Group(state.compact(), actions, steps, _no_age(actions))
        for index, known in enumerate(self.groups):
            if known.is_like(new):
                self.groups[index] = known.joined(new)
                return
        self.groups.append(new)

    def clear(self) -> None:
        self.groups.clear()

    def grow_older(self, epochs: int) -> None:
        """To be called before the additions of each epoch, if only those of the last `epochs` are to be kept."""
        older = (group.older(epochs) for group in self.groups)
        self.groups = [group for group in older if len(group.actions)]

    def sample(self, problem: Problem[S], count: int, generator: torch.Generator) -> Examples[S]:
        """`count` training examples of uniformly drawn solutions, all of one instance size."""
        require(len(self) > 0, "The dataset is empty: add solved instances before training on it.")
        group = self._draw_group(generator)
        rows = torch.randint(len(group.actions), (count,), generator=generator).to(group.actions.device)
        state, actions = group.state.rows(rows), group.actions[rows]
        if group.steps is None:
            examples = problem.examples(state, actions, generator=generator)
        else:
            examples = problem.examples_after(state, actions, group.steps[rows], generator=generator)
        check_weightless(problem, examples.state)
        return examples

    def _draw_group(self, generator: torch.Generator) -> Group[S]:
        whole, relabelled = ([g for g in self.groups if (g.steps is None) == kind] for kind in (True, False))
        groups = relabelled if relabelled and float(torch.rand((), generator=generator)) < _RELABELLED else whole
        if len(groups) == 1:
            return groups[0]
        sizes = torch.tensor([float(len(group.actions)) for group in groups])
        return groups[int(torch.multinomial(sizes, 1, generator=generator))]

    def to_plain(self) -> list[dict[str, Tensor]]:
        """Tensors only, for a checkpoint."""
        named = ({name: getattr(group, name) for name in _SOLVED} for group in self.groups)
        known = ({name: tensor for name, tensor in solved.items() if tensor is not None} for solved in named)
        return [{**group.state.tensors(), **solved} for group, solved in zip(self.groups, known, strict=True)]

    @classmethod
    def from_plain(cls, plain: Sequence[Mapping[str, Any]], state_type: type[S], device: torch.device | str) -> Dataset[S]:
        groups = []
        for group in plain:
            tensors = {name: tensor.to(device) for name, tensor in group.items()}
            solved = {name: tensors.pop(name) for name in _SOLVED if name in tensors}
            groups.append(Group(state_type(**tensors), **solved))
        return cls(groups)


def _no_age(actions: Int[Tensor, "row depth"]) -> Int[Tensor, " row"]:
    return torch.zeros(len(actions), dtype=torch.long, device=actions.device)


def _both(mine: Int[Tensor, " row"] | None, theirs: Int[Tensor, " other"] | None) -> Int[Tensor, " both"] | None:
    return None if mine is None or theirs is None else torch.cat([mine, theirs])


def _pad(actions: Int[Tensor, "row depth"], depth: int) -> Int[Tensor, "row padded"]:
    return torch.nn.functional.pad(actions, (0, depth - actions.shape[1]), value=-1)
