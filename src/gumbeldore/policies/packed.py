"""Transformer blocks over packed tokens, which attend to each other within segments (see `segments.py`).

Only tokens that exist are projected and fed forward. Tokens are the rows of a matrix whose last row is zero: empty places of
a group hold that one. Beside its d channels a token has two constant ones, the number one and its position, so that a
projection adds its bias, and the keys of a job-wise block their ALiBi bias, within the matrix product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu, pad

from gumbeldore.policies.layers import Block
from gumbeldore.policies.segments import Links, Places

CONSTANTS = 2
"""Channels of a token beside its d: the number one, and its position."""
SAFE = 60.0
"""Scores up to this size need no care: sums of their exponentials neither overflow nor vanish in single precision."""


class PackedBlock(NamedTuple):
    """The weights of a block: transposed, the ReZero scalar multiplied in, biases as rows for the constant channels.

    A constant that a block would add to every token is left to the weights of those that read the tokens. The bias of the
    keys changes no softmax, and that of the values is such a constant.
    """

    attention: Float[Tensor, "input head_size"]  # by head: query, key, value, and the number one, which sums the weights
    out: Float[Tensor, "d d"]
    widen: Float[Tensor, "input ff"]
    narrow: Float[Tensor, "ff d"]

    def __call__(self, tokens: Tensor, links: Links, queries: Tensor | None = None) -> Float[Tensor, "query width"]:
        """The block applied to all tokens, or to `queries` that attend to them. Without gradients these are overwritten."""
        target = tokens if queries is None else queries
        target = add_product(target, self._attend(tokens, links, queries), self.out)
        hidden = project(target, self.widen)
        hidden = gelu(hidden) if torch.is_grad_enabled() else torch.ops.aten.gelu_(hidden)
        return add_product(target, hidden, self.narrow)

    def _attend(self, tokens: Tensor, links: Links, queries: Tensor | None) -> Float[Tensor, "query d"]:
        """Multi-head attention; zero for the last token, which stands for nothing."""
        heads, d = links.keys.heads, len(self.out)
        value = d // heads + 1
        key = (self.attention.shape[1] // heads - value) // 2
        if queries is None:
            q, k, v = lay_out(project(tokens, self.attention), links.keys).split([key, key, value], 2)
        else:
            weight_q, weight_kv = self.attention.view(-1, heads, 2 * key + value).split([key, key + value], 2)
            q = lay_out(project(queries, weight_q.flatten(1)), links.queries)
            k, v = lay_out(project(tokens, weight_kv.flatten(1)), links.keys).split([key, value], 2)
        mixed = take_back(attend(q, k, v, links), links.queries)
        mixed = (mixed[:, :-1] / mixed[:, -1:]).view(-1, d)
        mixed[-1] = 0
        return mixed


def pack_block(
    block: Block, constant: Float[Tensor, " d"], slopes: Float[Tensor, " head"] | None = None
) -> tuple[PackedBlock, Float[Tensor, " d"]]:
    """The weights of `block` for tokens to which `constant` is still to be added, and that constant after the block.

    With `slopes`, head k adds `slopes[k] * position` of the key to its scores. That is ALiBi: the position of the query
    shifts all its scores alike, which no softmax sees.
    """
    attention, out = block.self_attn, block.self_attn.out_proj
    heads, d = attention.heads, out.in_features
    size = d // heads
    weight, biases = attention.in_proj_weight.view(3, heads, size, d), block.biases(constant)
    zeros, ones = constant.new_zeros(heads, 1, d + CONSTANTS), constant.new_zeros(heads, 1, d + CONSTANTS)
    ones[:, :, d] = 1
    query = torch.cat([weight[0], biases.query[..., None], zeros[:, :1, :1].expand(heads, size, 1)], 2) * size**-0.5
    key, value = pad(weight[1], (0, CONSTANTS)), pad(weight[2], (0, CONSTANTS))
    if slopes is not None:
        positions = zeros.clone()
        positions[:, 0, d + 1] = slopes
        query, key = torch.cat([query, ones], 1), torch.cat([key, positions], 1)
    packed = PackedBlock(
        torch.cat([query, key, value, ones], 1).flatten(0, 1).t().contiguous(),
        (out.weight * block.scale).t().contiguous(),
        pad(torch.cat([block.linear1.weight, biases.widen[:, None]], 1), (0, 1)).t().contiguous(),
        (block.linear2.weight * block.scale).t().contiguous(),
    )
    return packed, biases.constant


def project(tokens: Float[Tensor, "token width"], weight: Float[Tensor, "input out"]) -> Float[Tensor, "token out"]:
    """The last token, which is zero, stays so: biases belong to the constant channel."""
    return torch.mm(tokens if tokens.shape[1] == len(weight) else tokens[:, : len(weight)], weight)


def add_product(
    tokens: Float[Tensor, "token width"], factor: Float[Tensor, "token inner"], weight: Float[Tensor, "inner d"]
) -> Float[Tensor, "token width"]:
    """Adds `factor @ weight` to the channels of all tokens; in place unless gradients are recorded."""
    d = weight.shape[1]
    if torch.is_grad_enabled():
        return torch.addmm(tokens, factor, pad(weight, (0, tokens.shape[1] - d)))
    tokens[:, :d].addmm_(factor, weight)
    return tokens


Queries = Float[Tensor, "group_head query size"]
Keys = Float[Tensor, "group_head key size"]
Values = Float[Tensor, "group_head key value_size"]
Mixed = Float[Tensor, "group_head query value_size"]


def attend(q: Queries, k: Keys, v: Values, links: Links) -> Mixed:
    """Values and the number one, summed with weights exp(q k): the second sum is what the first has to be divided by.

    `torch.softmax` is slow over short axes, so weights are normalised after they have been applied.
    """
    if torch.is_grad_enabled():
        mixed: Tensor = _Attend.apply(q, k, v, links)
        return mixed
    return torch.bmm(attention_weights(q, k, v, links), v)


def attention_weights(q: Queries, k: Keys, v: Values, links: Links) -> Float[Tensor, "group_head query key"]:
    """exp(q k), up to a factor for each query, and zero between segments."""
    score = torch.bmm(q, k.transpose(1, 2))
    least, most = torch.aminmax(score)
    if not (float(least) > -SAFE and float(most) < SAFE):
        tame(score, v, links)
    weight = score.exp_()
    if links.together is not None:
        by_head(weight, links).mul_(links.together)
    return weight


def tame(score: Float[Tensor, "group_head query key"], v: Values, links: Links) -> None:
    """Subtracts from the scores of each query their maximum over its segment, in place."""
    known = score.masked_fill(v[:, None, :, -1] == 0, -torch.inf)  # without empty places
    if links.together is not None:
        by_head(known, links).masked_fill_(links.together == 0, -torch.inf)
    most = known.amax(2, keepdim=True)
    score.sub_(most.where(most > -torch.inf, 0)).clamp_(-80, 0)  # exponentials of very small numbers are slow


def by_head(values: Float[Tensor, "group_head query key"], links: Links) -> Float[Tensor, "group head query key"]:
    return values.view(links.keys.groups, links.keys.heads, *values.shape[1:])


class _Attend(torch.autograd.Function):
    """`attend` with its gradient written out, which saves passes over the weights."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, links: Links) -> Tensor:
        weight = attention_weights(q, k, v, links)
        ctx.save_for_backward(q, k, v, weight)
        return torch.bmm(weight, v)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, weight = ctx.saved_tensors
        score = torch.bmm(gradient, v.transpose(1, 2)).mul_(weight)
        return torch.bmm(score, k), torch.bmm(score.transpose(1, 2), q), torch.bmm(weight.transpose(1, 2), gradient), None


def lay_out(tokens: Float[Tensor, "token channel"], places: Places) -> Float[Tensor, "group_head position size"]:
    """The channels of each head at their places."""
    rows = tokens.view(len(tokens) * places.heads, -1)
    return select_rows(rows, places.forth, places.back).view(places.groups * places.heads, places.length, -1)


def take_back(laid_out: Float[Tensor, "group_head position size"], places: Places) -> Float[Tensor, "token_head size"]:
    return select_rows(laid_out.view(-1, laid_out.shape[2]), places.back, places.forth)


def select_rows(
    rows: Float[Tensor, "row size"], index: Int[Tensor, " selected"], inverse: Int[Tensor, " row"]
) -> Float[Tensor, "selected size"]:
    """Rows by index, where `inverse` undoes `index`."""
    return _SelectRows.apply(rows, index, inverse) if torch.is_grad_enabled() else rows.index_select(0, index)


class _SelectRows(torch.autograd.Function):
    """The gradient is another selection, instead of the slow accumulation of `index_select`."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return rows.index_select(0, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.index_select(0, ctx.saved_tensors[0]), None, None
