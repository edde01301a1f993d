"""Transformer blocks. Parameter names are those of the public checkpoints, so that published weights load as they are."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, scaled_dot_product_attention

from gumbeldore.errors import require
from gumbeldore.policies.attention import LOG2_E
from gumbeldore.policies.folded import FoldedBlock, FoldedStack

Keys = Bool[Tensor, "row 1 1 token"]


class Biases(NamedTuple):
    """The biases of a block if its input lacks a constant that all tokens share. What it adds to all of them is left out likewise."""

    query: Float[Tensor, "head size"]
    widen: Float[Tensor, " ff"]
    constant: Float[Tensor, " d"]  # what its output lacks


class Attention(nn.Module):
    """Multi-head self-attention with one joint projection for queries, keys and values."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        require(d % heads == 0, f"`d` must be a multiple of `heads`, got d={d} and heads={heads}.")
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * d, d))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * d))
        self.out_proj = nn.Linear(d, d)
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, x: Float[Tensor, "row token d"], blocked: Keys | None) -> Tensor:
        rows, tokens, d = x.shape
        projected = linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = projected.view(rows, tokens, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=None if blocked is None else ~blocked)
        return self.out_proj(mixed.transpose(1, 2).reshape(rows, tokens, d))


class Block(nn.Module):
    """A transformer block without layer norm: ReZero (one learnable scalar, initially 0, for both halves) or none at all.

    `forward` is the plain definition, for processors that run it fast. `fold` is the same for a CPU.
    """

    def __init__(self, d: int, heads: int, ff: int, *, rezero: bool = True) -> None:
        super().__init__()
        self.self_attn = Attention(d, heads)
        self.linear1 = nn.Linear(d, ff)
        self.linear2 = nn.Linear(ff, d)
        self.resweight = nn.Parameter(torch.zeros(1)) if rezero else None

    def forward(self, x: Float[Tensor, "row token d"], blocked: Keys | None = None) -> Tensor:
        x = x + self.scale * self.self_attn(x, blocked)
        return x + self.scale * self.linear2(gelu(self.linear1(x)))

    @property
    def scale(self) -> Tensor:
        """What both halves are multiplied by."""
        return self.linear1.weight.new_ones(1) if self.resweight is None else self.resweight

    def biases(self, constant: Float[Tensor, " d"]) -> Biases:
        """The biases for an input that lacks `constant`. Those of the keys change no softmax."""
        attention, out = self.self_attn, self.self_attn.out_proj
        query, _, value = (attention.in_proj_bias + attention.in_proj_weight @ constant).view(3, -1)
        constant = constant + self.scale * (out.weight @ value + out.bias)
        widen = self.linear1.bias + self.linear1.weight @ constant
        return Biases(query.view(attention.heads, -1), widen, constant + self.scale * self.linear2.bias)

    def fold(
        self, constant: Float[Tensor, " d"], slopes: Float[Tensor, " head"] | None = None
    ) -> tuple[FoldedBlock, Float[Tensor, " d"]]:
        """The weights for an input that lacks `constant`, and what the output lacks.

        With `slopes`, head k adds `slopes[k] * position` of the key to its scores. That is ALiBi: the position of the query
        shifts all its scores alike, which no softmax sees.
        """
        out, heads = self.self_attn.out_proj, self.self_attn.heads
        d = out.in_features
        size = d // heads
        query, key, value = self.self_attn.in_proj_weight.view(3, heads, size, d)
        biases = self.biases(constant)
        key = torch.cat([key, torch.bmm(biases.query[:, None], key)], 1) * (size**-0.5 * LOG2_E)
        attention = torch.cat([query, query.new_zeros(heads, 1, d), value, key], 1).transpose(0, 1).flatten(0, 1)
        constants = attention.new_zeros(len(attention), 1 if slopes is None else 2)  # of the number one and of the position
        constants[d : d + heads, 0] = 1
        if slopes is not None:
            constants[-heads:, 1] = slopes * LOG2_E
        folded = FoldedBlock(
            torch.cat([attention, constants], 1),
            (out.weight * self.scale).view(d, heads, size).permute(2, 1, 0).reshape(d, d),
            torch.cat([self.linear1.weight, biases.widen[:, None]], 1),
            (self.linear2.weight * self.scale).t().contiguous(),
            heads,
        )
        return folded, biases.constant


class Stack(nn.ModuleList):
    """Blocks one after the other."""

    def forward(self, x: Float[Tensor, "row token d"], blocked: Keys | None = None) -> Tensor:
        if x.device.type == "cpu":
            return self.fold()(x, blocked)
        for block in self:
            x = block(x, blocked)
        return x

    def prepare(self) -> Stack | FoldedStack:
        """What to call in a search: on a CPU the weights are folded once."""
        return self.fold() if next(self.parameters()).device.type == "cpu" else self

    def fold(self) -> FoldedStack:
        """The weights as they are now, with gradients if these are recorded."""
        blocks: list[FoldedBlock] = []
        constant: Tensor | None = None
        for block in self:
            assert isinstance(block, Block)
            constant = block.linear2.bias.new_zeros(block.linear2.out_features) if constant is None else constant
            folded, constant = block.fold(constant)
            blocks.append(folded)
        assert constant is not None
        return FoldedStack(blocks, constant)
