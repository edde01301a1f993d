"""The attention for few tokens against the fused kernel."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from gumbeldore.policies.attention import attend


def fused(qkv, heads):
    rows, tokens, width = qkv.shape
    q, k, v = qkv.view(rows, tokens, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    return scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(rows, tokens, width // 3)


@pytest.mark.parametrize("tokens", [1, 2, 7, 31, 32, 63, 64, 70])
def test_values_and_gradients_equal_those_of_the_fused_kernel(tokens):
    generator = torch.Generator().manual_seed(tokens)
    qkv = torch.randn(3, tokens, 48, generator=generator, dtype=torch.float64, requires_grad=True)
    target = torch.randn(3, tokens, 16, generator=generator, dtype=torch.float64)
    ours, theirs = attend(qkv, 4), fused(qkv, 4)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    ours_gradient, theirs_gradient = (torch.autograd.grad((out * target).sum(), qkv)[0] for out in (ours, theirs))
    torch.testing.assert_close(ours_gradient, theirs_gradient, rtol=1e-9, atol=1e-11)
    with torch.no_grad():
        torch.testing.assert_close(attend(qkv, 4), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("gradients", [True, False])
def test_scores_too_far_apart_for_one_maximum_per_head_are_handled(gradients):
    """One token's scores are hundreds above another's: a shared maximum would underflow to 0 / 0."""
    qkv = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(0))
    qkv[:, 0, :8] *= 300
    qkv[:, :, 8:16] = qkv[:, :, 8:16].abs() * 5 + 5
    qkv[:, 0, :8] = qkv[:, 0, :8].abs()
    with torch.set_grad_enabled(gradients):
        torch.testing.assert_close(attend(qkv, 2), fused(qkv, 2))


def test_blocked_keys_have_no_say():
    qkv = torch.randn(2, 6, 24, generator=torch.Generator().manual_seed(1))
    blocked = torch.zeros(2, 1, 1, 6, dtype=torch.bool)
    blocked[..., 4:] = True
    torch.testing.assert_close(attend(qkv, 2, blocked)[:, :4], attend(qkv[:, :4].contiguous(), 2), rtol=1e-5, atol=1e-6)
