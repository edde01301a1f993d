"""Tests of what is taught beside the actions: which item follows which."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gumbeldore import Examples, TrainingSettings
from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.networks.pointer import in_tokens, successor_losses
from gumbeldore.policies import TSPLehdPolicy, TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.training.loss import Loss
from gumbeldore.training.workers import Workers


def drawn(cities: int = 8, rows: int = 6, seed: int = 0) -> Examples:
    """Examples of random tours; a few seeds give segments of every length."""
    generator = torch.Generator().manual_seed(seed)
    problem = TSP(cities)
    state = problem.generate(rows, generator=generator)
    actions = torch.stack([1 + torch.randperm(cities - 1, generator=generator) for _ in range(rows)])
    return problem.examples(state, actions, generator=generator)


def taught_policy(seed: int = 0) -> TSPPolicy:
    torch.manual_seed(seed)
    policy = TSPPolicy(16, 2, 2, 32, pointer=1)
    for block in policy.graph_encoder.blocks:
        torch.nn.init.constant_(block.resweight, 0.5)
    return policy


def test_the_loss_is_the_mean_over_tokens_that_have_a_target() -> None:
    scores = torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([[1, 3, -1, -1], [-1, -1, -1, -1]])
    first = -torch.log_softmax(scores[0, 0, [1, 2, 3]], 0)[0]
    second = -torch.log_softmax(scores[0, 1, [0, 2, 3]], 0)[2]
    assert torch.allclose(successor_losses(scores, target), torch.stack([(first + second) / 2, torch.zeros_like(first)]))


def test_tokens_that_cannot_follow_take_no_part() -> None:
    scores = torch.randn(1, 3, 3, generator=torch.Generator().manual_seed(0))
    target, allowed = torch.tensor([[2, -1, -1]]), torch.tensor([[False, False, True]])
    assert successor_losses(scores, target, allowed).item() == pytest.approx(0, abs=1e-6)


def test_targets_of_items_become_places_of_tokens() -> None:
    successor = torch.tensor([[-1, 4, 1, 0, -1]])
    assert in_tokens(successor, torch.tensor([[2, 1, 4, 3]])).tolist() == [[1, 2, -1, -1]]  # 3 leads to 0, which is no token


def test_an_item_that_is_two_tokens_is_followed_to_the_last_one() -> None:
    successor = torch.tensor([[1, 0]])
    assert in_tokens(successor, torch.tensor([[0, 1, 0]])).tolist() == [[1, 2, 1]]


@pytest.mark.parametrize("seed", range(8))
def test_successors_of_an_open_segment_lead_from_origin_to_destination_over_all_that_is_left(seed: int) -> None:
    examples = drawn(seed=seed)
    state, successor = examples.state, examples.successor
    assert successor is not None
    for row in range(state.row_count):
        if state.start[row] == state.current[row]:
            assert bool((successor[row] == -1).all())
            continue
        city, seen = int(state.current[row]), []
        assert int(successor[row, city]) == int(examples.action[row])
        while (city := int(successor[row, city])) != -1:
            seen.append(city)
        assert seen[-1] == int(state.start[row])
        assert sorted(seen[:-1]) == (~state.visited[row]).nonzero().flatten().tolist()


def test_both_closed_and_open_segments_were_among_those() -> None:
    closed = {bool((drawn(seed=seed).successor == -1).all()) for seed in range(8)}
    assert closed == {True, False}


def test_a_taught_network_gives_the_logits_of_a_call() -> None:
    policy, examples = taught_policy(), drawn(seed=1)
    assert examples.successor is not None
    logits, _ = policy.taught(examples.state, examples.successor)
    assert torch.equal(logits, policy(examples.state))


def test_the_weight_scales_what_successors_add_to_the_gradient() -> None:
    examples = next(e for seed in range(8) if bool((e := drawn(seed=seed)).successor.ge(0).any()))

    def gradient(weight: float) -> torch.Tensor:
        policy = taught_policy()
        Loss(weight)(TSP(8), policy, examples)[0].mean().backward()
        assert policy.node_embedding.weight.grad is not None
        return policy.node_embedding.weight.grad

    none, one, two = (gradient(weight) for weight in (0.0, 1.0, 2.0))
    assert not torch.allclose(none, one)
    assert torch.allclose(two - one, one - none, atol=1e-6)


def test_parts_of_a_step_add_up_with_successors_too() -> None:
    examples, policy = drawn(rows=7, seed=2), taught_policy()
    (whole, one), (parts, three) = (Workers(TSP(8), policy, 0, parts=count).gradient(examples, Loss(0.5))() for count in (1, 3))
    assert whole == pytest.approx(parts, abs=1e-6)
    assert torch.allclose(one, three, atol=1e-6)


def test_a_network_that_cannot_predict_successors_says_so() -> None:
    examples = drawn()
    for policy in (TSPPolicy(16, 1, 2, 32), TSPLehdPolicy(16, 1, 2, 32)):
        with pytest.raises(ContractError, match="`successor_weight` must be 0 for"):
            Loss(1.0)(TSP(8), policy, examples)


def test_a_problem_whose_examples_do_not_say_what_follows_says_so() -> None:
    examples, policy = replace(drawn(), successor=None), taught_policy()
    with pytest.raises(SettingsError, match=r"`successor_weight` must be 0 for TSP, got 1\.0: its examples do not say"):
        Loss(1.0)(TSP(8), policy, examples)
    wanted, shown = Loss()(TSP(8), policy, examples)
    assert bool((shown > 0).all())
    assert torch.equal(wanted, shown)


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(SettingsError, match="`successor_weight` must be a number from 0 on"):
        TrainingSettings(successor_weight=-1.0)
