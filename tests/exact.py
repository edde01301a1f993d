"""A policy whose logits are exact: the same number for the same state, whatever shares its batch or its call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.hashing import mix
from gumbeldore.problem import Problem, State


@dataclass
class ExactPolicy:
    """Logits are hashes of the instance and of what `Problem.key` says of a row, multiples of 1/64 below `scale`."""

    problem: Problem[Any]
    scale: float = 4.0
    row_bytes_each: int = 1
    rows: list[int] = field(default_factory=list)  # that each call had

    def prepare(self, state: State) -> Int[Tensor, " instance"]:
        parts = [digest(getattr(state, name)) * (2 * i + 1) for i, name in enumerate(state.per_instance)]
        return sum(parts, torch.zeros(state.instance_count, dtype=torch.long))

    def __call__(self, state: State, context: Int[Tensor, " instance"]) -> Float[Tensor, "row action"]:
        self.rows.append(state.row_count)
        key = self.problem.key(state)
        names = [name for name in state.tensors() if name not in state.per_instance and name != "instance"]
        row = digest(key) if key is not None else torch.stack([digest(getattr(state, name)) for name in names]).sum(0)
        if state.per_instance:
            row = row + context[state.instance]
        actions = self.problem.mask(state).shape[1]
        noise = mix(mix(row)[:, None] + mix(torch.arange(actions)))
        return ((noise >> 40) & 0xFF).double() * (self.scale / 256)

    def row_bytes(self, state: State) -> int:
        return self.row_bytes_each


def digest(values: Tensor) -> Int[Tensor, " row"]:
    """A hash of each row."""
    values = values.flatten(1) if values.dim() > 1 else values[:, None]
    numbers = (values.double() * 2**30).round().long() if values.is_floating_point() else values.long()
    return mix(mix(numbers + mix(torch.arange(1, values.shape[1] + 1)))).sum(1)
