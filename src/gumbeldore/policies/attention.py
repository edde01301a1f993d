"""Multi-head attention that is fast on a CPU for head sizes and numbers of tokens of this kind of network.

With head sizes of 8 or 16 the fused kernel spends its time on overhead, and `torch.softmax` is slow over short axes. Plain
batched products are three to eight times as fast, for 20 tokens as for 1,000. They need three things:

- Projections come channel by channel, `[channel, head, row, token]`. So queries, keys and values of all rows and heads are views
  of one matrix that batched products read as they are.
- Values have an additional channel that holds the number one: the product that mixes the values also sums their weights. Keys that
  must not be attended to have zeros there and for their values.
- A bias of the queries is a bias for each key, because what the queries would add beside that changes no softmax. It is an
  additional channel of the keys, against the channel of ones.

Weights are kept key by key, because a product with a transposed second matrix takes up to twice as long. Exponentials are taken without subtracting a maximum first. Where their sums overflow or vanish, they are taken anew with it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

SAFE = 1e30
"""Sums of exponentials between this and its inverse have lost no precision."""

Projected = Float[Tensor, "channel head_row token"]
"""The channels of a head are: values, the number one, queries, bias, keys."""
Weights = Float[Tensor, "head_row key query"]
Mixed = Float[Tensor, "head_row size_1 token"]
"""Values summed with weights, then the sum of the weights."""
Keys = Bool[Tensor, "row 1 1 token"]


def channels(size: int) -> int:
    """How many channels of projections belong to a head of the given size."""
    return 3 * size + 2


def attend(projected: Projected, blocked: Keys | None = None) -> Float[Tensor, "size head_row token"]:
    """Attention within each row and head; `blocked` keys are not attended to. Overwrites the channel of ones."""
    return normalised(mix(projected, blocked)[1])


class Parts(NamedTuple):
    """Views of the projections, as batches of matrices."""

    values: Float[Tensor, "head_row size_1 token"]  # the last channel is one
    queries: Float[Tensor, "head_row size_1 token"]  # the first channel is one
    keys: Float[Tensor, "head_row size_1 token"]  # the first channel is the bias

    @classmethod
    def of(cls, projected: Projected, blocked: Keys | None) -> Parts:
        size = (len(projected) - 2) // 3
        projected[size] = 1
        if blocked is not None:
            by_row(projected[: size + 1], blocked).masked_fill_(blocked[:, 0, 0], 0)
        return cls(
            projected[: size + 1].transpose(0, 1),
            projected[size : 2 * size + 1].transpose(0, 1),
            projected[2 * size + 1 :].transpose(0, 1),
        )


def by_row(channels: Float[Tensor, "channel head_row token"], blocked: Keys) -> Float[Tensor, "channel head row token"]:
    return channels.view(len(channels), -1, len(blocked), channels.shape[2])


def mix(projected: Projected, blocked: Keys | None) -> tuple[Weights, Mixed]:
    """The exponentials of all scores, up to a factor for each query, and what they mix."""
    parts = Parts.of(projected, blocked)
    weight = torch.bmm(parts.keys.transpose(1, 2), parts.queries).exp_()
    mixed = torch.bmm(parts.values, weight)
    least, most = torch.aminmax(mixed[:, -1])
    if not (float(least) > 1 / SAFE and float(most) < SAFE):
        torch.bmm(parts.keys.transpose(1, 2), parts.queries, out=weight)
        known = weight if blocked is None else weight.masked_fill(parts.values[:, -1, :, None] == 0, -torch.inf)
        weight.sub_(known.amax(1, keepdim=True)).clamp_(max=0).exp_()
        mixed = torch.bmm(parts.values, weight)
    return weight, mixed


def normalised(mixed: Mixed) -> Float[Tensor, "size head_row token"]:
    """The mixed values divided by the sums of their weights, channel by channel."""
    out = mixed.new_empty(mixed.shape[1] - 1, len(mixed), mixed.shape[2])
    torch.div(mixed[:, :-1], mixed[:, -1:], out=out.transpose(0, 1))
    return out


def attend_backward(
    gradient: Float[Tensor, "size head_row token"], projected: Projected, weight: Weights, mixed: Mixed, blocked: Keys | None
) -> Projected:
    """The gradient of the projections, given that of what `attend` returned and what `mix` did."""
    size = len(gradient)
    parts = Parts.of(projected, blocked)
    inner = torch.empty_like(mixed)  # the gradients of the mixed values and of the sum of their weights
    torch.div(gradient.transpose(0, 1), mixed[:, -1:], out=inner[:, :-1])
    torch.sum(inner[:, :-1] * mixed[:, :-1], 1, keepdim=True, out=inner[:, -1:])
    inner[:, -1:].div_(mixed[:, -1:]).neg_()
    score = torch.bmm(parts.values.transpose(1, 2), inner).mul_(weight)
    back = torch.empty_like(projected)
    back[:size] = torch.bmm(inner[:, :-1], weight.transpose(1, 2)).transpose(0, 1)
    back[size] = 0
    back[size + 1 : 2 * size + 1] = torch.bmm(parts.keys[:, 1:], score).transpose(0, 1)
    back[2 * size + 1 :] = torch.bmm(parts.queries, score.transpose(1, 2)).transpose(0, 1)
    if blocked is not None:
        by_row(back[:size], blocked).masked_fill_(blocked[:, 0, 0], 0)
    return back
