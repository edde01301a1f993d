"""Which nodes of an instance a network looks at: the choosable ones and the ends of the path, as rows of node indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.networks.layers import Block, token_bytes
from gumbeldore.problem import State


def members(chosen: Bool[Tensor, "row node"]) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row token"] | None]:
    """The indices of the chosen nodes of each row; where rows differ in number, others follow, marked as padding."""
    counts = chosen.sum(1)
    longest = int(counts.max())
    if bool((counts == longest).all()):
        return chosen.nonzero()[:, 1].view(len(chosen), longest), None
    indices = chosen.int().argsort(dim=1, descending=True, stable=True)[:, :longest]
    return indices, torch.arange(longest, device=counts.device) >= counts[:, None]


def block(padding: Bool[Tensor, "row token"] | None, *, before: int, after: int) -> Bool[Tensor, "row 1 1 all"] | None:
    """The keys that attention must not see, with tokens around the padded ones that it may."""
    return None if padding is None else torch.nn.functional.pad(padding, (before, after))[:, None, None]


def take(nodes: Float[Tensor, "batch node d"], state: State, order: Int[Tensor, "row token"]) -> Tensor:
    """What is known of each token, from what is known of the nodes of each instance."""
    batch, count, d = nodes.shape
    index = state.instance[:, None] * count + order
    return nodes.reshape(batch * count, d).index_select(0, index.flatten()).view(*order.shape, d)


def row_bytes(state: Any, blocks: Sequence[Block]) -> int:
    """Working memory of one row of a state whose `choosable` nodes are tokens."""
    count = int(state.rows(slice(0, 1)).choosable.sum()) + 2
    return count * token_bytes(blocks, count)
