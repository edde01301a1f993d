"""Which nodes of an instance a network looks at: the choosable ones and the ends of the path, as rows of node indices."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.policies.layers import Block, token_bytes
from gumbeldore.problems.cvrp import CVRPState
from gumbeldore.problems.tsp import TSPState


def tsp_tokens(state: TSPState) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row 1 1 token"] | None]:
    """City indices in the order origin, choosable, destination; and the keys to block, if any."""
    middle, padding = members(state.choosable)
    order = torch.cat([state.current[:, None], middle, state.start[:, None]], 1)
    return order, block(padding, before=1, after=1)


def cvrp_tokens(state: CVRPState) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row 1 1 token"] | None]:
    """Node indices: the depot, then the choosable customers and the origin, ascending; and the keys to block, if any.

    An origin that is the depot is one token with it. So a row that starts at the depot with L customers to serve has as
    many tokens as one that starts at a customer with L - 1 others.
    """
    nodes = torch.nn.functional.pad(state.choosable, (1, 0)).scatter_(1, state.current[:, None], True)
    customers, padding = members(nodes[:, 1:])
    return torch.nn.functional.pad(customers + 1, (1, 0)), block(padding, before=1, after=0)


def members(chosen: Bool[Tensor, "row node"]) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row token"] | None]:
    """The indices of the chosen nodes of each row; where rows differ in number, others follow, marked as padding."""
    counts = chosen.sum(1)
    longest = int(counts.max())
    if bool((counts == longest).all()):
        return chosen.nonzero()[:, 1].view(-1, longest), None
    indices = chosen.int().argsort(dim=1, descending=True, stable=True)[:, :longest]
    return indices, torch.arange(longest, device=counts.device) >= counts[:, None]


def block(padding: Bool[Tensor, "row token"] | None, *, before: int, after: int) -> Bool[Tensor, "row 1 1 all"] | None:
    """The keys that attention must not see, with tokens around the padded ones that it may."""
    return None if padding is None else torch.nn.functional.pad(padding, (before, after))[:, None, None]


def take(nodes: Float[Tensor, "batch node d"], state: TSPState | CVRPState, order: Int[Tensor, "row token"]) -> Tensor:
    """What is known of each token, from what is known of the nodes of each instance."""
    batch, count, d = nodes.shape
    index = state.instance[:, None] * count + order
    return nodes.reshape(batch * count, d).index_select(0, index.flatten()).view(*order.shape, d)


def row_bytes(state: TSPState | CVRPState, blocks: Sequence[Block]) -> int:
    """Working memory of one row."""
    count = int(state.rows(slice(0, 1)).choosable.sum()) + 2
    return count * token_bytes(blocks, count)
