"""Networks of routes that are told bounds of tours, or savings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from routing import CLOSE, awake, check_all_weights_learn, check_paths_agree, check_rows_are_independent, masked, partial

from gumbeldore.errors import SettingsError
from gumbeldore.io.policy_files import load_policy, save_policy
from gumbeldore.local_search import compiling
from gumbeldore.networks.frame import turned
from gumbeldore.policies import CVRPPolicy, TSPPolicy
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.problems import CVRP, TSP
from gumbeldore.problems.cvrp.kit import DeliverySize
from gumbeldore.problems.tsp.kit import TourSize

Case = tuple[Problem[Any], Network]
STEPS = torch.tensor([0, 3, 3, 7, 9])


@pytest.fixture(params=["tsp", "cvrp"])
def case(request: pytest.FixtureRequest) -> Case:
    sizes = {"d": 16, "layers": 2, "heads": 4, "ff": 24, "local": 1, "frame": 1}
    if request.param == "tsp":
        return TSP(12), awake(TSPPolicy(**sizes, bounds=1))
    return CVRP(12, capacity=(12, 30)), awake(CVRPPolicy(**sizes, savings=1))


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


def test_a_policy_from_before_is_what_it_was(case: Case, tmp_path: Path) -> None:
    """Its file says nothing of bounds and savings."""
    problem = case[0]
    policy = awake(type(case[1])(16, 2, 4, 24, local=1, frame=1))
    for name in ("bounds", "savings"):
        policy.config.pop(name, None)
    save_policy(tmp_path / "old.safetensors", policy)
    again, state = load_policy(tmp_path / "old.safetensors"), partial(problem, 4, 3)
    torch.testing.assert_close(
        masked(problem, again, state, gradients=False), masked(problem, policy, state, gradients=False), **CLOSE
    )


@pytest.mark.parametrize(("make", "name"), [(TSPPolicy, "bounds"), (CVRPPolicy, "savings")])
def test_they_need_a_frame(make: type[Network], name: str) -> None:
    size = TourSize if make is TSPPolicy else DeliverySize
    for build in (make, size):
        with pytest.raises(SettingsError, match=f"`{name}` needs `frame` = 1, got 0"):
            build(**{name: 1})
    with pytest.raises(SettingsError, match=f"`{name}` must be 0 or 1, got 2"):
        size(frame=1, **{name: 2})


def test_there_is_compiled_code() -> None:
    """A machine that runs all tests has a compiler."""
    assert compiling.compiled() is not None
