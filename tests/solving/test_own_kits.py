"""Kits of one's own: problems that maximise, and code that raises."""

from __future__ import annotations

import json
import textwrap

import pytest

from gumbeldore import save_policy
from gumbeldore.cli import main
from gumbeldore.errors import DEBUG
from gumbeldore.kits.registry import kit_at

KNAPSACK = """
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from gumbeldore import Problem, State
from gumbeldore.kits.kit import Architecture, Kit, SolutionFormat
from gumbeldore.kits.verdict import Verdict
from gumbeldore.networks.set_transformer import Features, SetPolicy


@dataclass(frozen=True)
class BagState(State):
    per_instance: ClassVar[tuple[str, ...]] = ("weights", "values")
    weights: Tensor
    values: Tensor
    packed: Tensor
    room: Tensor


@dataclass(frozen=True)
class Bag(Problem[BagState]):
    items: int = 8

    def generate(self, count, *, generator, device="cpu"):
        weights, values = torch.rand(2, count, self.items, generator=generator).to(device)
        packed = torch.zeros(count, self.items, dtype=torch.bool, device=device)
        return BagState(torch.arange(count, device=device), 0.05 + weights, values, packed, weights.sum(1) / 4)

    def mask(self, state):
        return ~state.packed & (state.weights[state.instance] <= state.room[:, None])

    def done(self, state):
        return ~self.mask(state).any(1)

    def step(self, state, action):
        {fault}
        chosen = nn.functional.one_hot(action, state.packed.shape[1]).bool() & ~self.done(state)[:, None]
        weight = (state.weights[state.instance] * chosen).sum(1)
        return replace(state, packed=state.packed | chosen, room=state.room - weight)

    def objective(self, state):
        return (state.values[state.instance] * state.packed).sum(1)

    def horizon(self, state):
        return state.packed.shape[1]


class BagPolicy(SetPolicy):
    item_features, whole_features = 2, 1

    def features(self, state):
        fits = ~state.packed & (state.weights[state.instance] <= state.room[:, None])
        return Features(torch.stack([state.weights[state.instance], state.values[state.instance]], -1), fits, state.room[:, None])


@dataclass(frozen=True)
class Size:
    d: int = 16
    layers: int = 1
    ff: int = 16
    heads: int = 2


def verify(instance, actions):
    return Verdict(True, float(instance["values"][list(actions)].sum()))


KIT = Kit("{name}", "knapsack", problem=Bag(), architectures={{"set": Architecture(BagPolicy, Size())}}, cost="value",
          maximises=True, solution_format=SolutionFormat(verify))
"""


@pytest.fixture
def solve(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(name: str, *arguments: str, fault: str = ""):
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(KNAPSACK).format(fault=fault or "pass", name=name))
        kit = kit_at(f"{path}:KIT")
        (architecture,) = kit.architectures.values()
        save_policy(tmp_path / "policy.safetensors", architecture.make(kit.problem, architecture.size))
        options = ["--policy", str(tmp_path / "policy.safetensors"), "--folder", str(tmp_path / "out"), "--replace"]
        code = main(["solve", f"{path}:KIT", *arguments, *options])
        saved = tmp_path / "out" / "solutions.json"
        return code, capsys.readouterr(), json.loads(saved.read_text()) if saved.exists() else []

    return run


def test_values_are_positive_and_the_default_is_no_worse_than_greedy(solve):
    _, _, greedy = solve("bag_a", "--random", "3", "--sampler", "greedy")
    code, printed, found = solve("bag_a", "--random", "3", "--preset", "fast")
    assert code == 0
    assert all(record["cost"] > 0 for record in found)
    assert all(best["cost"] >= first["cost"] for best, first in zip(found, greedy, strict=True))
    assert "Best solutions found: value" in " ".join(printed.out.split())
    costs = [each["cost"] for each in found[0]["improvements"]]
    assert costs == sorted(costs)


def test_presets_and_limits_work_for_kits_of_ones_own(solve):
    assert solve("bag_b", "--time-limit", "0.2", "--parts", "policy")[0] == 0
    code, printed, _ = solve("bag_b", "--parts", "local-search")
    assert code == 2
    assert "`parts` must be some of policy for" in " ".join(printed.err.split())


def test_code_of_a_kit_that_raises_is_named_in_one_line(solve, monkeypatch):
    monkeypatch.setenv(DEBUG, "")
    code, printed, _ = solve("bag_c", "--random", "2", fault="raise ValueError('no such item')")
    assert code == 2
    shown = " ".join(printed.err.split())
    assert "The kit `bag_c`: its `step` (" in shown
    assert "raised ValueError: no such item" in shown
    assert "Traceback" not in shown
    with pytest.raises(ValueError, match="no such item"):
        solve("bag_c", "--random", "2", "--debug", fault="raise ValueError('no such item')")
