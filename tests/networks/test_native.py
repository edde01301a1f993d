"""The compiled blocks against their definition, on all kinds of processors that this machine can run."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from gumbeldore.networks import native, segments
from gumbeldore.networks.layers import Block, FoldedStack, Stack, slow_note
from gumbeldore.networks.segments import Layout, find_starts
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP

ABLE = {"AVX512": ("avx512", "avx2", "plain"), "AVX2": ("avx2", "plain")}.get(
    torch.backends.cpu.get_cpu_capability(), ("plain",)
)


@pytest.fixture(params=[kind for kind in ABLE if native.load(kind) is not None])
def kind(request, monkeypatch):
    """Each kind in turn that is installed and can run here."""
    code = native.load(request.param)
    monkeypatch.setattr(native, "library", lambda: code)
    monkeypatch.setattr(native, "_spare", [])
    return request.param


def stack(d=16, heads=4, ff=32, count=3, rezero=True, seed=3):
    torch.manual_seed(seed)
    blocks = Stack(Block(d, heads, ff, rezero=rezero) for _ in range(count))
    with torch.no_grad():
        for parameter in blocks.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return blocks


def defined(blocks, x, blocked=None):
    for block in blocks:
        x = block(x, blocked)
    return x


def real(tokens, counts):
    return torch.arange(tokens) < torch.tensor(counts)[:, None]


def check_close(ours, theirs, tolerance=3e-5):
    """Relative to the largest of the numbers: rounding errors of sums are."""
    assert ours.shape == theirs.shape
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance * max([1.0, *theirs.detach().abs().flatten().tolist()]))


def check_gradients(ours, theirs, inputs, target):
    gradients = [torch.autograd.grad((out * target).sum(), inputs) for out in (ours, theirs)]
    for mine, reference in zip(*gradients, strict=True):
        check_close(mine, reference, 3e-4)


def test_there_is_compiled_code():
    """Where a compiler is at hand, as in continuous integration; otherwise everything below would be skipped unnoticed."""
    assert native.library() is not None


@pytest.mark.parametrize("rezero", [True, False])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    ("d", "heads", "ff", "tokens"),
    [(16, 4, 32, 1), (16, 2, 24, 7), (64, 8, 256, 21), (48, 3, 100, 50), (32, 1, 64, 17), (192, 12, 512, 5)],
)
def test_values_and_gradients_are_those_of_the_definition(kind, d, heads, ff, tokens, padded, rezero):
    blocks = stack(d, heads, ff, count=2, rezero=rezero)
    counts = [max(1, tokens - i) if padded else tokens for i in range(5)]
    there = real(tokens, counts)
    blocked = ~there[:, None, None] if padded else None
    x = torch.randn(5, tokens, d, requires_grad=True)
    theirs = defined(blocks, x, blocked)
    with torch.no_grad():
        prepared = blocks.prepare()
        assert isinstance(prepared, FoldedStack)
        check_close(prepared(x.detach().clone(), blocked)[there], theirs[there])
    ours = blocks(x, blocked)
    check_close(ours[there], theirs[there])
    check_gradients(ours, theirs, [x, *blocks.parameters()], torch.randn_like(x) * there[:, :, None])


def random_layout(tokens, asking, generator):
    """Segments of random tokens, some of them empty; with `asking`, some tokens of each are queries."""
    segment = torch.randint(0, max(2, tokens // 4), (tokens,), generator=generator)
    order, count = segment.argsort(stable=True), max(2, tokens // 4)
    layout = Layout(
        find_starts(segment.bincount(minlength=count)), order.int(), positions=-torch.rand(tokens, generator=generator)
    )
    if not asking:
        return layout
    chosen = order[torch.rand(tokens, generator=generator)[order] < 0.4]
    rows = torch.randperm(len(chosen), generator=generator)
    return replace(
        layout,
        query_starts=find_starts(segment[chosen].bincount(minlength=count)),
        query_tokens=chosen.int(),
        query_rows=rows.int(),
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tokens", [3, 40, 900])
def test_segments_of_any_length_in_any_order(kind, tokens, seed):
    """Slopes in the first block; in the last one only some tokens are queries."""
    generator = torch.Generator().manual_seed(seed)
    blocks = stack(32, 4, 48).blocks
    slopes = [torch.rand(4, generator=generator), None, None]
    layouts = [random_layout(tokens, asking, generator) for asking in (False, False, True)]
    x = torch.randn(tokens, 32, generator=generator, requires_grad=True)
    theirs = segments.run(x, blocks, slopes, layouts)
    folded = [block.fold(slope) for block, slope in zip(blocks, slopes, strict=True)]
    ours = native.run(x, folded, layouts)
    check_close(ours, theirs)
    with torch.no_grad():
        assert torch.equal(native.run(x.detach().clone(), folded, layouts), ours)
    check_gradients(ours, theirs, [x, *(weight for block in blocks for weight in block.parameters())], torch.randn_like(ours))


@pytest.mark.parametrize("factor", [30.0, 300.0])
def test_scores_whose_powers_overflow_or_vanish(kind, factor):
    blocks = stack(rezero=False, count=1)
    with torch.no_grad():
        blocks[0].self_attn.in_proj_weight[:32] *= factor
    x = torch.randn(4, 9, 16)
    expected = defined(stack_of(blocks, torch.float64), x.double())
    x.requires_grad_()
    ours = blocks(x)
    torch.testing.assert_close(ours.double(), expected, rtol=1e-3, atol=1e-3)
    (gradient,) = torch.autograd.grad(ours.sum(), x)
    assert bool(gradient.isfinite().all())


def stack_of(blocks, dtype):
    copied = stack(rezero=False, count=1)
    copied.load_state_dict(blocks.state_dict())
    return copied.to(dtype)


def test_all_scores_far_below_zero(kind):
    """Sums of weights that are as small as the smallest weight would be wrong."""
    block = stack(rezero=False, count=1)
    with torch.no_grad():
        block[0].self_attn.in_proj_weight.zero_()
        block[0].self_attn.in_proj_weight[32:] = torch.randn(16, 16)
    for score in (-70.0, -95.0, -99.5, -101.0, -140.0):
        layout = Layout(torch.tensor([0, 6], dtype=torch.int32), positions=torch.tensor([0.0, -1, -2, -30, -40, -50]) + score)
        x = torch.randn(6, 16)
        with torch.no_grad():
            ours = native.run(x.clone(), [block[0].fold(torch.ones(4))], [layout])
            theirs = segments.run(x, block.blocks, [torch.ones(4)], [layout])
        check_close(ours, theirs)


def test_a_segment_does_not_depend_on_what_is_computed_with_it(kind):
    blocks = stack(64, 8, 256)
    x = torch.randn(40, 13, 64)
    with torch.no_grad():
        prepared = blocks.prepare()
        together = prepared(x.clone())
        for row in (0, 17, 39):
            assert torch.equal(prepared(x[row : row + 1].clone()), together[row : row + 1])


def test_threads_share_the_segments(kind, monkeypatch):
    blocks, x = stack(), torch.randn(30, 7, 16)
    blocked = ~real(7, [1 + i % 7 for i in range(30)])[:, None, None]

    def run():
        with torch.no_grad():
            plain = blocks.prepare()(x.clone(), blocked)
        trained = blocks(x, blocked)
        return plain, trained, torch.autograd.grad(trained.square().sum(), list(blocks.parameters()))

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = run()
        torch.set_num_threads(3)
        monkeypatch.setattr(native, "WORTH", 1)
        together = run()
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(together[0], alone[0])
    assert torch.equal(together[1], alone[1])
    for mine, other in zip(together[2], alone[2], strict=True):
        check_close(mine, other, 1e-4)


def test_graphs_that_live_at_the_same_time_share_no_memory(kind):
    blocks, target = stack(), torch.randn(3, 5, 16)
    inputs = [torch.randn(3, 5, 16, requires_grad=True) for _ in range(3)]
    alone = [torch.autograd.grad((blocks(x) * target).sum(), x)[0] for x in inputs]
    outputs = [blocks(x) for x in inputs]
    for x, y, expected in reversed(list(zip(inputs, outputs, alone, strict=True))):
        assert torch.equal(torch.autograd.grad((y * target).sum(), x)[0], expected)


def test_memory_for_gradients_is_used_again(kind):
    blocks = stack()
    for rows in (4, 9, 2, 9, 5):
        blocks(torch.randn(rows, 5, 16)).sum().backward()
    assert len(native._spare) <= 5


def test_a_second_gradient_is_refused_with_a_reason(kind):
    x = torch.randn(2, 3, 16, requires_grad=True)
    y = stack()(x).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="computed before"):
        y.backward()


def test_what_is_not_a_number_is_passed_on(kind):
    for part in (slice(0, 16), slice(32, 48)):
        blocks = stack()
        with torch.no_grad():
            blocks[1].self_attn.in_proj_weight[part] = torch.nan
            assert bool(blocks.prepare()(torch.randn(2, 5, 16)).isnan().all())


def test_other_numbers_sizes_and_machines_use_the_definition(monkeypatch):
    assert isinstance(stack().prepare(), FoldedStack)
    assert isinstance(stack().double().prepare(), Stack)
    assert isinstance(stack(d=18, heads=3).prepare(), Stack)
    monkeypatch.setattr(native, "library", lambda: None)
    assert isinstance(stack().prepare(), Stack)


def test_a_policy_computes_the_same_without_compiled_code(monkeypatch):
    problem, policy = TSP(9), TSPPolicy(d=16, layers=2, heads=2, ff=32)
    nn.init.constant_(policy.graph_encoder[0].resweight, 0.5)
    state = problem.generate(4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        compiled = policy(state, policy.prepare(state))
        monkeypatch.setattr(native, "library", lambda: None)
        check_close(policy(state, policy.prepare(state)), compiled)


def test_users_are_told_when_blocks_are_not_compiled(monkeypatch):
    assert slow_note(TSPPolicy()) is None
    assert "heads of" in slow_note(TSPPolicy(d=18, heads=3))
    monkeypatch.setattr(native, "library", lambda: None)
    assert "C++ compiler" in slow_note(TSPPolicy())
