"""Transformer blocks. Parameter names are those of the public checkpoints, so that published weights load as they are."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from gumbeldore.errors import require
from gumbeldore.policies.attention import attend


class FoldedBlock(NamedTuple):
    """The weights of a block for inference, transposed, with the ReZero scalar and the scale of the queries multiplied in."""

    project_in: Tensor
    bias_in: Tensor
    project_out: Tensor
    bias_out: Tensor
    widen: Tensor
    bias_widen: Tensor
    narrow: Tensor
    bias_narrow: Tensor
    heads: int

    def __call__(self, x: Float[Tensor, "row token d"], blocked: Bool[Tensor, "row 1 1 token"] | None = None) -> Tensor:
        """The block without gradients; overwrites `x`."""
        rows, tokens, d = x.shape
        flat = x.view(rows * tokens, d)
        qkv = torch.addmm(self.bias_in, flat, self.project_in).view(rows, tokens, 3 * d)
        mixed = attend(qkv, self.heads, blocked, scale=1.0)
        flat.add_(self.bias_out).addmm_(mixed.reshape(rows * tokens, d), self.project_out)
        hidden = gelu(torch.addmm(self.bias_widen, flat, self.widen))
        flat.add_(self.bias_narrow).addmm_(hidden, self.narrow)
        return x


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

    def forward(self, x: Float[Tensor, "row token d"], blocked: Bool[Tensor, "row 1 1 token"] | None) -> Tensor:
        return self.out_proj(attend(linear(x, self.in_proj_weight, self.in_proj_bias), self.heads, blocked))


class Block(nn.Module):
    """A transformer block without layer norm: ReZero (one learnable scalar, initially 0, for both halves) or none at all."""

    def __init__(self, d: int, heads: int, ff: int, *, rezero: bool = True) -> None:
        super().__init__()
        self.self_attn = Attention(d, heads)
        self.linear1 = nn.Linear(d, ff)
        self.linear2 = nn.Linear(ff, d)
        self.resweight = nn.Parameter(torch.zeros(1)) if rezero else None

    def forward(self, x: Float[Tensor, "row token d"], blocked: Bool[Tensor, "row 1 1 token"] | None = None) -> Tensor:
        scale = 1.0 if self.resweight is None else self.resweight
        x = x + scale * self.self_attn(x, blocked)
        return x + scale * self.linear2(gelu(self.linear1(x)))

    def folded(self) -> FoldedBlock:
        """This block's weights for inference. Computed anew for every search, so it never goes stale."""
        attention, out = self.self_attn, self.self_attn.out_proj
        scale = 1.0 if self.resweight is None else self.resweight
        d = out.in_features
        query_scale = torch.ones(3 * d, device=out.weight.device)
        query_scale[:d] = (d // attention.heads) ** -0.5
        return FoldedBlock(
            (attention.in_proj_weight * query_scale[:, None]).t().contiguous(),
            attention.in_proj_bias * query_scale,
            (out.weight * scale).t().contiguous(),
            out.bias * scale,
            self.linear1.weight.t().contiguous(),
            self.linear1.bias,
            (self.linear2.weight * scale).t().contiguous(),
            self.linear2.bias * scale,
            attention.heads,
        )


class Stack(nn.ModuleList):
    """Blocks one after the other."""

    def folded(self) -> list[FoldedBlock]:
        return [block.folded() for block in self if isinstance(block, Block)]
