"""The network of flexible job shops."""

from __future__ import annotations

import pytest
import torch
from flexible_shops import random_actions

from gumbeldore import Greedy
from gumbeldore.errors import SettingsError
from gumbeldore.networks import native
from gumbeldore.policy import allowed
from gumbeldore.problem import Examples, replay
from gumbeldore.problems import FJSP
from gumbeldore.problems.fjsp.active import EarlyStarts, active_pairs
from gumbeldore.problems.fjsp.network import FJSPPolicy

PROBLEM = FJSP(5, 4)


def policy(seed=0, **more):
    torch.manual_seed(seed)
    made = FJSPPolicy(**{"d": 16, "pairs": 2, "heads": 2, "ff": 32, "actions": EarlyStarts(), **more})
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def halfway(count=12, steps=7, problem=PROBLEM):
    state = problem.generate(count, generator=torch.Generator().manual_seed(0))
    actions = random_actions(problem, state, torch.Generator().manual_seed(1))
    return replay(problem, state, actions, torch.arange(count) % steps), actions


def logits(made, state):
    with torch.no_grad():
        return made(state, made.prepare(state)).masked_fill(~allowed(PROBLEM, made, state), 0)


def test_early_starts_are_what_it_chooses_among():
    state, _ = halfway()
    assert torch.equal(policy().mask(state), active_pairs(state).flatten(1))
    assert policy(actions=None).mask(state) is None


def test_a_policy_goes_on_from_weights_without_the_head_for_machines():
    made = policy(assignment_weight=0.3)
    assert made.goes_on_from(policy().config)
    assert not policy().goes_on_from(made.config)
    assert not made.goes_on_from(policy(actions=None).config)
    assert FJSPPolicy.from_config(made.config).config == made.config


def test_any_schedule_is_brought_into_the_order_of_early_starts():
    state, actions = halfway(steps=1)
    ordered = policy().as_built(state, actions)
    value = [PROBLEM.objective(replay(PROBLEM, state, each, (each >= 0).sum(1))) for each in (actions, ordered)]
    assert bool((value[1] >= value[0]).all())
    for action in ordered.unbind(1):
        assert bool((policy().mask(state).gather(1, action.clamp(min=0)[:, None]).squeeze(1) | (action < 0)).all())
        state = PROBLEM.step(state, action.clamp(min=0))


def test_rows_do_not_see_each_other():
    state, _ = halfway()
    made = policy()
    together = logits(made, state)
    for row in range(12):
        torch.testing.assert_close(logits(made, state.rows(slice(row, row + 1)))[0], together[row], atol=1e-5, rtol=1e-4)


def test_compiled_blocks_compute_what_their_definition_says(monkeypatch):
    state, _ = halfway()
    made = policy()
    compiled = logits(made, state)
    monkeypatch.setattr(native, "usable", lambda *_: False)
    torch.testing.assert_close(logits(made, state), compiled, atol=1e-5, rtol=1e-4)


def test_units_of_time_do_not_matter():
    state, actions = halfway()
    made = policy()
    initial = PROBLEM.generate(12, generator=torch.Generator().manual_seed(0))
    scaled = PROBLEM.instances(torch.where(initial.times >= 0, initial.times * 37, -1))
    later = replay(PROBLEM, scaled, actions, torch.arange(12) % 7)
    torch.testing.assert_close(logits(made, later), logits(made, state), atol=1e-4, rtol=1e-3)


def test_machines_have_no_names():
    state, actions = halfway()
    made, order = policy(), torch.tensor([2, 0, 3, 1])
    initial = PROBLEM.generate(12, generator=torch.Generator().manual_seed(0))
    renamed = PROBLEM.instances(initial.times[..., order])
    where = order.argsort()
    theirs = torch.where(actions >= 0, actions // 4 * 4 + where[actions % 4], -1)
    later = replay(PROBLEM, renamed, theirs, torch.arange(12) % 7)
    expected = logits(made, state).view(12, 5, 4)[..., order].flatten(1)
    torch.testing.assert_close(logits(made, later), expected, atol=1e-5, rtol=1e-4)


def test_padding_of_operations_does_not_matter():
    state, _ = halfway(steps=1)
    padded = PROBLEM.instances(torch.nn.functional.pad(state.times, (0, 0, 0, 3), value=-1))
    made = policy()
    torch.testing.assert_close(logits(made, padded), logits(made, state), atol=1e-5, rtol=1e-4)


def test_equal_keys_have_equal_logits():
    problem = FJSP(3, 2)
    state = problem.generate(1, generator=torch.Generator().manual_seed(3)).rows(torch.zeros(300, dtype=torch.int64))
    actions = random_actions(problem, state, torch.Generator().manual_seed(4))
    later = replay(problem, state, actions, torch.full((300,), 3))
    keys, found = problem.key(later), policy()(later)
    same = (keys[:, None] == keys[None]).all(2)
    assert int(same.sum()) > 300
    first = same.int().argmax(1)
    assert int((first != torch.arange(300)).sum()) > 10
    torch.testing.assert_close(found[first], found, atol=1e-5, rtol=1e-4)


def test_the_head_for_machines_is_taught_and_changes_no_logit():
    state, actions = halfway(steps=7)
    initial = PROBLEM.generate(12, generator=torch.Generator().manual_seed(0))
    examples = PROBLEM.examples_after(initial, actions, torch.arange(12) % 7, generator=torch.Generator())
    made = policy(assignment_weight=0.5)
    found, loss = made.loss(examples)
    torch.testing.assert_close(found.masked_fill(~allowed(PROBLEM, made, state), 0), logits(made, state), atol=1e-5, rtol=1e-4)
    assert loss.shape == (12,)
    assert int((loss > 0).sum()) >= 10
    loss.sum().backward()
    assert made.assignment.weight.grad.abs().sum() > 0


def test_a_network_learns_the_machines_of_its_examples():
    _, actions = halfway(steps=1)
    initial = PROBLEM.generate(12, generator=torch.Generator().manual_seed(0))
    examples = PROBLEM.examples_after(initial, actions, torch.zeros(12, dtype=torch.int64), generator=torch.Generator())
    made = policy(assignment_weight=0.5)
    optimiser, losses = torch.optim.Adam(made.parameters(), 3e-3), []
    for _ in range(200):
        loss = made.loss(examples)[1].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_without_the_head_or_targets_nothing_is_taught():
    state, _ = halfway()
    examples = Examples(state, torch.zeros(12, dtype=torch.int64))
    assert policy().loss(examples)[1] is None
    with pytest.raises(SettingsError, match="for labels of instances that have begun already"):
        policy(assignment_weight=0.5).loss(examples)


def test_a_greedy_schedule_is_complete():
    state = PROBLEM.generate(4, generator=torch.Generator().manual_seed(0))
    solved = Greedy()(PROBLEM, policy(), state, generator=torch.Generator().manual_seed(0))
    assert bool(solved.objective.isfinite().all())
