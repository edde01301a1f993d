"""What a policy is taught by an example."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from routing import random_actions, seeded

from gumbeldore.errors import SettingsError
from gumbeldore.policies import JSSPPolicy, TSPPolicy
from gumbeldore.problem import Examples
from gumbeldore.problems import JSSP, TSP
from gumbeldore.training.loss import Loss, action_losses
from gumbeldore.training.workers import Workers

PROBLEM = JSSP(4, 3)


def policy() -> JSSPPolicy:
    torch.manual_seed(0)
    made = JSSPPolicy(16, 1, 2, 32, pointer=1)
    with torch.no_grad():
        for block in made.blocks:
            block.resweight.fill_(0.5)
    return made


def drawn(rows: int = 9) -> Examples:
    state = PROBLEM.generate(rows, generator=seeded(0))
    return PROBLEM.examples(state, random_actions(PROBLEM, state, seeded(1)), generator=seeded(2))


def test_the_loss_is_that_of_the_next_action_unless_more_is_asked_for():
    examples, taught = drawn(), policy()
    wanted, shown = Loss()(PROBLEM, taught, examples)
    probability = taught(examples.state).masked_fill(~PROBLEM.mask(examples.state), float("-inf")).softmax(1)
    assert torch.allclose(wanted.exp(), 1 / probability.gather(1, examples.action[:, None]).squeeze(1), rtol=1e-4)
    assert torch.equal(wanted, shown)
    assert torch.equal(shown, action_losses(PROBLEM, taught, examples))


def test_successors_come_on_top():
    examples, taught = drawn(), policy()
    assert examples.successor is not None
    _, successors = taught.taught(examples.state, examples.successor)
    both, shown = Loss(0.5)(PROBLEM, taught, examples)
    assert torch.allclose(both, shown + 0.5 * successors, atol=1e-5)


def test_parts_of_a_step_add_up():
    examples, loss = drawn(), Loss(0.5)
    (whole, one), (parts, three) = (Workers(PROBLEM, policy(), 0, parts=n).gradient(examples, loss)() for n in (1, 3))
    assert whole == pytest.approx(parts, abs=1e-6)
    assert torch.allclose(one, three, atol=1e-6)


def test_a_problem_whose_examples_do_not_say_what_follows_says_so():
    torch.manual_seed(0)
    state = TSP(6).generate(4, generator=seeded(0))
    examples = TSP(6).examples(state, random_actions(TSP(6), state, seeded(1)), generator=seeded(2))
    with pytest.raises(SettingsError, match=r"`successor_weight` must be 0 for TSP, got 0\.5: its examples do not say"):
        Loss(0.5)(TSP(6), TSPPolicy(16, 1, 2, 32, pointer=1), replace(examples, successor=None))
