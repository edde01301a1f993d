"""Tests of what follows each operation on its machine, and of the head that learns it."""

from __future__ import annotations

import pytest
import torch

from gumbeldore.errors import SettingsError
from gumbeldore.policies import JSSPPolicy
from gumbeldore.problem import Examples
from gumbeldore.problems import JSSP
from gumbeldore.problems.jssp.kit import JobShopSize
from gumbeldore.problems.jssp.problem import JSSPState, machine_successors


def solved(count: int, jobs: int, machines: int, seed: int = 0) -> tuple[JSSPState, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    state = JSSP(jobs, machines).generate(count, generator=generator)
    all_actions = torch.arange(jobs).repeat(machines)
    order = torch.rand(count, jobs * machines, generator=generator).argsort(1)
    return state, all_actions[order]


def learnt(prefix: JSSPState, state: JSSPState, actions: torch.Tensor) -> Examples[JSSPState]:
    return Examples(prefix, actions[:, 0], machine_successors(state, actions))


def test_an_operation_is_followed_by_the_next_one_on_its_machine() -> None:
    state, actions = solved(5, 4, 3)
    successor = machine_successors(state, actions)
    for row in range(5):
        lines: dict[int, list[int]] = {machine: [] for machine in range(3)}
        done = [0] * 4
        for job in actions[row].tolist():
            lines[int(state.machines[row, job, done[job]])].append(job * 3 + done[job])
            done[job] += 1
        for line in lines.values():
            assert [int(successor[row, operation]) for operation in line] == [*line[1:], -1]


def test_examples_of_complete_schedules_carry_successors_and_others_do_not() -> None:
    state, actions = solved(3, 4, 3)
    problem, generator = JSSP(4, 3), torch.Generator().manual_seed(1)
    assert torch.equal(problem.examples(state, actions, generator=generator).successor, machine_successors(state, actions))
    begun = problem.step(state, actions[:, 0])
    assert problem.examples(begun, actions[:, 1:], generator=generator).successor is None


def test_teaching_computes_the_logits_of_a_call_and_a_loss_by_hand() -> None:
    torch.manual_seed(0)
    policy = JSSPPolicy(32, 2, 4, 64, successor_weight=1.0)
    for block in policy.blocks:
        torch.nn.init.constant_(block.resweight, 0.5)
    state, actions = solved(4, 4, 3, seed=2)
    prefix = JSSP(4, 3).prefix(state, actions, torch.tensor([0, 3, 7, 11]))
    logits, losses = policy.loss(learnt(prefix, state, actions))
    assert losses is not None
    torch.testing.assert_close(logits, policy(prefix), atol=1e-5, rtol=1e-5)
    assert losses.shape == (4,)
    assert losses[3].item() == 0  # a single operation is left: nothing follows it
    assert (losses[:2] > 0).all()


def test_the_loss_of_an_untrained_head_is_that_of_guessing() -> None:
    torch.manual_seed(0)
    policy = JSSPPolicy(32, 2, 4, 64, successor_weight=1.0)
    policy.successor_head.query.weight.data.zero_()
    state, actions = solved(2, 5, 3, seed=3)
    _, losses = policy.loss(learnt(state, state, actions))
    assert losses is not None
    torch.testing.assert_close(losses, torch.log(torch.full((2,), 4.0)))  # one of four others on each machine


def test_a_few_steps_teach_what_follows() -> None:
    torch.manual_seed(0)
    policy = JSSPPolicy(32, 2, 4, 64, successor_weight=1.0)
    state, actions = solved(8, 4, 3, seed=4)
    examples = learnt(state, state, actions)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    values = []
    for _ in range(60):
        loss = policy.loss(examples)[1].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < 0.6 * values[0]


def test_the_weight_scales_the_loss() -> None:
    state, actions = solved(2, 3, 2)
    values = []
    for weight in (1.0, 0.25):
        torch.manual_seed(0)
        _, losses = JSSPPolicy(16, 1, 2, 32, successor_weight=weight).loss(learnt(state, state, actions))
        assert losses is not None
        values.append(losses)
    torch.testing.assert_close(values[0] / 4, values[1])


def test_a_network_without_a_weight_has_no_auxiliary_loss() -> None:
    state, actions = solved(2, 3, 2)
    policy = JSSPPolicy(16, 1, 2, 32)
    logits, losses = policy.loss(learnt(state, state, actions))
    assert losses is None
    assert torch.equal(logits, policy(state))
    assert not any("successor" in name for name in policy.state_dict())


def test_labels_of_instances_that_have_begun_cannot_teach_what_follows() -> None:
    state, actions = solved(2, 3, 2)
    with pytest.raises(SettingsError, match="`successor_weight` must be 0 for labels of instances that have begun"):
        JSSPPolicy(16, 1, 2, 32, successor_weight=0.5).loss(Examples(state, actions[:, 0]))


@pytest.mark.parametrize("weight", [-1.0, float("inf"), float("nan")])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    for build in (JSSPPolicy, JobShopSize):
        with pytest.raises(SettingsError, match="`successor_weight` must be a number from 0 on"):
            build(successor_weight=weight)
