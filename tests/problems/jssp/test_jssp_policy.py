"""The job shop network, and who attends to whom in it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from peak import Peak
from routing import (
    CLOSE,
    awake,
    check_all_weights_learn,
    check_paths_agree,
    check_rows_are_independent,
    masked,
    partial,
    seeded,
)
from torch import Tensor
from torch.nn.functional import gelu, linear

from gumbeldore.networks import native
from gumbeldore.networks.layers import Block
from gumbeldore.networks.segments import Layout
from gumbeldore.policies import JSSPPolicy
from gumbeldore.problems import JSSP, JSSPState
from gumbeldore.problems.jssp.network import unscheduled
from gumbeldore.search.samplers import Greedy, Gumbeldore

SIZES = [(1, 1), (1, 5), (5, 1), (4, 3), (3, 7), (20, 2), (6, 6)]


def small(seed: int = 0) -> JSSPPolicy:
    policy = awake(JSSPPolicy(d=16, pairs=2, heads=4, ff=24), seed)
    assert isinstance(policy, JSSPPolicy)
    return policy


def scattered(jobs: int, machines: int, count: int, seed: int = 0) -> JSSPState:
    """Random instances after different numbers of random steps, the first with none and the last almost finished."""
    steps = torch.linspace(0, jobs * machines - 1, count).long()
    return partial(JSSP(jobs, machines), count, steps, seed)


# The paper's network, written down plainly: all operations of all jobs, masks, no savings.


def plain_block(block: Block, x: Tensor, bias: Tensor) -> Tensor:
    """`bias` is added to the scores; its shape is (row, head or 1, query, key)."""
    attention = block.self_attn
    q, k, v = linear(x, attention.in_proj_weight, attention.in_proj_bias).chunk(3, -1)
    q, k, v = (part.unflatten(-1, (attention.heads, -1)).transpose(1, 2) for part in (q, k, v))
    weight = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + bias, -1)
    x = x + block.resweight * attention.out_proj((weight @ v).transpose(1, 2).flatten(2))
    return x + block.resweight * block.linear2(gelu(block.linear1(x)))


def plain_network(policy: JSSPPolicy, state: JSSPState) -> Tensor:
    """Logits of all rows. Scheduled operations and finished jobs are never keys; what they compute is never read."""
    (rows, jobs), count, d = state.scheduled.shape, state.operations, policy.config["d"]
    heads = policy.config["heads"]
    times, machines = state.times[state.instance], state.machines[state.instance]
    unfinished = state.scheduled < count
    following = state.scheduled.clamp(max=count - 1)
    machine_free = state.available[:, jobs:].gather(1, machines.gather(2, following[..., None]).squeeze(2))
    start = torch.maximum(state.available[:, :jobs], machine_free).double()
    first = start.where(unfinished, torch.inf).amin(1, keepdim=True)
    feature = torch.stack([times.double() / 100, ((start - first) / 100)[:, :, None].expand(times.shape)], 3)
    position = torch.zeros(count, d)
    for step in range(count):
        for channel in range(d):
            angle = step / 10000 ** (channel // 2 * 2 / d)
            position[step, channel] = math.cos(angle) if channel % 2 else math.sin(angle)
    x = policy.operation_embedding(feature.to(position.dtype).to(policy.policy_linear_out.weight.dtype)) + position
    hidden = torch.arange(count) < state.scheduled[..., None]  # scheduled operations
    forbid = torch.zeros(hidden.shape).masked_fill(hidden, -1e30)
    distance = torch.arange(count)[None, :] - torch.arange(count)[:, None]
    slope = torch.tensor([2 ** (-8 * (k + 1) / heads) for k in range(heads)])
    alibi = slope[:, None, None] * distance
    other = machines.flatten(1)[:, :, None] != machines.flatten(1)[:, None, :]
    for index, block in enumerate(policy.encoder):
        if index % 2 == 0:
            bias = alibi + forbid.flatten(0, 1)[:, None, None, :]
            x = plain_block(block, x.flatten(0, 1), bias).unflatten(0, (rows, jobs))
        else:
            bias = forbid.flatten(1)[:, None, None, :] + torch.zeros(other.shape).masked_fill(other, -1e30)[:, None]
            x = plain_block(block, x.flatten(1, 2), bias).unflatten(1, (jobs, count))
    chosen = x.gather(2, following[..., None, None].expand(rows, jobs, 1, d)).squeeze(2)
    bias = torch.zeros(unfinished.shape).masked_fill(~unfinished, -1e30)[:, None, None, :]
    return policy.policy_linear_out(plain_block(policy.final_trf_block, chosen, bias)).squeeze(2)


def logits(policy: JSSPPolicy, state: JSSPState, *, gradients: bool) -> Tensor:
    with torch.set_grad_enabled(gradients):
        return policy(state, policy.prepare(state)).detach()


@pytest.mark.parametrize("gradients", [True, False])
def test_it_agrees_with_the_public_network(shared: Path, gradients: bool) -> None:
    file = shared / "data" / "parity" / "jssp.npz"
    if not file.is_file():
        pytest.skip("jssp.npz is absent")
    with np.load(file) as data:
        arrays = {key: torch.from_numpy(data[key]) for key in data}
    weights = {key.removeprefix("weights/"): value for key, value in arrays.items() if key.startswith("weights/")}
    policy = JSSPPolicy(d=32, pairs=2, heads=int(arrays["heads"]), ff=64)
    policy.load_state_dict(weights)
    problem = JSSP()
    root = state = problem.instances(arrays["times"], arrays["machines"])
    for step in range(arrays["jobs"].shape[1]):
        actual = masked(problem, policy, state, gradients=gradients, root=root)
        torch.testing.assert_close(actual, arrays["log_probs"][:, step], rtol=0, atol=1e-4)
        state = problem.step(state, arrays["jobs"][:, step])


def test_the_defaults_are_the_papers_and_parameters_have_the_public_names() -> None:
    policy = JSSPPolicy()
    off = {"features": [], "actions": "all", "successor_weight": 0.0}
    assert policy.config == {"d": 64, "pairs": 3, "heads": 8, "ff": 256, **off}
    names = set(policy.state_dict())
    block = ["self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight", "self_attn.out_proj.bias"]
    block += ["linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias", "resweight"]
    blocks = [f"encoder.{i}" for i in range(6)] + ["final_trf_block"]
    ends = [f"{name}.{kind}" for name in ("operation_embedding", "policy_linear_out") for kind in ("weight", "bias")]
    assert names == {f"{name}.{part}" for name in blocks for part in block} | set(ends)
    assert sum(weight.numel() for weight in policy.parameters()) == 7 * (4 * 64 * 65 + 256 * 65 + 64 * 257 + 1) + 3 * 64 + 65


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_it_computes_what_the_paper_says(
    size: tuple[int, int], gradients: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At all depths, also where jobs are finished."""
    if not compiled:
        monkeypatch.setattr(native, "library", lambda: None)
    state = scattered(*size, count=6)
    actual = logits(small(), state, gradients=gradients)
    expected = plain_network(small(), state)
    torch.testing.assert_close(actual[state.unfinished], expected[state.unfinished], **CLOSE)
    assert bool((actual[~state.unfinished] == 0).all())


