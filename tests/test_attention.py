"""The attention and the blocks for a CPU against their plain definitions."""

from __future__ import annotations

import pytest
import torch

from gumbeldore.policies.attention import attend, attend_backward, channels, mix
from gumbeldore.policies.folded import linear_gelu
from gumbeldore.policies.layers import Block, Stack


def projected(size, rows, heads, tokens, seed, dtype=torch.float64):
    return torch.randn(channels(size), rows * heads, tokens, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def plain(projected, blocked=None):
    """Softmax attention by its definition; the same channels."""
    size = (len(projected) - 2) // 3
    value, query = projected[:size].transpose(0, 1), projected[size + 1 : 2 * size + 1].permute(1, 2, 0)
    bias, key = projected[2 * size + 1, :, None], projected[2 * size + 2 :].transpose(0, 1)
    score = query @ key + bias
    if blocked is not None:
        score = score.masked_fill(blocked[:, 0].repeat(len(score) // len(blocked), 1, 1), -torch.inf)
    return (score.softmax(-1) @ value.transpose(1, 2)).permute(2, 0, 1)


def blocking(rows, tokens, counts):
    return (torch.arange(tokens) >= torch.tensor(counts)[:, None])[:, None, None].view(rows, 1, 1, tokens)


@pytest.mark.parametrize("tokens", [1, 2, 7, 31, 70])
@pytest.mark.parametrize("padded", [False, True])
def test_values_and_gradients_equal_those_of_the_definition(tokens, padded):
    start = projected(4, 3, 2, tokens, seed=tokens)
    blocked = blocking(3, tokens, [tokens, max(1, tokens - 2), max(1, tokens // 2)]) if padded else None
    real = torch.ones(3, tokens, dtype=torch.bool) if blocked is None else ~blocked[:, 0, 0]
    target = torch.randn(4, 6, tokens, dtype=torch.float64) * real.repeat(2, 1)  # what padding gives is not used
    theirs_in = start.clone().requires_grad_()
    theirs, ours = plain(theirs_in, blocked), attend(start.clone(), blocked)
    everywhere = real.repeat(2, 1).expand_as(ours)
    torch.testing.assert_close(ours[everywhere], theirs[everywhere], rtol=1e-10, atol=1e-12)
    (expected,) = torch.autograd.grad((theirs * target).sum(), theirs_in)
    gradient = attend_backward(target, start, *mix(start, blocked), blocked)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("factor", [40, -40])
def test_scores_whose_exponentials_overflow_or_vanish(padded, factor):
    """All scores of one query are hundreds above zero, those of another far below."""
    start = projected(4, 2, 1, 5, seed=0, dtype=torch.float32)
    start[5:9, :, 0] = start[5:9, :, 0].abs() * factor  # the query of one token
    start[10:] = start[10:].abs() * 5 + 5  # all keys
    blocked = blocking(2, 5, [5, 3]) if padded else None
    real = torch.ones(2, 5, dtype=torch.bool) if blocked is None else ~blocked[:, 0, 0]
    ours = attend(start.clone(), blocked)
    torch.testing.assert_close(ours[:, real], plain(start, blocked)[:, real], rtol=1e-4, atol=1e-5)


def stack(rezero, dtype=torch.float64):
    torch.manual_seed(3)
    blocks = Stack(Block(16, 4, 32, rezero=rezero) for _ in range(3)).to(dtype)
    with torch.no_grad():
        for parameter in blocks.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return blocks


@pytest.mark.parametrize("rezero", [True, False])
@pytest.mark.parametrize("padded", [False, True])
def test_folded_blocks_compute_what_blocks_do(rezero, padded):
    blocks = stack(rezero)
    x = torch.randn(5, 7, 16, dtype=torch.float64, requires_grad=True)
    blocked = blocking(5, 7, [7, 6, 5, 4, 3]) if padded else None
    real = torch.ones(5, 7, dtype=torch.bool) if blocked is None else ~blocked[:, 0, 0]
    theirs = x
    for block in blocks:
        theirs = block(theirs, blocked)
    with torch.no_grad():
        torch.testing.assert_close(blocks.prepare()(x.detach().clone(), blocked)[real], theirs[real], rtol=1e-9, atol=1e-10)
    ours = blocks(x, blocked)
    torch.testing.assert_close(ours[real], theirs[real], rtol=1e-9, atol=1e-10)
    target = torch.randn_like(x)
    gradients = [
        torch.autograd.grad((out * target)[real].sum(), [x, *blocks.parameters()], retain_graph=True) for out in (ours, theirs)
    ]
    for mine, reference in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-7, atol=1e-9)


def test_rows_go_through_the_blocks_in_parts_with_the_same_result(monkeypatch):
    blocks, x = stack(rezero=True), torch.randn(9, 5, 16, dtype=torch.float64)
    blocked = blocking(9, 5, [5, 4, 3, 5, 2, 1, 5, 4, 3])
    target = torch.randn_like(x)

    def run():
        with torch.no_grad():
            plain = blocks(x.clone(), blocked)
        trained = blocks(x, blocked)
        return plain, trained, *torch.autograd.grad((trained * target).sum(), list(blocks.parameters()))

    whole = run()
    monkeypatch.setattr("gumbeldore.policies.folded.TOKENS", 10 // torch.get_num_threads())
    for mine, expected in zip(run(), whole, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_fused_gelu_is_the_exact_one(dtype):
    x, weight, bias = torch.randn(20, 8, dtype=dtype) * 3, torch.randn(12, 8, dtype=dtype), torch.randn(12, dtype=dtype)
    expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))
    torch.testing.assert_close(linear_gelu(x, weight, bias), expected, rtol=1e-5, atol=1e-6)
