"""A run tells how it was made, and can be made again bit for bit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy
import pytest
import torch
from routing import random_actions, seeded
from small_runs import SMALL, new_run, resumed, weights, words

from gumbeldore.cli import main
from gumbeldore.io.instance_files import write_instances
from gumbeldore.io.policy_files import load_policy, read_weights, save_policy
from gumbeldore.io.shipped import choose
from gumbeldore.kits.registry import kit_named
from gumbeldore.policies import JSSPPolicy
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.runs.environment import commit
from gumbeldore.training.checkpoint import load_state, read_metrics, save_state

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture
def run(tmp_path) -> Path:
    assert new_run(tmp_path / "run", 2, "--training.seed", "5") == 0
    return tmp_path / "run"


def results(folder: Path) -> list[dict[str, object]]:
    return [{k: v for k, v in line.items() if "seconds" not in k} for line in read_metrics(folder / "metrics.jsonl")]


def test_a_run_is_repeated_bit_for_bit_from_its_settings(run, tmp_path):
    again = tmp_path / "again"
    assert main(["train", "--settings", str(run / "settings.json"), "--folder", str(again), "--workers", "0"]) == 0
    assert weights(again) == weights(run)
    assert results(again) == results(run)
    assert (again / "settings.json").read_bytes() == (run / "settings.json").read_bytes()


def test_a_run_that_began_with_given_weights_is_repeated_with_them(run, tmp_path, capsys):
    start, first, second = run / "policy.safetensors", tmp_path / "first", tmp_path / "second"
    assert new_run(first, 1, "--from", str(start)) == 0
    repeat = ["train", "--settings", str(first / "settings.json"), "--workers", "0", "--folder"]
    assert main([*repeat, str(second)]) == 0
    assert weights(first) == weights(second)
    start.write_bytes(start.read_bytes() + b"0")
    assert main([*repeat, str(tmp_path / "third")]) == 2
    assert "has changed since" in words(capsys.readouterr().err)


def test_a_supervised_run_is_repeated_with_its_labels_unless_they_changed(tmp_path, capsys):
    labels, first, second = tmp_path / "labels.npz", tmp_path / "first", tmp_path / "second"
    instances = TSPGenerator(6, 12).generate()
    actions = random_actions(instances.kind.problem, instances.state(), seeded(0)).tolist()
    write_instances(labels, instances.labelled(actions, "dice"))
    options = [
        "--policy.d",
        "16",
        "--policy.layers",
        "1",
        "--policy.heads",
        "2",
        "--policy.ff",
        "32",
        "--training.batches",
        "3",
    ]
    options += ["--training.batch-size", "8", "--validation.instances", "8", "--training.epochs", "1", "--workers", "0"]
    assert main(["imitate", "tsp", "--labels", str(labels), "--folder", str(first), *options]) == 0
    repeat = ["imitate", "--settings", str(first / "settings.json"), "--workers", "0", "--folder"]
    assert main([*repeat, str(second)]) == 0
    assert weights(first) == weights(second)
    write_instances(labels, instances.labelled([list(reversed(row)) for row in actions], "dice"))
    assert main([*repeat, str(tmp_path / "third")]) == 2
    assert "labels_sha256" in words(capsys.readouterr().err)


def test_settings_cannot_make_the_command_execute_a_file(tmp_path, capsys):
    (tmp_path / "kit.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    (tmp_path / "settings.json").write_text(json.dumps({"problem_name": f"{tmp_path / 'kit.py'}:KIT"}))
    assert main(["train", "--settings", str(tmp_path / "settings.json")]) == 2
    assert "Name a problem" in words(capsys.readouterr().err)
    assert not (tmp_path / "executed").exists()


def test_every_start_of_a_run_leaves_a_record_of_its_environment(run):
    assert resumed(run, 3) == 0
    first, second = json.loads((run / "environment.json").read_text())
    assert first["seeds"] == second["seeds"] == {"training": 5, "validation": 4321}
    assert first["versions"]["torch"] == torch.__version__
    assert first["versions"]["numpy"] == numpy.__version__
    assert {"python", "gumbeldore"} <= first["versions"].keys()
    assert first["hardware"]["cores"] >= 1
    assert first["hardware"]["cpu"]
    assert first["device"] == "cpu"
    assert first["workers"] == 0
    assert isinstance(first["command"], str)
    assert first["started"] <= second["started"]


def test_the_commit_is_named_with_a_mark_for_changes(tmp_path):
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "__init__.py").touch()
    git("init", "-q")
    assert commit(tmp_path) is None  # an untracked copy inside another repository
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert commit(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "__init__.py").write_text("changed")
    assert commit(tmp_path) == git("rev-parse", "HEAD") + "+"


def aged(folder: Path) -> None:
    """A run as it would be if it had been made before features were objects, and before `replay_window` was known."""
    settings = json.loads((folder / "settings.json").read_text())
    state = load_state(folder / "checkpoint.pt")
    for record in (settings, state["run"]):
        assert record["policy"].pop("features") == ["distance-bias"]
        record["policy"] |= {"local": 1, "pointer": 0}
        record["training"] |= {"successor_weight": 0.0}
        del record["training"]["replay_window"]
    del state["settings"]["replay_window"]
    state["settings"]["successor_weight"] = 0.0
    (folder / "settings.json").write_text(json.dumps(settings))
    save_state(folder / "checkpoint.pt", state)


@pytest.fixture
def old(tmp_path) -> Path:
    """A run with settings that the preset has changed since."""
    assert new_run(tmp_path / "old", 2, "--policy.features", "distance-bias", "--training.replay-window", "None") == 0
    aged(tmp_path / "old")
    return tmp_path / "old"


def test_a_run_that_is_older_than_a_setting_is_repeated_and_resumed_without_it(old, tmp_path):
    again = tmp_path / "again"
    assert main(["train", "--settings", str(old / "settings.json"), "--folder", str(again), "--workers", "0"]) == 0
    assert weights(again) == weights(old)
    assert main(["train", "tsp", "--folder", str(old), "--workers", "0", "--resume", "--training.epochs", "3"]) == 0
    assert len(results(old)) == 3
    settings = json.loads((old / "settings.json").read_text())
    assert (settings["policy"]["features"], settings["training"]["replay_window"]) == (["distance-bias"], None)


def test_a_run_that_is_older_than_a_setting_is_not_resumed_with_it(old, capsys):
    resume = ["train", "tsp", "--folder", str(old), "--workers", "0", "--resume", "--training.epochs", "3"]
    assert main([*resume, "--policy.features", "frame"]) == 2
    assert "other settings (policy)" in words(capsys.readouterr().err)
    assert main([*resume, "--training.replay-window", "4"]) == 2
    assert "other settings (replay_window)" in words(capsys.readouterr().err)


def test_weights_that_are_older_than_features_are_gone_on_with_as_they_are(tmp_path, capsys):
    given = Path(__file__).parents[1] / "data" / "policies" / "older-tsp-windows.safetensors"
    assert new_run(tmp_path / "new", 1, "--from", str(given), "--policy.ff", "16") == 0
    assert json.loads((tmp_path / "new" / "settings.json").read_text())["policy"]["features"] == ["distance-bias"]
    assert new_run(tmp_path / "other", 1, "--from", str(given), "--policy.features", "frame") == 2
    assert "Give it the same class and sizes" in words(capsys.readouterr().err)


def test_a_policy_that_ships_is_gone_on_with_by_its_name(tmp_path, capsys):
    sizes = [*SMALL[:2], *SMALL[10:]]  # but those of the network, which the weights have
    assert (
        main(["train", "tsp", "--folder", str(tmp_path / "new"), "--training.epochs", "1", *sizes, "--from", "tsp-small"]) == 0
    )
    names = read_weights(tmp_path / "new" / "policy.safetensors")[0].keys()
    assert names == read_weights(choose(kit_named("tsp"), "tsp-small").path)[0].keys()
    record = json.loads((tmp_path / "new" / "settings.json").read_text())
    assert record["started_from"].endswith("tsp-small.safetensors")
    assert new_run(tmp_path / "other", 1, "--from", "tsp-huge") == 2
    assert "There is no policy file tsp-huge." in words(capsys.readouterr().err)


def test_a_head_for_training_and_bounds_can_be_added_to_given_weights(tmp_path):
    policy = JSSPPolicy(16, 1, 2, 32)
    save_policy(tmp_path / "lean.safetensors", policy, problem="jssp")
    grown = ("--policy.features", "bounds", "--policy.successor-weight", "0.5", "--training.learning-rate", "1e-30")
    small = ("--problem.jobs", "3", "--problem.machines", "2", "--validation.instances", "4", "--training.epochs", "1")
    small += ("--training.instances", "4", "--training.batches", "2", "--training.batch-size", "4", "--workers", "0")
    run = ["train", "jssp", "--folder", str(tmp_path / "new"), "--from", str(tmp_path / "lean.safetensors"), *grown, *small]
    assert main(run) == 0
    found = load_policy(tmp_path / "new" / "policy.safetensors")
    assert found.config == {**policy.config, "features": ["bounds"], "successor_weight": 0.5}
    assert all(torch.equal(found.state_dict()[name], weight) for name, weight in policy.state_dict().items())