@pytest.mark.parametrize("compiled", [True, False])
def test_gradients_are_those_of_the_plain_network(compiled: bool) -> None:
    dtype, tolerance = (torch.float32, 1e-4) if compiled else (torch.float64, 1e-6)
    state, policy = scattered(4, 5, count=8), small().to(dtype)
    assert (policy._prepare(state).blocks.folded is not None) == compiled
    target = torch.randn(state.scheduled.shape, generator=seeded(3), dtype=dtype) * state.unfinished
    theirs = copy.deepcopy(policy)
    (policy(state) * target).sum().backward()
    (plain_network(theirs, state) * target).sum().backward()
    for (name, mine), other in zip(policy.named_parameters(), theirs.parameters(), strict=True):
        assert mine.grad is not None
        torch.testing.assert_close(
            mine.grad, other.grad, rtol=tolerance, atol=tolerance, msg=lambda m, name=name: f"{name}: {m}"
        )


@pytest.mark.parametrize("size", [(5, 4), (15, 15)])
def test_inference_computes_what_training_computes(size: tuple[int, int]) -> None:
    state = scattered(*size, count=8)
    assert bool((~state.unfinished).any(1).any())
    check_paths_agree(JSSP(), small(), state)


@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_different_lengths_do_not_influence_each_other(gradients: bool) -> None:
    check_rows_are_independent(JSSP(), small(), scattered(5, 4, count=7), gradients=gradients)


def test_every_parameter_gets_a_gradient() -> None:
    check_all_weights_learn(JSSP(), small(), scattered(5, 4, count=7))


@pytest.mark.parametrize("gradients", [True, False])
def test_renaming_jobs_permutes_the_logits(gradients: bool) -> None:
    state = scattered(6, 4, count=8)
    order = torch.randperm(6, generator=seeded(1))
    assert bool((~state.unfinished).any())
    renamed = replace(
        state,
        times=state.times[:, order],
        machines=state.machines[:, order],
        scheduled=state.scheduled[:, order],
        available=torch.cat([state.job_available[:, order], state.machine_available], 1),
    )
    before, after = (logits(small(), which, gradients=gradients) for which in (state, renamed))
    torch.testing.assert_close(after, before[:, order], **CLOSE)


