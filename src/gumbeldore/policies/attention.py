"""Scaled dot-product attention that is fast for few tokens on a CPU.

With some 20 tokens and a head size of 8 the fused kernel spends its time on overhead, and `torch.softmax` is slow over short axes. Plain
batched products with a hand-written softmax are about twice as fast. The softmax subtracts one maximum per head and row instead of one
per token, which is as good unless all scores of some token lie about 70 below those of another one: that is checked, and the fused
kernel takes over.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

FEW_WITHOUT_GRADIENTS = 64  # tokens from which the fused kernel is as fast
FEW_WITH_GRADIENTS = 32
SMALLEST_TOTAL = 1e-30

Heads = Float[Tensor, "head token size"]


def attend(
    qkv: Float[Tensor, "row token qkv"],
    heads: int,
    blocked: Bool[Tensor, "row 1 1 token"] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "row token d"]:
    """Multi-head attention within each row; `blocked` keys are not attended to. `scale` is 1 / sqrt(head size) unless given."""
    rows, tokens, width = qkv.shape
    size = width // 3 // heads
    scale = size**-0.5 if scale is None else scale
    q, k, v = qkv.view(rows, tokens, 3, heads, size).permute(2, 0, 3, 1, 4)
    mixed = None
    few = FEW_WITH_GRADIENTS if torch.is_grad_enabled() else FEW_WITHOUT_GRADIENTS
    if blocked is None and tokens < few and qkv.device.type == "cpu":
        flat = (rows * heads, tokens, size)
        mixed = _few_tokens(q.reshape(flat), k.reshape(flat), v.reshape(flat), scale)
    if mixed is None:
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=None if blocked is None else ~blocked, scale=scale)
    return mixed.view(rows, heads, tokens, size).transpose(1, 2).reshape(rows, tokens, width // 3)


def _few_tokens(q: Heads, k: Heads, v: Heads, scale: float) -> Heads | None:
    """Attention by batched products, or None where its softmax would lose precision."""
    with torch.no_grad():
        weight = torch.bmm(q if scale == 1 else q * scale, k.transpose(1, 2))
        weight.sub_(weight.view(len(weight), -1).amax(1)[:, None, None]).exp_()
        total = weight.sum(-1, keepdim=True)
        if not bool(total.amin() > SMALLEST_TOTAL):
            return None
        if not q.requires_grad:
            return torch.bmm(weight, v).div_(total)
        weight.div_(total)
    return _FewTokens.apply(q, k, v, weight, scale)


class _FewTokens(torch.autograd.Function):
    """The last product of attention, with the gradient through the softmax written out."""

    @staticmethod
    def forward(ctx: Any, q: Heads, k: Heads, v: Heads, weight: Tensor, scale: float) -> Heads:
        ctx.save_for_backward(q, k, v, weight)
        ctx.scale = scale
        return torch.bmm(weight, v)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        q, k, v, weight = ctx.saved_tensors
        score = torch.bmm(gradient, v.transpose(1, 2)).mul_(weight)
        score.sub_(weight * score.sum(-1, keepdim=True)).mul_(ctx.scale)
        return torch.bmm(score, k), torch.bmm(score.transpose(1, 2), q), torch.bmm(weight.transpose(1, 2), gradient), None, None
