"""Solved instances to learn from: initial states and their actions, grouped by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.problem import Examples, Problem, S, shapes


@dataclass
class Dataset(Generic[S]):
    """Pairs of an instance and one solution. Instances of different sizes live in different groups."""

    groups: list[tuple[S, Tensor]] = field(default_factory=list)  # initial states, and actions [row, depth]

    def __len__(self) -> int:
        return sum(len(actions) for _, actions in self.groups)

    def add(self, state: S, actions: Int[Tensor, "row depth"]) -> None:
        """Adds solved instances: one row and one row of actions each."""
        require(state.row_count == len(actions), f"Got {state.row_count} instances but {len(actions)} solutions.")
        state = state.compact()
        for index, (known, solutions) in enumerate(self.groups):
            if shapes(known) == shapes(state):
                depth = max(solutions.shape[1], actions.shape[1])
                joined = torch.cat([_pad(solutions, depth), _pad(actions, depth)])
                self.groups[index] = (type(state).concatenate([known, state]), joined)
                return
        self.groups.append((state, actions))

    def clear(self) -> None:
        self.groups.clear()

    def sample(self, problem: Problem[S], count: int, generator: torch.Generator) -> Examples[S]:
        """`count` training examples of uniformly drawn solutions, all of one instance size."""
        require(len(self) > 0, "The dataset is empty: add solved instances before training on it.")
        state, actions = self.groups[self._draw_group(generator)]
        rows = torch.randint(len(actions), (count,), generator=generator).to(actions.device)
        return problem.examples(state.rows(rows), actions[rows], generator=generator)

    def _draw_group(self, generator: torch.Generator) -> int:
        if len(self.groups) == 1:
            return 0
        sizes = torch.tensor([float(len(actions)) for _, actions in self.groups])
        return int(torch.multinomial(sizes, 1, generator=generator))

    def to_plain(self) -> list[dict[str, Tensor]]:
        """Tensors only, for a checkpoint."""
        return [{**state.tensors(), "actions": actions} for state, actions in self.groups]

    @classmethod
    def from_plain(cls, plain: Sequence[Mapping[str, Any]], state_type: type[S], device: torch.device | str) -> Dataset[S]:
        groups = []
        for group in plain:
            tensors = {name: tensor.to(device) for name, tensor in group.items()}
            actions = tensors.pop("actions")
            groups.append((state_type(**tensors), actions))
        return cls(groups)


def _pad(actions: Int[Tensor, "row depth"], depth: int) -> Int[Tensor, "row padded"]:
    return torch.nn.functional.pad(actions, (0, depth - actions.shape[1]), value=-1)