@pytest.mark.parametrize("gradients", [True, False])
def test_renaming_machines_changes_nothing(gradients: bool) -> None:
    state = scattered(6, 4, count=8)
    names = torch.randperm(4, generator=seeded(1))
    old_name = names.argsort()
    renamed = replace(
        state,
        machines=names[state.machines],
        available=torch.cat([state.job_available, state.machine_available[:, old_name]], 1),
    )
    assert torch.equal(state.next_starts(), renamed.next_starts())
    before, after = (logits(small(), which, gradients=gradients) for which in (state, renamed))
    torch.testing.assert_close(after, before, **CLOSE)


@pytest.mark.parametrize("gradients", [True, False])
def test_what_is_scheduled_is_forgotten(gradients: bool) -> None:
    """Times of scheduled operations, availability of finished jobs, and a common delay of all else do not matter."""
    state = scattered(6, 4, count=8)
    scheduled = torch.arange(4) < state.scheduled[..., None]
    changed = replace(
        state,
        times=state.times + 50 * scheduled,
        available=state.available + 700 + 400 * torch.nn.functional.pad(~state.unfinished, (0, 4)),
    )
    before, after = (logits(small(), which, gradients=gradients) for which in (state, changed))
    torch.testing.assert_close(after, before, **CLOSE)
    late = replace(state, available=state.available + 30 * torch.nn.functional.pad(torch.eye(6)[:1].long(), (0, 4)))
    moved = (logits(small(), late, gradients=gradients) - before).abs().amax(1)
    assert float(moved[0]) > 1e-3  # while a delay of one unfinished job does


def test_times_that_are_not_whole_numbers_are_welcome() -> None:
    whole = scattered(5, 4, count=6)
    real = replace(whole, times=whole.times.double(), available=whole.available.double())
    torch.testing.assert_close(logits(small(), real, gradients=False), logits(small(), whole, gradients=False), **CLOSE)


def test_rows_may_share_instances() -> None:
    problem = JSSP(5, 4)
    root = problem.generate(2, generator=seeded(0))
    state = root.rows(torch.tensor([1, 0, 1]))
    state = problem.step(state, torch.tensor([2, 0, 3]))
    policy = small()
    with torch.no_grad():
        together = policy(state, policy.prepare(root))
        apart = policy(state.compact(), policy.prepare(state.compact()))
    torch.testing.assert_close(together, apart, **CLOSE)


@pytest.mark.parametrize("gradients", [True, False])
def test_finished_rows_get_zeros(gradients: bool) -> None:
    problem = JSSP(3, 2)
    done = partial(problem, 4, 6)
    assert bool(problem.done(done).all())
    assert logits(small(), done, gradients=gradients).tolist() == [[0.0] * 3] * 4
    mixed = partial(problem, 3, torch.tensor([6, 2, 6]))
    values = logits(small(), mixed, gradients=gradients)
    assert bool((values[[0, 2]] == 0).all())
    torch.testing.assert_close(values[1:2], logits(small(), mixed.rows(slice(1, 2)), gradients=gradients), **CLOSE)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("factor", [40.0, 1000.0])
def test_scores_beyond_the_range_of_exponentials_are_handled(factor: float, gradients: bool) -> None:
    state, policy = scattered(5, 6, count=6), small()
    with torch.no_grad():
        for block in [*policy.encoder, policy.final_trf_block]:
            block.self_attn.in_proj_weight[:32] *= factor
    expected = plain_network(copy.deepcopy(policy).double(), state)
    actual = logits(policy, state, gradients=gradients)
    assert bool(actual.isfinite().all())
    torch.testing.assert_close(actual[state.unfinished].double(), expected[state.unfinished], rtol=0, atol=2e-3)
    if gradients:
        policy(state).square().sum().backward()
        assert all(bool(weight.grad.isfinite().all()) for weight in policy.parameters() if weight.grad is not None)


@pytest.mark.parametrize("gradients", [True, False])
def test_a_row_with_extreme_waiting_times_spoils_no_other(gradients: bool) -> None:
    state, policy = scattered(5, 6, count=6), small()
    late = state.available.clone()
    late[0, 0] += 10**6
    late[2, 3] += 10**5
    extreme = replace(state, available=late)
    before, after = (logits(policy, which, gradients=gradients) for which in (state, extreme))
    torch.testing.assert_close(after[[1, 3, 4, 5]], before[[1, 3, 4, 5]], **CLOSE)
    expected = plain_network(copy.deepcopy(policy).double(), extreme)[[0, 2]]
    torch.testing.assert_close(after[[0, 2]].double(), expected, rtol=1e-3, atol=1e-2)


