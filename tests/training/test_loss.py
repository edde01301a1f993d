"""What a policy is taught by an example."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from routing import random_actions, seeded

from gumbeldore import TrainingSettings
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


def test_alternatives_are_taught_by_the_sum_of_their_probabilities():
    examples, taught = drawn(), policy()
    assert examples.alternatives is not None
    wanted, shown = Loss(alternatives=1.0)(PROBLEM, taught, examples)
    probability = taught(examples.state).masked_fill(~PROBLEM.mask(examples.state), float("-inf")).softmax(1)
    assert torch.allclose((-wanted).exp(), (probability * examples.alternatives).sum(1), rtol=1e-4)
    assert bool((wanted <= shown + 1e-6).all())
    assert bool((wanted < shown - 1e-3).any())


def test_a_share_of_alternatives_lies_between_both_losses():
    examples, taught = drawn(), policy()
    one, some, every = (Loss(alternatives=share)(PROBLEM, taught, examples)[0] for share in (0.0, 0.25, 1.0))
    assert torch.allclose(some, 0.75 * one + 0.25 * every, atol=1e-6)


def test_successors_come_on_top_of_alternatives():
    examples, taught = drawn(), policy()
    assert examples.successor is not None
    _, successors = taught.taught(examples.state, examples.successor)
    both, alone = (Loss(weight, 1.0)(PROBLEM, taught, examples)[0] for weight in (0.5, 0.0))
    assert torch.allclose(both, alone + 0.5 * successors, atol=1e-5)


def test_parts_of_a_step_add_up_with_alternatives():
    examples, loss = drawn(), Loss(0.5, 0.9)
    (whole, one), (parts, three) = (Workers(PROBLEM, policy(), 0, parts=n).gradient(examples, loss)() for n in (1, 3))
    assert whole == pytest.approx(parts, abs=1e-6)
    assert torch.allclose(one, three, atol=1e-6)


def test_a_problem_whose_examples_know_no_alternatives_says_so():
    torch.manual_seed(0)
    state = TSP(6).generate(4, generator=seeded(0))
    examples = TSP(6).examples(state, random_actions(TSP(6), state, seeded(1)), generator=seeded(2))
    with pytest.raises(SettingsError, match=r"`alternatives` must be 0 for TSP, got 0\.5: its examples do not say"):
        Loss(alternatives=0.5)(TSP(6), TSPPolicy(16, 1, 2, 32), replace(examples, alternatives=None))


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_outside_of_0_to_1_is_refused(share):
    with pytest.raises(SettingsError, match=rf"`alternatives` is a share and must lie in 0 \(off\) .. 1, got {share}"):
        TrainingSettings(alternatives=share)
