"""The LEHD networks for TSP and CVRP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

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
    seeded,
)

from gumbeldore.networks import lehd
from gumbeldore.networks.lehd import LehdPolicy
from gumbeldore.policies import CVRPLehdPolicy, TSPLehdPolicy
from gumbeldore.problem import Problem
from gumbeldore.problems import CVRP, TSP
from gumbeldore.search.samplers import Gumbeldore

STEPS = torch.tensor([0, 3, 3, 7, 9])
Case = tuple[Problem[Any], LehdPolicy]


@pytest.fixture(params=["tsp", "cvrp"])
def case(request: pytest.FixtureRequest) -> Case:
    problem: Problem[Any] = TSP(12) if request.param == "tsp" else CVRP(12, capacity=(12, 30))
    network = TSPLehdPolicy if request.param == "tsp" else CVRPLehdPolicy
    policy = awake(network(d=16, layers=2, heads=4, ff=24))
    assert isinstance(policy, LehdPolicy)
    return problem, policy


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(("name", "policy"), [("tsp_lehd", TSPLehdPolicy), ("cvrp_lehd", CVRPLehdPolicy)])
def test_it_agrees_with_the_public_network(shared: Path, name: str, policy: type[LehdPolicy], gradients: bool) -> None:
    check_parity(shared, name, policy, gradients)


@pytest.mark.parametrize("steps", [0, 4])
def test_inference_computes_what_training_computes(case: Case, steps: int) -> None:
    check_paths_agree(*case, partial(case[0], 3, steps))


@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_different_lengths_do_not_influence_each_other(case: Case, gradients: bool) -> None:
    check_rows_are_independent(*case, partial(case[0], 5, STEPS), gradients=gradients)


def test_every_parameter_gets_a_gradient(case: Case) -> None:
    check_all_weights_learn(*case, partial(case[0], 5, STEPS))


def test_the_encoder_runs_once_per_search(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, policy = case
    calls = []
    embed = policy.embed
    monkeypatch.setattr(policy, "embed", lambda state: calls.append(state.row_count) or embed(state))
    Gumbeldore(beam_width=4, rounds=2)(problem, policy, problem.generate(3, generator=seeded(0)), generator=seeded(0))
    assert calls == [3]


def test_the_encoder_gives_the_same_in_parts(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, policy = case
    state = partial(problem, 5, 2)
    whole = masked(problem, policy, state, gradients=False)
    monkeypatch.setattr(lehd, "TOKENS", 26)
    torch.testing.assert_close(masked(problem, policy, state, gradients=False), whole, **CLOSE)


@pytest.mark.parametrize("gradients", [True, False])
def test_the_encoder_sees_visited_nodes_too(case: Case, gradients: bool) -> None:
    problem, policy = case
    state = partial(problem, 2, 5)
    name = "coordinates" if isinstance(problem, TSP) else "nodes"
    points = getattr(state, name).clone()
    inside = state.visited.clone()
    inside[torch.arange(2), state.current - points.shape[1] + inside.shape[1]] = False
    if isinstance(problem, TSP):
        inside[:, 0] = False
    points[:, points.shape[1] - inside.shape[1] :][inside] = 0.123
    before = masked(problem, policy, state, gradients=gradients)
    after = masked(problem, policy, replace(state, **{name: points}), gradients=gradients)
    assert not torch.allclose(after, before, atol=1e-4)


@pytest.mark.parametrize("gradients", [True, False])
def test_with_nearest_the_decoder_sees_only_the_choosable_nodes(case: Case, gradients: bool) -> None:
    problem, policy = case
    restricted = replace(problem, nearest=3)  # type: ignore[type-var]
    state = partial(restricted, 4, 5)
    tokens: list[int] = []
    with torch.set_grad_enabled(gradients):
        context = policy.prepare(state)
    if context is None:
        policy.graph_decoder.register_forward_pre_hook(lambda module, inputs: tokens.append(inputs[0].shape[1]))
    else:
        decoder = context.blocks
        context = context._replace(blocks=lambda x, blocked: tokens.append(x.shape[1]) or decoder(x, blocked))
    with torch.set_grad_enabled(gradients):
        logits = policy(state, context)
    assert tokens == [5]  # three to choose from, the origin, and the destination or depot
    assert logits.shape == restricted.mask(state).shape
