"""A CVRP network's features of loads and of the depot."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
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

from gumbeldore.networks.distance_bias import DistanceBias
from gumbeldore.networks.frame import turned
from gumbeldore.networks.routes import CanonicalFrame
from gumbeldore.policies import CVRPPolicy
from gumbeldore.problems import CVRP
from gumbeldore.problems.cvrp.loads import MANY, Loads, load_features

STEPS = torch.tensor([0, 3, 3, 7, 9])


def small() -> CVRPPolicy:
    policy = awake(CVRPPolicy(16, 2, 4, 24, features=(DistanceBias(), CanonicalFrame(), Loads())))
    assert isinstance(policy, CVRPPolicy)
    return policy


def test_features_of_a_vehicle_with_4_of_10_left_and_13_to_load() -> None:
    """At customer 0; customers 1 (demand 4), 2 (6) and 3 (3) are left, so two more vehicles leave 1 of 10 and 4 + 10 - 13 = 1."""
    nodes = torch.tensor([[[0.0, 0.0], [0.3, 0.4], [0.0, 0.5], [0.6, 0.8], [0.0, 0.0]]])
    problem = CVRP(4, 10)
    start = problem.instances(nodes, torch.tensor([[0, 6, 4, 6, 3]]), 10)
    state = problem.step(start, torch.tensor([1]))
    away = torch.tensor([[1.0, 0.0, 0.2, 0.9, 1.0]])
    found = load_features(state, torch.arange(5)[None], nodes, away)[0]
    assert found[:, 0].tolist() == [1, 0, 1, 0, 1]  # fits
    assert found[:, 1].tolist() == pytest.approx([0, 6 / 10, 4 / 8, 6 / 10, 3 / 7])
    row = [0.1, math.log1p(1.3) / math.log1p(MANY), math.log1p(3) / math.log1p(MANY), 0, 1]
    assert all(token == pytest.approx(row) for token in found[:, 2:7].tolist())
    assert found[:, 7:].flatten().tolist() == pytest.approx([0, 0, 0.6, 0.8, 0, 1, 0.6, 0.8, 0, 0])


def test_the_last_vehicle_knows_that_all_fits_and_what_it_has_to_spare() -> None:
    problem = CVRP(2, 20)
    state = problem.instances(torch.rand(1, 3, 2), torch.tensor([[0, 6, 4]]), 20)
    found = load_features(state, torch.arange(3)[None], state.nodes, torch.zeros(1, 3))[0]
    assert found[0, 2].item() == pytest.approx(0.5)
    assert found[:, 5].tolist() == [1, 1, 1]


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_it_answers_alike_for_alike_instances(steps: int) -> None:
    problem, policy = CVRP(12, 20), small().double()
    state = partial(problem, 6, steps)
    state = replace(state, nodes=state.nodes.double())
    axis = torch.tensor([math.cos(1.2), math.sin(1.2)], dtype=torch.float64)
    moved = turned(state.nodes, axis.expand_as(state.nodes)) * torch.tensor([1.0, -1.0]) + 0.25
    torch.testing.assert_close(policy(state, None), policy(replace(state, nodes=moved), None), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_different_lengths_do_not_influence_each_other(gradients: bool) -> None:
    problem = CVRP(12, capacity=(12, 30))
    check_rows_are_independent(problem, small(), partial(problem, 5, STEPS), gradients=gradients)


def test_features_of_a_row_are_the_same_to_the_last_bit_whatever_other_rows_there_are() -> None:
    problem = CVRP(12, capacity=(12, 30))
    state = partial(problem, 64, 5)
    order, away = torch.arange(13).expand(64, -1), torch.rand(64, 13, generator=seeded(1))
    together = load_features(state, order, state.nodes, away)
    for row in range(64):
        alone = state.rows(torch.tensor([row]))
        assert torch.equal(load_features(alone, order[:1], state.nodes[row : row + 1], away[row : row + 1])[0], together[row])


def test_inference_computes_what_training_computes() -> None:
    problem = CVRP(12, capacity=(12, 30))
    check_paths_agree(problem, small(), partial(problem, 3, 4))


def test_every_parameter_gets_a_gradient() -> None:
    problem = CVRP(12, capacity=(12, 30))
    check_all_weights_learn(problem, small(), partial(problem, 5, STEPS))


def test_only_shares_of_the_capacity_count() -> None:
    problem = CVRP(10, capacity=20)
    state = partial(problem, 4, 3)
    doubled = replace(state, demands=2 * state.demands, capacity=2 * state.capacity, remaining=2 * state.remaining)
    expected = masked(problem, small(), state, gradients=False)
    torch.testing.assert_close(masked(problem, small(), doubled, gradients=False), expected, **CLOSE)
