"""`gumbeldore.evaluate`: what the command does, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import gumbeldore
from gumbeldore import Greedy, SettingsError
from gumbeldore.kits.random_instances import random_set, schema_of
from gumbeldore.kits.registry import kit_at, kit_named
from gumbeldore.problems.tsp.instances import TSPGenerator

FLOW_SHOP = f"{Path(__file__).resolve().parents[2] / 'examples/flow_shop.py'}:KIT"


def test_baselines_are_compared_on_random_instances_without_files(tmp_path):
    seen = []
    report = gumbeldore.evaluate(
        "tsp", baselines=["nearest-neighbour"], random=4, folder=tmp_path, progress=lambda step: seen.append(step.done)
    )
    (row,) = report.tables["random-4"]
    assert row.instances == 4
    assert seen[-1] == 4
    assert (tmp_path / "table.csv").is_file()


def test_policies_and_samplers_may_be_objects_with_names(tmp_path):
    policy = gumbeldore.load_policy(kit_named("tsp").policies / "tsp-small.safetensors")
    instances = TSPGenerator(cities=8, count=3).generate()
    report = gumbeldore.evaluate("tsp", instances, policies={"mine": policy}, samplers={"first": Greedy()}, folder=tmp_path)
    assert [row.method for rows in report.tables.values() for row in rows] == ["mine first"]


def test_a_kit_without_files_of_instances_is_evaluated_on_random_ones(tmp_path):
    kit = kit_at(FLOW_SHOP)
    policy = kit.architectures["set"].network(d=16, layers=1, heads=2, ff=32)
    (rows,) = gumbeldore.evaluate(kit, policies={"untrained": policy}, random=3, folder=tmp_path).tables.values()
    assert rows[0].cost > 0


@pytest.mark.parametrize("name", ["tsp", "cvrp", "jssp", "gomoku"])
def test_random_instances_are_the_same_for_a_seed_and_differ_for_others(name):
    kit = kit_named(name)
    first, again, other = (random_set(kit, 2, seed) for seed in (1, 1, 2))
    assert first.digest == again.digest
    assert first.digest != other.digest or name == "gomoku"


def test_a_kits_own_verifier_and_the_replay_of_its_problem_agree():
    kit = kit_at(FLOW_SHOP)
    from dataclasses import replace

    from gumbeldore.kits.kit import SolutionFormat

    bare = replace(kit, solution_format=SolutionFormat())
    instance, order = random_set(kit, 1, 0).instance(0), list(range(20))
    assert schema_of(bare).verify(instance, order) == schema_of(kit).verify(instance, order)
    assert not schema_of(bare).verify(instance, order[:5]).feasible


def test_nothing_to_compare_on_is_an_error():
    with pytest.raises(SettingsError, match="`sets` must name at least one set of instances, or give --random N"):
        gumbeldore.evaluate("tsp")
