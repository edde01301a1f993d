"""The attention and the blocks for a CPU against their plain definitions."""

from __future__ import annotations

import math

import pytest
import torch

from gumbeldore.policies.attention import Parts, attend_backward, attended, mix
from gumbeldore.policies.layers import Block, Stack


def projections(size, rows, heads, tokens, counts, seed, dtype=torch.float64):
    """Random ones, with the number one where there are tokens, and zeros in empty places."""
    made = torch.randn(3 * size + 2, rows * heads, tokens, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    made[size] = 1
    return made * real(tokens, counts).repeat(heads, 1)


def attend(projected, together=None):
    parts = Parts.of(projected)
    return attended(parts, mix(parts, together)[1])


def plain(projected, counts, together=None):
    """Softmax attention by its definition; the same channels."""
    size = (len(projected) - 2) // 3
    query, value = projected[:size].permute(1, 2, 0), projected[size + 1 : 2 * size + 1].transpose(0, 1)
    key, bias = projected[2 * size + 1 : -1].transpose(0, 1), projected[-1, :, None]
    allowed = real(query.shape[1], counts)[:, None].repeat(len(query) // len(counts), query.shape[1], 1)
    if together is not None:
        allowed = allowed & (together.transpose(1, 2) > 0).repeat(len(query) // len(counts), 1, 1)
    score = (query @ key + bias).mul(math.log(2)).masked_fill(~allowed, -torch.inf)
    return (score.softmax(-1) @ value.transpose(1, 2)).permute(2, 0, 1)


def real(tokens, counts):
    return torch.arange(tokens) < torch.tensor(counts)[:, None]


def blocking(tokens, counts):
    return ~real(tokens, counts)[:, None, None]


def in_two(tokens, counts):
    """The first half of the tokens and the second half form segments. Empty places may see everything."""
    half = torch.arange(tokens) < (tokens + 1) // 2
    same = (half[:, None] == half).expand(len(counts), tokens, tokens)
    return (same | ~real(tokens, counts)[:, None]).double()


@pytest.mark.parametrize("tokens", [1, 2, 7, 31, 70])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_values_and_gradients_equal_those_of_the_definition(tokens, padded, segments):
    counts = [tokens, max(1, tokens - 2), max(1, tokens // 2 + 1)] if padded else [tokens] * 3
    start = projections(4, 3, 2, tokens, counts, seed=tokens)
    together = in_two(tokens, counts) if segments else None
    there = real(tokens, counts).repeat(2, 1).expand(4, 6, tokens)
    target = torch.randn(4, 6, tokens, dtype=torch.float64) * there
    theirs_in = start.clone().requires_grad_()
    theirs, ours = plain(theirs_in, counts, together), attend(start, together)
    torch.testing.assert_close(ours[there], theirs[there], rtol=1e-10, atol=1e-12)
    assert not bool(ours[~there].any())
    (expected,) = torch.autograd.grad((theirs * target)[there].sum(), theirs_in)
    parts = Parts.of(start)
    queries, values, keys = attend_backward(target, parts, *mix(parts, together))
    gradient = torch.cat([queries, torch.zeros_like(queries[:1]), values, keys])
    everywhere = real(tokens, counts).repeat(2, 1).expand_as(gradient)
    torch.testing.assert_close(gradient[everywhere], expected[everywhere], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("factor", [40, -40])
def test_scores_whose_exponentials_overflow_or_vanish(padded, segments, factor):
    """All scores of one query are hundreds above zero, or far below."""
    counts = [5, 3] if padded else [5, 5]
    start = projections(4, 2, 1, 5, counts, seed=0, dtype=torch.float32)
    start[:4, :, 0] = start[:4, :, 0].abs() * factor  # the query of one token
    start[9:] = (start[9:].abs() * 5 + 5) * real(5, counts)  # all keys
    together = in_two(5, counts) if segments else None
    there = real(5, counts).expand(4, 2, 5)
    torch.testing.assert_close(attend(start, together)[there], plain(start, counts, together)[there], rtol=1e-4, atol=1e-5)


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
    blocked = blocking(7, [7, 6, 5, 4, 3]) if padded else None
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
    blocked = blocking(5, [5, 4, 3, 5, 2, 1, 5, 4, 3])
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
