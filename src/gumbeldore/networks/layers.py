"""Transformer blocks. Parameter names are those of the public checkpoints, so that published weights load as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, scaled_dot_product_attention

from gumbeldore.errors import require, require_positive
from gumbeldore.networks import native
from gumbeldore.networks.segments import Layout, Slopes, find_starts

Keys = Bool[Tensor, "row 1 1 token"]
Scores = Float[Tensor, "row_1 head query_1 key"]
"""What is added to the scores of attention."""


@dataclass(frozen=True)
class TransformerSize:
    """Size of a transformer policy; the defaults are the paper's for the TSP."""

    d: int = 128  # width
    layers: int = 9
    heads: int = 8
    ff: int = 512  # width of the feed-forward part

    def __post_init__(self) -> None:
        require_positive(d=self.d, layers=self.layers, heads=self.heads, ff=self.ff)
        require(self.d % self.heads == 0, f"`d` must be a multiple of `heads`, got d={self.d} and heads={self.heads}.")


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

    def forward(self, x: Float[Tensor, "row token d"], blocked: Keys | None, scores: Scores | None) -> Tensor:
        rows, tokens, d = x.shape
        projected = linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = projected.view(rows, tokens, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mask = None if blocked is None else ~blocked
        if scores is not None:
            mask = scores if blocked is None else scores.masked_fill(blocked, -torch.inf)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(mixed.transpose(1, 2).reshape(rows, tokens, d))


class Block(nn.Module):
    """A transformer block without layer norm: ReZero (one learnable scalar, initially 0, for both halves) or none at all.

    `forward` is the definition. `fold` is the same for the compiled code.
    """

    def __init__(self, d: int, heads: int, ff: int, *, rezero: bool = True) -> None:
        super().__init__()
        self.self_attn = Attention(d, heads)
        self.linear1 = nn.Linear(d, ff)
        self.linear2 = nn.Linear(ff, d)
        self.resweight = nn.Parameter(torch.zeros(1)) if rezero else None

    def forward(self, x: Float[Tensor, "row token d"], blocked: Keys | None = None, scores: Scores | None = None) -> Tensor:
        x = x + self.scale * self.self_attn(x, blocked, scores)
        return x + self.scale * self.linear2(gelu(self.linear1(x)))

    @property
    def scale(self) -> Tensor:
        """What both halves are multiplied by."""
        return self.linear1.weight.new_ones(1) if self.resweight is None else self.resweight

    @property
    def compiled(self) -> bool:
        """Whether the compiled code can run this block."""
        return native.usable(self.linear2.weight, self.self_attn.heads)

    def fold(self, slopes: Slopes | None = None) -> native.Block:
        """The weights as they are now, with gradients if these are recorded.

        With `slopes`, head k adds `slopes[k] * position` of the key to its scores. That is ALiBi: the position of the query
        shifts all its scores alike, which no softmax sees.
        """
        attention, out = self.self_attn, self.self_attn.out_proj
        parameters = native.Parameters(
            attention.in_proj_weight, attention.in_proj_bias, out.weight, out.bias,
            self.linear1.weight, self.linear1.bias, self.linear2.weight, self.linear2.bias, self.resweight,
        )  # fmt: skip
        return native.Block.of(parameters, attention.heads, None if slopes is None else slopes * math.log2(math.e))


def fold_all(blocks: Sequence[Block], slopes: Sequence[Slopes | None] | None = None) -> list[native.Block] | None:
    """All blocks folded, or None where the compiled code cannot run every one of them."""
    if not all(block.compiled for block in blocks):
        return None
    return [block.fold(slope) for block, slope in zip(blocks, slopes or [None] * len(blocks), strict=True)]


def alibi(heads: int, like: Tensor) -> Slopes:
    """The slopes of ALiBi (Press et al. 2022): from 1/2 or so down to 1/256."""
    return 2.0 ** (-8 * torch.arange(1, heads + 1, device=like.device, dtype=like.dtype) / heads)


def slow_note(policy: nn.Module) -> str | None:
    """What to tell those whose policy runs on a CPU without compiled blocks."""
    blocks = [module for module in policy.modules() if isinstance(module, Block)]
    if not any(block.linear1.weight.device.type == "cpu" and not block.compiled for block in blocks):
        return None
    if native.library() is not None:
        return f"Blocks are compiled for 32-bit floats and heads of {native.SIZES} channels: this policy is slower than it could be."
    return (
        "The networks' blocks are not compiled on this machine, which makes them several times slower. With a C++ compiler "
        "(g++ or clang++) installed, install this package again."
    )


def token_bytes(blocks: Sequence[Block], keys: int) -> int:
    """Working memory of a token that attends to so many keys; with gradients, what all blocks keep for them."""
    first = blocks[0]
    d, ff, heads = first.linear1.in_features, first.linear1.out_features, first.self_attn.heads
    if torch.is_grad_enabled():
        return 4 * len(blocks) * (6 * d + ff + 128 if first.compiled else 12 * d + 4 * ff + 2 * heads * keys)
    return 4 * (2 * d + 32 if first.compiled else 6 * d + 2 * ff + 2 * heads * keys)


class Stack(nn.ModuleList):
    """Blocks one after the other, over rows of tokens that attend to each other. What becomes of blocked tokens means nothing."""

    @property
    def blocks(self) -> list[Block]:
        return [block for block in self if isinstance(block, Block)]

    def forward(self, x: Float[Tensor, "row token d"], blocked: Keys | None = None) -> Tensor:
        prepared = self.prepare()
        if isinstance(prepared, FoldedStack):
            return prepared(x, blocked)
        for block in self:
            x = block(x, blocked)
        return x

    def prepare(self) -> Stack | FoldedStack:
        """What to call in a search: the weights folded once, where the compiled code can run them."""
        folded = fold_all(self.blocks)
        return self if folded is None else FoldedStack(folded)


class FoldedStack(NamedTuple):
    """The same, compiled."""

    blocks: list[native.Block]

    def __call__(self, x: Float[Tensor, "row token d"], blocked: Keys | None = None) -> Tensor:
        """All blocks; overwrites `x` unless gradients are recorded."""
        rows, tokens, d = x.shape
        if blocked is None:
            layout = Layout(torch.arange(0, rows * tokens + 1, tokens, dtype=torch.int32))
        else:
            real = ~blocked.view(rows, tokens)
            layout = Layout(find_starts(real.sum(1)), real.flatten().nonzero().squeeze(1).int())
        return native.run(x.reshape(-1, d), self.blocks, [layout] * len(self.blocks)).view(rows, tokens, d)