def test_weights_that_are_not_numbers_are_passed_on_and_not_hidden() -> None:
    policy = small()
    with torch.no_grad():
        policy.encoder[1].linear1.weight.fill_(math.nan)
    assert bool(logits(policy, scattered(4, 3, count=1), gradients=False).isnan().any())


# Costs


def by_segment(layout: Layout, *, queries: bool = False) -> list[set[int]]:
    """The tokens of each segment, or those of them that are queries; no token occurs twice."""
    starts, tokens = (layout.query_starts, layout.query_tokens) if queries else (layout.starts, layout.tokens)
    assert starts is not None
    listed = list(range(int(starts[-1]))) if tokens is None else tokens.tolist()
    assert len(set(listed)) == len(listed) == int(starts[-1])
    return [set(listed[a:b]) for a, b in pairwise(starts.tolist())]


@pytest.mark.parametrize("steps", [0, 25, 59])
def test_scheduled_operations_cost_nothing_and_attention_stays_within_jobs_and_machines(steps: int) -> None:
    jobs, machines, rows = 10, 6, 4
    state, policy = partial(JSSP(jobs, machines), rows, steps), small()
    prepared = policy._prepare(state)
    operations = unscheduled(state, prepared, 4)
    row, job = operations.row_job // jobs, operations.row_job % jobs
    assert len(row) == rows * (jobs * machines - steps)
    assert bool((operations.step >= state.scheduled[row, job]).all())
    machine = state.machines[state.instance[row], job, operations.step]

    def groups(*names: Tensor) -> list[set[int]]:
        found: dict[tuple[int, ...], set[int]] = {}
        for token, name in enumerate(zip(*(part.tolist() for part in names), strict=True)):
            found.setdefault(name, set()).add(token)
        return [found[name] for name in sorted(found)]

    first, by_machine, _, last, final = operations.layouts
    assert by_segment(first) == groups(row, job)
    assert [segment for segment in by_segment(by_machine) if segment] == groups(row, machine)
    assert by_segment(last) == by_segment(by_machine)
    following = {token for token in range(len(row)) if operations.step[token] == state.scheduled[row[token], job[token]]}
    assert by_segment(last, queries=True) == [segment & following for segment in by_segment(last)]
    assert last.query_tokens is not None
    assert last.query_rows is not None
    onward = last.query_tokens[last.query_rows.argsort()].long()  # the order in which the next operations go on
    assert torch.equal(operations.row_job[onward], operations.unfinished)
    assert by_segment(final) == [set(found) for found in groups(operations.unfinished // jobs)]


@pytest.mark.parametrize(("size", "rows", "steps"), [((15, 15), 6, 0), ((15, 15), 9, 110), ((6, 6), 20, 10), ((40, 10), 3, 50)])
def test_the_stated_memory_is_what_a_call_needs(size: tuple[int, int], rows: int, steps: int) -> None:
    state, policy = partial(JSSP(*size), rows, steps), JSSPPolicy()
    with torch.no_grad():
        context = policy.prepare(state)
        with Peak() as peak:
            policy(state, context)
        assert 0.4 * rows * policy.row_bytes(state) < peak.most < rows * policy.row_bytes(state)


def test_the_stated_memory_with_gradients_is_what_is_kept_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    state, policy = partial(JSSP(15, 15), 40, 20), JSSPPolicy()
    monkeypatch.setattr(native, "_spare", [])
    with Peak() as peak:
        policy(state)
    assert 0.6 * 40 * policy.row_bytes(state) < peak.most < 1.2 * 40 * policy.row_bytes(state)


# Samplers


def test_samplers_run_to_the_end_and_their_solutions_verify() -> None:
    problem, policy = JSSP(4, 3), small()
    state = problem.generate(3, generator=seeded(0))
    solutions = Gumbeldore(beam_width=8, rounds=2)(problem, policy, state, generator=seeded(1))
    assert bool(solutions.filled.all())
    greedy = Greedy()(problem, policy, state, generator=seeded(1))
    for row in range(3):
        best = int(solutions.objective[row].argmax())
        final = state.rows(slice(row, row + 1))
        for action in solutions.actions[row, best]:
            final = problem.step(final, action[None])
        assert bool(problem.done(final))
        assert problem.objective(final).item() == solutions.objective[row, best].item()
        assert greedy.actions[row, 0].bincount().tolist() == [3] * 4
