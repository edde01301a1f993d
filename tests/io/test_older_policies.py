"""Policies of older versions, and those that ship, answer as they did when features were still integers.

`tests/data/policies` holds small policies of that version, as it wrote them, and what it answered in some states, with and without gradients;
for the shipped policies the answers only.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gumbeldore.errors import CheckpointError
from gumbeldore.io.policy_files import load_policy, read_weights, save_policy
from gumbeldore.io.shipped import choose
from gumbeldore.kits.registry import kit_named
from gumbeldore.problem import State
from gumbeldore.problems import CVRP, JSSP, TSP
from gumbeldore.problems.cvrp.problem import CVRPState
from gumbeldore.problems.jssp.problem import JSSPState
from gumbeldore.problems.tsp.problem import TSPState

FOLDER = Path(__file__).parents[1] / "data" / "policies"
STATES: dict[str, type[State]] = {"tsp": TSPState, "cvrp": CVRPState, "jssp": JSSPState}
PROBLEMS = {"tsp": TSP(), "cvrp": CVRP(), "jssp": JSSP()}


def problem_of(name: str) -> str:
    return name.removeprefix("older-").partition("-")[0]


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.npz")))
def test_they_answer_as_they_did(name: str) -> None:
    with np.load(FOLDER / f"{name}.npz") as file:
        arrays = {key: torch.from_numpy(file[key]) for key in file}
    allowed, searched, trained = (arrays.pop(key) for key in ("allowed", "logits", "trained"))
    state, problem = STATES[problem_of(name)](**arrays), problem_of(name)
    policy = load_policy(FOLDER / f"{name}.safetensors") if "older" in name else choose(kit_named(problem), name).load()
    space = policy.mask(state)
    assert torch.equal(PROBLEMS[problem].mask(state) if space is None else space, allowed)
    with torch.no_grad():
        torch.testing.assert_close(policy(state, policy.prepare(state)).where(allowed, 0), searched, rtol=0, atol=1e-5)
    torch.testing.assert_close(policy(state).detach().where(allowed, 0), trained, rtol=0, atol=1e-5)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.safetensors")), ids=lambda path: path.stem)
def test_they_are_read_with_one_line_and_written_anew_without(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    moved = tmp_path / path.name
    moved.write_bytes(path.read_bytes())
    with caplog.at_level(logging.WARNING, "gumbeldore"):
        policy = load_policy(moved)
        assert [("an older version wrote it" in line, "\n" in line) for line in caplog.messages] == [(True, False)]
        caplog.clear()
        save_policy(moved, policy, problem="any")
        assert load_policy(moved).config == policy.config
    assert caplog.messages == []


def test_shipped_policies_are_written_as_this_version_writes_them() -> None:
    for name in STATES:
        path = choose(kit_named(name)).path
        assert json.loads(read_weights(path)[1]["config"]) == load_policy(path).config


@pytest.mark.parametrize(
    "config", ["null", "[1, 2]", '"d"', "3", "{bad", "[" * 100_000, '{"d": null}', '{"d": [16]}', '{"features": 3}', '{"e": 1}']
)
def test_a_config_that_is_none_is_one_clear_line(config: str, tmp_path: Path) -> None:
    given = FOLDER / "older-tsp-plain.safetensors"
    header = {**read_weights(given)[1], "config": config}
    save_file(load_file(given), tmp_path / "wrong.safetensors", metadata=header)
    with pytest.raises(CheckpointError, match=r"`config` in the header of .*wrong\.safetensors") as raised:
        load_policy(tmp_path / "wrong.safetensors")
    assert "\n" not in str(raised.value)
