"""What is made small in a gradient step."""

from __future__ import annotations

import pytest
import torch
from routing import random_actions, seeded

from gumbeldore.errors import ContractError
from gumbeldore.policies import JSSPPolicy, TSPPolicy
from gumbeldore.problem import Examples, replay
from gumbeldore.problems import JSSP, TSP
from gumbeldore.training.loss import action_losses, losses
from gumbeldore.training.workers import Workers

PROBLEM = JSSP(4, 3)


def policy(weight: float = 0.0) -> JSSPPolicy:
    torch.manual_seed(0)
    made = JSSPPolicy(16, 1, 2, 32, successor_weight=weight)
    with torch.no_grad():
        for block in made.blocks:
            block.resweight.fill_(0.5)
    return made


def drawn(rows: int = 9) -> Examples:
    state = PROBLEM.generate(rows, generator=seeded(0))
    return PROBLEM.examples(state, random_actions(PROBLEM, state, seeded(1)), generator=seeded(2))


def test_the_loss_is_that_of_the_next_action_of_a_network_without_more():
    examples, network = drawn(), policy()
    wanted, shown = losses(PROBLEM, network, examples)
    probability = network(examples.state).masked_fill(~PROBLEM.mask(examples.state), float("-inf")).softmax(1)
    assert torch.allclose(wanted.exp(), 1 / probability.gather(1, examples.action[:, None]).squeeze(1), rtol=1e-4)
    assert torch.equal(wanted, shown)
    assert torch.equal(shown, action_losses(PROBLEM, network, examples))


def test_an_auxiliary_loss_comes_on_top():
    examples, network = drawn(), policy(0.5)
    _, auxiliary = network.loss(examples)
    both, shown = losses(PROBLEM, network, examples)
    open_rows = PROBLEM.mask(examples.state).sum(1) > 1
    assert torch.allclose(both[open_rows], (shown + auxiliary)[open_rows], atol=1e-5)
    assert bool((both > shown).any())


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_parts_of_a_step_add_up(weight):
    examples = drawn()
    (whole, one), (parts, three) = (Workers(PROBLEM, policy(weight), 0, parts=n).gradient(examples)() for n in (1, 3))
    assert whole == pytest.approx(parts, abs=1e-6)
    assert torch.allclose(one, three, atol=1e-6)


def test_rows_without_a_choice_cost_no_pass_through_the_network():
    state = PROBLEM.generate(6, generator=seeded(0))
    last = replay(PROBLEM, state, random_actions(PROBLEM, state, seeded(1)), torch.full((6,), 11))
    forced = Examples(last, PROBLEM.mask(last).int().argmax(1))
    network = policy()
    network.forward = lambda *_: pytest.fail("The network was called.")
    wanted, shown = losses(PROBLEM, network, forced)
    assert (wanted.tolist(), shown.tolist()) == ([0.0] * 6, [0.0] * 6)
    wanted.sum().backward()


def test_a_target_that_is_masked_is_named():
    state = TSP(6).generate(4, generator=seeded(0))
    with pytest.raises(
        ContractError, match="`TSP` must have actions that its `mask` allows, but 4 of 4 have not: action 0 of row 0"
    ):
        losses(TSP(6), TSPPolicy(16, 1, 2, 32), Examples(state, torch.zeros(4, dtype=torch.long)))
