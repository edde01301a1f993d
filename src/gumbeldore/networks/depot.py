"""What networks for vehicles of one depot look at, and where their logits belong. Action 2 c + v: customer c next, v = 1 via the depot."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.networks.tokens import block, members


def depot_tokens(state: Any) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row 1 1 token"] | None]:
    """Node indices: the depot, then the choosable customers and the origin, ascending; and the keys to block, if any.

    An origin that is the depot is one token with it. So a row that starts at the depot with L customers to serve has as
    many tokens as one that starts at a customer with L - 1 others.
    """
    nodes = torch.nn.functional.pad(state.choosable, (1, 0)).scatter_(1, state.current[:, None], True)
    customers, padding = members(nodes[:, 1:])
    return torch.nn.functional.pad(customers + 1, (1, 0)), block(padding, before=1, after=0)


def customer_logits(
    logits: Float[Tensor, "row token_1 2"], state: Any, order: Int[Tensor, "row token"]
) -> Float[Tensor, "row action"]:
    """The logits of all tokens but the depot, put where their actions are; 0 for actions that are not allowed anyway."""
    place = (2 * (order[:, 1:, None] - 1) + torch.arange(2, device=order.device)).flatten(1)
    actions = 2 * state.visited.shape[1]
    return torch.zeros(len(order), actions, dtype=logits.dtype, device=logits.device).scatter(1, place, logits.flatten(1))
