"""Multi-head attention that is fast on a CPU for head sizes and numbers of tokens of this kind of network.

With head sizes of 8 or 16 the fused kernel spends its time on overhead, and `torch.softmax` is slow over short axes. Plain
batched products are three to eight times as fast, for 20 tokens as for 1,000. They need three things:

- Projections come channel by channel, `[channel, head, group, token]`, where a group are the tokens that may attend to each
  other. So queries, keys and values of all groups and heads are views of one matrix that batched products read as they are.
- Values have an additional channel that holds the number one: the product that mixes the values also sums their weights.
  Queries share it. Places that hold no token have zeros in all channels, so that nothing attends to them and they attend to nothing.
- A bias of the queries is a bias for each key, because what the queries would add beside that changes no softmax. It is an
  additional channel of the keys, against the channel of ones.

Weights are kept key by key, because a product with a transposed second matrix takes up to twice as long. They are powers of
two: keys are multiplied by log2(e), because `torch.exp` takes up to ten times as long for arguments that are not small. Powers
are taken without subtracting a maximum first. Where their sums overflow or vanish, they are taken anew with it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

LOG2_E = math.log2(math.e)
SAFE = 1e30
"""Sums of weights between this and its inverse have lost no precision."""

LEAST = -110.0
"""Scores below are taken as this: products of numbers that are hardly more than zero take a hundred times as long."""

LONG = 64
"""Keys from which on it pays to look at the size of the scores before they are computed."""
FAR = 1e6
"""A score that is beyond all others."""

Projected = Float[Tensor, "channel head_group token"]
"""The channels of a head are: queries, the number one, values, keys, bias; the last two are multiplied by log2(e)."""
Weights = Float[Tensor, "head_group key query"]
Mixed = Float[Tensor, "head_group size_1 query"]
"""The sum of the weights, then values summed with them."""
Together = Float[Tensor, "group key query"]
"""1 where a query may attend to a key, else 0. Queries that are empty places may attend to all keys."""


class Parts(NamedTuple):
    """Views of the projections, as batches of matrices."""

    queries: Float[Tensor, "head_group size_1 query"]  # the last channel is one
    values: Float[Tensor, "head_group size_1 key"]  # the first channel is one
    keys: Float[Tensor, "head_group size_1 key"]  # the last channel is the bias

    @classmethod
    def of(cls, projected: Projected) -> Parts:
        """Tokens that attend to each other."""
        size = (len(projected) - 2) // 3
        return cls.of_two(projected[: size + 1], projected[size:])

    @classmethod
    def of_two(cls, queries: Float[Tensor, "size_1 head_group query"], rest: Float[Tensor, "channel head_group key"]) -> Parts:
        """Queries that attend to other tokens, whose channels from the number one on are the `rest`."""
        values, keys = rest.chunk(2)
        return cls(queries.transpose(0, 1), values.transpose(0, 1), keys.transpose(0, 1))


def mix(parts: Parts, together: Together | None = None) -> tuple[Weights, Mixed]:
    """The powers of two of all scores, up to a factor for each query, and what they mix. May overwrite the bias of empty places."""
    if parts.keys.shape[2] < LONG or largest_score(parts) < math.log2(SAFE):
        weight = masked(torch.bmm(parts.keys.transpose(1, 2), parts.queries).exp2_(), together)
        mixed = torch.bmm(parts.values, weight)
        least, most = torch.aminmax(mixed[:, 0])
        if float(least) > 1 / SAFE and float(most) < SAFE:
            return weight, mixed
    parts.keys[:, -1].add_(parts.values[:, 0] - 1, alpha=FAR)  # so that no empty place has the largest score
    score = torch.bmm(parts.keys.transpose(1, 2), parts.queries)
    known = score if together is None else by_group(score, together).masked_fill(together == 0, -torch.inf).view_as(score)
    weight = masked(score.sub_(known.amax(1, keepdim=True)).clamp_(LEAST, 0).exp2_(), together)
    return weight, torch.bmm(parts.values, weight)


def largest_score(parts: Parts) -> float:
    """A bound on the size of all scores, far quicker than the scores themselves where there are many keys."""
    query, key = (part.square().sum(1).amax() for part in (parts.queries, parts.keys))
    return float((query * key).sqrt())


def masked(weight: Weights, together: Together | None) -> Weights:
    if together is not None:
        by_group(weight, together).mul_(together)
    return weight


def by_group(weight: Weights, together: Together) -> Float[Tensor, "head group key query"]:
    return weight.view(-1, *together.shape)


def attended(parts: Parts, mixed: Mixed) -> Float[Tensor, "size head_group query"]:
    """The mixed values divided by the sums of their weights, channel by channel; zero for empty places."""
    out = mixed.new_empty(mixed.shape[1] - 1, len(mixed), mixed.shape[2])
    torch.mul(mixed[:, 1:], share(parts, mixed), out=out.transpose(0, 1))
    return out


def share(parts: Parts, mixed: Mixed) -> Float[Tensor, "head_group 1 query"]:
    return parts.queries[:, -1:] / mixed[:, :1]


def attend_backward(
    gradient: Float[Tensor, "size head_group query"], parts: Parts, weight: Weights, mixed: Mixed
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, values and keys (with their bias), channel by channel, given that of `attended`."""
    inner = torch.empty_like(mixed)  # the gradients of the sum of the weights and of the mixed values
    torch.mul(gradient.transpose(0, 1), share(parts, mixed), out=inner[:, 1:])
    torch.sum(inner[:, 1:] * mixed[:, 1:], 1, keepdim=True, out=inner[:, :1])
    inner[:, :1].div_(mixed[:, :1]).neg_()
    score = torch.bmm(parts.values.transpose(1, 2), inner).mul_(weight)
    queries = torch.bmm(parts.keys[:, :-1], score).mul_(1 / LOG2_E)
    values = torch.bmm(inner[:, 1:], weight.transpose(1, 2))
    keys = torch.bmm(parts.queries, score.transpose(1, 2)).mul_(1 / LOG2_E)
    return queries.transpose(0, 1), values.transpose(0, 1), keys.transpose(0, 1)
