"""The BQ network for the TSP."""

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
)

from gumbeldore.errors import SettingsError
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP

STEPS = torch.tensor([0, 3, 3, 7, 9])


def small() -> TSPPolicy:
    policy = awake(TSPPolicy(d=16, layers=2, heads=4, ff=24))
    assert isinstance(policy, TSPPolicy)
    return policy


@pytest.mark.parametrize("gradients", [True, False])
def test_it_agrees_with_the_public_network(shared: Path, gradients: bool) -> None:
    check_parity(shared, "tsp_bq", TSPPolicy, gradients)


@pytest.mark.parametrize(("cities", "steps"), [(12, 4), (80, 2)])
def test_inference_computes_what_training_computes(cities: int, steps: int) -> None:
    check_paths_agree(TSP(cities), small(), partial(TSP(cities), 3, steps))


@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_different_lengths_do_not_influence_each_other(gradients: bool) -> None:
    check_rows_are_independent(TSP(12), small(), partial(TSP(12), 5, STEPS), gradients=gradients)


def test_every_parameter_gets_a_gradient() -> None:
    check_all_weights_learn(TSP(12), small(), partial(TSP(12), 5, STEPS))


@pytest.mark.parametrize("gradients", [True, False])
def test_renaming_cities_renames_the_probabilities(gradients: bool) -> None:
    problem, state = TSP(10), partial(TSP(10), 4, 3)
    order = torch.randperm(10, generator=torch.Generator().manual_seed(2))
    place = order.argsort()
    renamed = replace(
        state,
        coordinates=state.coordinates[:, order],
        start=place[state.start],
        current=place[state.current],
        visited=state.visited[:, order],
    )
    expected = masked(problem, small(), state, gradients=gradients)[:, order]
    torch.testing.assert_close(masked(problem, small(), renamed, gradients=gradients), expected, **CLOSE)


def test_cities_inside_the_path_are_not_seen_and_its_ends_are() -> None:
    problem, state, policy = TSP(10), partial(TSP(10), 1, 4), small()
    before = masked(problem, policy, state, gradients=False)
    inside = state.visited[0].clone()
    inside[[int(state.start), int(state.current)]] = False
    assert int(inside.sum()) == 3
    for moved, same in ((inside, True), (~inside & state.visited[0], False)):
        elsewhere = replace(state, coordinates=torch.where(moved[:, None], 0.123, state.coordinates))
        after = masked(problem, policy, elsewhere, gradients=False)
        assert torch.allclose(after, before, atol=1e-6) is same


@pytest.mark.parametrize("gradients", [True, False])
def test_with_nearest_the_network_sees_only_the_choosable_cities(gradients: bool) -> None:
    restricted, policy = TSP(15, nearest=4), small()
    state = partial(restricted, 6, 5)
    far = ~state.visited & ~restricted.mask(state)
    assert bool((far.sum(1) == 15 - 6 - 4).all())
    moved = replace(state, coordinates=torch.where(far[..., None], 9.0, state.coordinates))
    assert torch.equal(restricted.mask(moved), restricted.mask(state))
    before = masked(restricted, policy, state, gradients=gradients)
    torch.testing.assert_close(masked(restricted, policy, moved, gradients=gradients), before, **CLOSE)
    assert policy.row_bytes(state) < policy.row_bytes(partial(TSP(15), 6, 5))


def test_it_accepts_coordinates_in_double_precision() -> None:
    problem, state = TSP(10), partial(TSP(10), 2, 3)
    double = replace(state, coordinates=state.coordinates.double())
    for gradients in (True, False):
        expected = masked(problem, small(), state, gradients=gradients)
        torch.testing.assert_close(masked(problem, small(), double, gradients=gradients), expected, **CLOSE)


def test_a_width_that_the_heads_do_not_divide_is_rejected() -> None:
    with pytest.raises(SettingsError, match="`d` must be a multiple of `heads`, got d=10 and heads=4"):
        TSPPolicy(d=10, heads=4)
