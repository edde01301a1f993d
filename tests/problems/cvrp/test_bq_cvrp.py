"""The BQ network for the CVRP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from routing import (
    CLOSE,
    awake,
    check_all_weights_learn,
    check_parity,
    check_paths_agree,
    check_rows_are_independent,
    masked,
    partial,
    random_actions,
    seeded,
)

from gumbeldore.policies import CVRPPolicy
from gumbeldore.problems import CVRP

STEPS = torch.tensor([0, 3, 3, 7, 9])


def small() -> CVRPPolicy:
    policy = awake(CVRPPolicy(d=16, layers=2, heads=4, ff=24))
    assert isinstance(policy, CVRPPolicy)
    return policy


@pytest.mark.parametrize("gradients", [True, False])
def test_it_agrees_with_the_public_network(shared: Path, gradients: bool) -> None:
    check_parity(shared, "cvrp_bq", CVRPPolicy, gradients)


@pytest.mark.parametrize(("customers", "steps"), [(12, 0), (12, 4), (80, 2)])
def test_inference_computes_what_training_computes(customers: int, steps: int) -> None:
    problem = CVRP(customers, capacity=(12, 30))
    check_paths_agree(problem, small(), partial(problem, 3, steps))


@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_different_lengths_do_not_influence_each_other(gradients: bool) -> None:
    problem = CVRP(12, capacity=(12, 30))
    check_rows_are_independent(problem, small(), partial(problem, 5, STEPS), gradients=gradients)


def test_every_parameter_gets_a_gradient() -> None:
    problem = CVRP(12, capacity=(12, 30))
    check_all_weights_learn(problem, small(), partial(problem, 5, STEPS))


def test_training_examples_that_start_at_the_depot_and_at_customers_need_no_padding() -> None:
    problem, generator = CVRP(12, capacity=(12, 30)), seeded(0)
    state = problem.generate(64, generator=generator)
    example = problem.examples(state, random_actions(problem, state, generator), generator=generator).state
    assert 0 < int((example.current == 0).sum()) < 64
    check_rows_are_independent(problem, small(), example.rows(slice(0, 8)), gradients=True)
    seen: list[object] = []
    policy = small()
    policy.graph_encoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[1]))
    policy(example, None)
    assert seen == [None]  # nothing is blocked


@pytest.mark.parametrize("gradients", [True, False])
def test_renaming_customers_renames_the_probabilities(gradients: bool) -> None:
    problem = CVRP(10, capacity=20)
    state = partial(problem, 4, 3)
    order = torch.randperm(10, generator=seeded(2))
    nodes = torch.cat([torch.zeros(1, dtype=torch.long), order + 1])
    renamed = replace(
        state,
        nodes=state.nodes[:, nodes],
        demands=state.demands[:, nodes],
        current=nodes.argsort()[state.current],
        visited=state.visited[:, order],
    )
    expected = masked(problem, small(), state, gradients=gradients).view(4, 10, 2)[:, order].flatten(1)
    torch.testing.assert_close(masked(problem, small(), renamed, gradients=gradients), expected, **CLOSE)


def test_only_shares_of_the_capacity_count() -> None:
    problem = CVRP(10, capacity=20)
    state = partial(problem, 4, 3)
    doubled = replace(state, demands=2 * state.demands, capacity=2 * state.capacity, remaining=2 * state.remaining)
    expected = masked(problem, small(), state, gradients=False)
    torch.testing.assert_close(masked(problem, small(), doubled, gradients=False), expected, **CLOSE)
    emptier = replace(state, remaining=state.remaining - 1)
    assert not torch.allclose(small()(emptier, None), small()(state, None), atol=1e-4)


@pytest.mark.parametrize("gradients", [True, False])
def test_with_nearest_the_network_sees_only_the_choosable_customers(gradients: bool) -> None:
    restricted, policy = CVRP(15, nearest=4), small()
    state = partial(restricted, 6, 5)
    far = ~state.visited & ~state.choosable
    assert bool((far.sum(1) == 15 - 5 - 4).all())
    nodes = state.nodes.clone()
    nodes[:, 1:][far] = 9.0
    moved = replace(state, nodes=nodes)
    assert torch.equal(restricted.mask(moved), restricted.mask(state))
    before = masked(restricted, policy, state, gradients=gradients)
    torch.testing.assert_close(masked(restricted, policy, moved, gradients=gradients), before, **CLOSE)
    assert policy.row_bytes(state) < policy.row_bytes(partial(CVRP(15), 6, 5))
