"""Networks of routes with look-ahead features: bounds of tours, or savings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from routing import awake, check_all_weights_learn, check_paths_agree, check_rows_are_independent, masked, partial

from gumbeldore.local_search import compiling
from gumbeldore.networks.distance_bias import DistanceBias
from gumbeldore.networks.frame import turned
from gumbeldore.networks.routes import CanonicalFrame
from gumbeldore.policies import CVRPPolicy, TSPPolicy
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.problems import CVRP, TSP
from gumbeldore.problems.cvrp.loads import Loads
from gumbeldore.problems.cvrp.savings import SavingsLookAhead
from gumbeldore.problems.tsp.bounds import SpanningTreeBounds

Case = tuple[Problem[Any], Network]
STEPS = torch.tensor([0, 3, 3, 7, 9])


@pytest.fixture(params=["tsp", "cvrp"])
def case(request: pytest.FixtureRequest) -> Case:
    begun = (DistanceBias(), CanonicalFrame())
    if request.param == "tsp":
        return TSP(12), awake(TSPPolicy(16, 2, 4, 24, features=(*begun, SpanningTreeBounds())))
    return CVRP(12, capacity=(12, 30)), awake(CVRPPolicy(16, 2, 4, 24, features=(*begun, SavingsLookAhead())))


@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_different_lengths_do_not_influence_each_other(case: Case, gradients: bool) -> None:
    problem, policy = case
    check_rows_are_independent(problem, policy, partial(problem, 5, STEPS), gradients=gradients)


def test_inference_computes_what_training_computes(case: Case) -> None:
    check_paths_agree(*case, partial(case[0], 3, 4))


def test_every_parameter_gets_a_gradient(case: Case) -> None:
    check_all_weights_learn(*case, partial(case[0], 5, STEPS))


def test_they_answer_alike_without_compiled_code(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, policy = case
    state = partial(problem, 5, STEPS)
    expected = masked(problem, policy, state, gradients=False)
    monkeypatch.setattr(compiling, "compiled", lambda: None)
    torch.testing.assert_close(masked(problem, policy, state, gradients=False), expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_they_answer_alike_for_alike_instances(case: Case, steps: int) -> None:
    problem, policy = case
    state = partial(problem, 6, steps)
    name = "coordinates" if isinstance(problem, TSP) else "nodes"
    points = getattr(state, name)
    moved = turned(points, torch.tensor([math.cos(1.2), math.sin(1.2)]).expand_as(points)) * torch.tensor([1.0, -1.0]) + 0.25
    expected = masked(problem, policy, state, gradients=False)
    found = masked(problem, policy, replace(state, **{name: moved}), gradients=False)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_look_ahead_works_by_itself_and_rows_stay_independent(name: str, gradients: bool) -> None:
    if name == "tsp":
        problem: Problem[Any] = TSP(12)
        policy: Network = awake(TSPPolicy(16, 2, 4, 24, features=(SpanningTreeBounds(rounds=20, tries=2),)))
    else:
        problem, policy = CVRP(12, 20), awake(CVRPPolicy(16, 2, 4, 24, features=(Loads(), SavingsLookAhead())))
    check_rows_are_independent(problem, policy, partial(problem, 5, STEPS), gradients=gradients)


def test_a_network_with_look_ahead_begins_as_its_heuristic(case: Case) -> None:
    problem, network = case
    policy, state = type(network).from_config(network.config), partial(problem, 5, 3)
    begun = masked(problem, policy, state, gradients=False)
    for block in policy.graph_encoder.blocks:  # type: ignore[attr-defined]
        torch.nn.init.constant_(block.linear2.weight, 0.3)
    torch.testing.assert_close(masked(problem, policy, state, gradients=False), begun, rtol=0, atol=0)


def test_there_is_compiled_code() -> None:
    """A machine that runs all tests has a compiler."""
    assert compiling.compiled() is not None
