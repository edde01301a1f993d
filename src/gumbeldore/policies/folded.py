"""Transformer blocks in the form that is fast on a CPU: few and large products, over so many tokens that all stays in the cache.

The gradient is written out. It is summed over the parts that go through the blocks together within the matrix products, and
keeps no more than it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu, linear

from gumbeldore.policies.attention import Keys, Mixed, Projected, Weights, attend, attend_backward, mix, normalised

TOKENS = 1024
"""Tokens that go through all blocks together on each core: more do not fit into its cache."""

Rows = Float[Tensor, "row_token d"]


class Kept(NamedTuple):
    """What the gradient of a block needs."""

    x: Rows
    projected: Projected
    weight: Weights
    mixed: Mixed
    attended: Float[Tensor, "d row_token"]
    middle: Rows
    hidden: Float[Tensor, "row_token ff"]


class FoldedBlock(NamedTuple):
    """The weights of a block, ready for few and large products: ReZero scalar, query scale and biases are multiplied in."""

    attention: Float[Tensor, "channel_head d"]  # the channels of `attention.Projected`
    out: Float[Tensor, "size_head d"]
    widen: Float[Tensor, "ff d"]
    bias: Float[Tensor, " ff"]
    narrow: Float[Tensor, "ff d"]
    heads: int

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self[:-1]

    def __call__(self, x: Rows, rows: int, blocked: Keys | None) -> Rows:
        """The block; overwrites `x`."""
        attended = attend(self._project(x, rows), blocked)
        x.addmm_(attended.view(x.shape[1], -1).t(), self.out)
        return x.addmm_(linear_gelu(x, self.widen, self.bias), self.narrow)

    def _project(self, x: Rows, rows: int) -> Projected:
        return torch.mm(self.attention, x.t()).view(-1, self.heads * rows, len(x) // rows)

    def forward(self, x: Rows, rows: int, blocked: Keys | None) -> tuple[Rows, Kept]:
        """The block, and what its gradient needs."""
        projected = self._project(x, rows)
        weight, mixed = mix(projected, blocked)
        attended = normalised(mixed).view(x.shape[1], -1)
        middle = torch.addmm(x, attended.t(), self.out)
        hidden = linear(middle, self.widen, self.bias)
        y = torch.addmm(middle, gelu(hidden), self.narrow)
        return y, Kept(x, projected, weight, mixed, attended, middle, hidden)

    def backward(self, gradient: Rows, kept: Kept, blocked: Keys | None, sums: FoldedBlock) -> Rows:
        """The gradient of x, given that of y, which it overwrites; the gradients of the weights are added to `sums`."""
        hidden = gelu(kept.hidden)
        sums.narrow.addmm_(hidden.t(), gradient)
        torch.mm(gradient, self.narrow.t(), out=hidden)
        torch.ops.aten.gelu_backward.grad_input(hidden, kept.hidden, grad_input=hidden)
        sums.widen.addmm_(hidden.t(), kept.middle)
        sums.bias.add_(hidden.sum(0))
        gradient.addmm_(hidden, self.widen)
        sums.out.addmm_(kept.attended, gradient)
        attended = torch.mm(self.out, gradient.t()).view(-1, *kept.projected.shape[1:])
        projected = attend_backward(attended, kept.projected, kept.weight, kept.mixed, blocked).view(len(self.attention), -1)
        sums.attention.addmm_(projected, kept.x)
        return gradient.addmm_(projected.t(), self.attention)


class FoldedStack(NamedTuple):
    """Blocks one after the other, and the constant that their output lacks."""

    blocks: list[FoldedBlock]
    constant: Float[Tensor, " d"]

    def __call__(self, x: Float[Tensor, "row token d"], blocked: Keys | None = None) -> Float[Tensor, "row token d"]:
        """All blocks; overwrites `x` unless gradients are recorded."""
        if torch.is_grad_enabled():
            weights = [tensor for block in self.blocks for tensor in block.tensors]
            y: Tensor = _Run.apply(x, blocked, self.blocks[0].heads, *weights)
            return y + self.constant
        for part in parts(x):
            keys = None if blocked is None else blocked[part]
            flat = x[part].flatten(0, 1)
            for block in self.blocks:
                flat = block(flat, len(x[part]), keys)
            flat.add_(self.constant)
        return x


def parts(x: Float[Tensor, "row token d"]) -> list[slice]:
    """Rows that go through the blocks together."""
    rows, tokens, _ = x.shape
    size = max(1, TOKENS * torch.get_num_threads() // tokens)
    return [slice(start, start + size) for start in range(0, rows, size)]


class _Run(torch.autograd.Function):
    """The blocks of a stack, without its constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, blocked: Tensor | None, heads: int, *weights: Tensor) -> Tensor:
        ctx.blocks, ctx.blocked, ctx.kept = _blocks(weights, heads), blocked, []
        y = torch.empty_like(x)
        for part in parts(x):
            flat, keys, kept = x[part].flatten(0, 1), None if blocked is None else blocked[part], []
            for block in ctx.blocks:
                flat, needed = block.forward(flat, len(x[part]), keys)
                kept.append(needed)
            y[part] = flat.view_as(y[part])
            ctx.kept.append((part, kept))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        heads = ctx.blocks[0].heads
        sums = [torch.zeros_like(tensor) for block in ctx.blocks for tensor in block.tensors]
        back = gradient.clone(memory_format=torch.contiguous_format)
        for part, kept in ctx.kept:
            flat, keys = back[part].flatten(0, 1), None if ctx.blocked is None else ctx.blocked[part]
            for block, needed, total in reversed(list(zip(ctx.blocks, kept, _blocks(sums, heads), strict=True))):
                block.backward(flat, needed, keys, total)
        return back, None, None, *sums


def _blocks(tensors: Sequence[Tensor], heads: int) -> list[FoldedBlock]:
    count = len(FoldedBlock._fields) - 1
    return [FoldedBlock(*tensors[i : i + count], heads=heads) for i in range(0, len(tensors), count)]


def linear_gelu(x: Float[Tensor, "row input"], weight: Float[Tensor, "out input"], bias: Float[Tensor, " out"]) -> Tensor:
    """gelu(x weight^T + bias) without gradients, in one pass over the result where oneDNN offers it."""
    if x.dtype == torch.float32 and x.device.type == "cpu" and torch.backends.mkldnn.is_available():
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "gelu", [], "none")
    return torch.ops.aten.gelu_(linear(x, weight, bias))
