"""Supervised runs, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from routing import random_actions, seeded

from gumbeldore.cli import main
from gumbeldore.io.instance_files import write_instances
from gumbeldore.io.policy_files import read_weights
from gumbeldore.kits.kit import InstanceGenerator
from gumbeldore.problems.cvrp.instances import CVRPGenerator
from gumbeldore.problems.jssp.instances import JSSPGenerator
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.training.checkpoint import load_state, read_metrics

SMALL = [
    "--policy.d", "16", "--policy.layers", "1", "--policy.heads", "2", "--policy.ff", "32", "--training.batches", "3",
    "--training.batch-size", "8", "--validation.instances", "8", "--device", "cpu", "--workers", "0",
]  # fmt: skip
SMALL_JSSP = ["--policy.pairs" if option == "--policy.layers" else option for option in SMALL]


def labels(path: Path, recipe: InstanceGenerator) -> str:
    """Instances with random solutions in a file."""
    instances = recipe.generate()
    actions = random_actions(instances.kind.problem, instances.state(), seeded(0))
    write_instances(path, instances.labelled(actions.tolist(), "dice"))
    return str(path)


@pytest.fixture
def expert(tmp_path) -> str:
    return labels(tmp_path / "labels.npz", TSPGenerator(6, 12))


@pytest.fixture
def run(tmp_path, expert) -> Path:
    """A finished supervised run of two epochs."""
    folder = tmp_path / "run"
    assert main(["imitate", "tsp", "--labels", expert, "--folder", str(folder), "--training.epochs", "2", *SMALL]) == 0
    return folder


def metrics(folder: Path) -> list[dict[str, object]]:
    return [{k: v for k, v in line.items() if "seconds" not in k} for line in read_metrics(folder / "metrics.jsonl")]


def test_a_run_leaves_the_files_of_a_run_and_says_what_it_learnt_from(run, expert):
    assert {path.name for path in run.iterdir()} == {
        "settings.json", "metrics.jsonl", "checkpoint.pt", "checkpoint.previous.pt", "policy.safetensors", "training.png",
        "environment.json", "progress.json", ".lock",
    }  # fmt: skip
    written = json.loads((run / "settings.json").read_text())
    assert written["labels"] == [expert]
    assert len(written["labels_sha256"][0]) == 64
    assert written["problem"]["cities"] == 6  # taken from the labels; the preset says 20
    assert [line["dataset_size"] for line in metrics(run)] == [12, 12]
    assert [line["sampled"] for line in metrics(run)] == [None, None]
    assert load_state(run / "checkpoint.pt")["dataset"] == []


def test_a_resumed_run_needs_no_names_and_ends_in_the_same_weights_as_an_uninterrupted_one(run, expert, tmp_path):
    assert main(["imitate", "tsp", "--folder", str(run), "--resume", "--training.epochs", "4"]) == 0
    whole = tmp_path / "whole"
    assert main(["imitate", "tsp", "--labels", expert, "--folder", str(whole), "--training.epochs", "4", *SMALL]) == 0
    (ours, header), (theirs, other) = (read_weights(folder / "policy.safetensors") for folder in (run, whole))
    assert header == other
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert metrics(run) == metrics(whole)
    assert len(metrics(run)) == 4


def test_labels_may_move_but_not_change(run, expert, tmp_path, capsys):
    moved = Path(expert).rename(tmp_path / "elsewhere.npz")
    assert main(["imitate", "tsp", "--folder", str(run), "--resume", "--training.epochs", "3"]) == 2
    assert "labels.npz" in capsys.readouterr().err
    resume = ["imitate", "tsp", "--folder", str(run), "--resume", "--training.epochs", "3", "--labels"]
    assert main([*resume, str(moved)]) == 0
    other = labels(tmp_path / "other.npz", TSPGenerator(6, 12, seed=1))
    assert main([*resume, other]) == 2
    assert "labels_sha256" in capsys.readouterr().err


def test_labels_of_several_sizes_are_several_files(tmp_path):
    files = [labels(tmp_path / f"{m}.npz", JSSPGenerator(3, m, 5)) for m in (2, 4, 3)]
    folder = tmp_path / "run"
    assert main(["imitate", "jssp", "--labels", *files, "--folder", str(folder), "--training.epochs", "1", *SMALL_JSSP]) == 0
    assert [line["dataset_size"] for line in metrics(folder)] == [15]
    written = json.loads((folder / "settings.json").read_text())
    assert written["problem"] == {"jobs": 3, "machines": 4}
    assert written["labels"] == files


def test_sizes_and_capacities_come_from_the_labels_unless_told_otherwise(tmp_path):
    file = labels(tmp_path / "cvrp.npz", CVRPGenerator(5, (20, 30), 30))
    arguments = ["imitate", "cvrp-lehd", "--labels", file, "--training.epochs", "1", *SMALL]
    assert main([*arguments, "--folder", str(tmp_path / "a")]) == 0
    assert main([*arguments, "--folder", str(tmp_path / "b"), "--problem.customers", "7"]) == 0
    problems = [json.loads((tmp_path / name / "settings.json").read_text())["problem"] for name in "ab"]
    assert [p["customers"] for p in problems] == [5, 7]
    assert [p["capacity"] for p in problems] == [[20, 30]] * 2


def test_the_two_ways_of_training_do_not_resume_each_other(run, expert, tmp_path, capsys):
    assert main(["train", "tsp", "--folder", str(run), "--resume"]) == 2
    assert "gumbeldore imitate tsp --resume" in " ".join(capsys.readouterr().err.split())
    improved = tmp_path / "improved"
    few = ["--training.epochs", "1", "--training.instances", "4", "--problem.cities", "6"]
    assert main(["train", "tsp", "--folder", str(improved), *few, *SMALL]) == 0
    assert main(["imitate", "tsp", "--folder", str(improved), "--resume"]) == 2
    assert "no supervised run" in capsys.readouterr().err
    assert main(["imitate", "tsp", "--folder", str(improved), "--resume", "--labels", expert]) == 2
    assert "labels_sha256" in capsys.readouterr().err


def test_an_existing_run_is_not_overwritten(run, expert, capsys):
    assert main(["imitate", "tsp", "--labels", expert, "--folder", str(run), *SMALL]) == 2
    assert "--resume" in capsys.readouterr().err


def test_wrong_labels_are_found_before_training(tmp_path, expert, capsys):
    with np.load(expert) as file:
        content = dict(file)
    content["actions"][7, 0] = content["actions"][7, 1]
    np.savez(expert, **content)
    assert main(["imitate", "tsp", "--labels", expert, "--folder", str(tmp_path / "run"), *SMALL]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "labels.npz: The solution of instance 7 takes a forbidden action at position 1" in error
    assert not (tmp_path / "run").exists()


def test_the_saved_policy_is_the_initial_one_until_an_epoch_is_better(tmp_path, expert, monkeypatch):
    monkeypatch.setattr("gumbeldore.training.Training.judge", lambda self, value: False)
    folder = tmp_path / "run"
    assert main(["imitate", "tsp", "--labels", expert, "--folder", str(folder), "--training.epochs", "2", *SMALL]) == 0
    weights, header = read_weights(folder / "policy.safetensors")
    state = load_state(folder / "checkpoint.pt")
    assert header["epoch"] == "0"
    assert all(torch.equal(weights[name], tensor) for name, tensor in state["best_policy"].items())
    assert not all(torch.equal(weights[name], tensor) for name, tensor in state["policy"].items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tsp"], "--labels FILE.npz"),
        (["tsp", "--labels", "none.npz"], "no file of instances none.npz"),
        (["tsp", "--resume", "--folder", "none"], "holds no supervised run"),
        (["jssp", "--labels", "labels.npz"], "must hold instances of jssp"),
        (["gomoku", "--labels", "labels.npz"], "no instance files for `gomoku`"),
        (["tsp", "--labels", "labels.npz", "--preset", "huge"], "Unknown preset"),
    ],
)
@pytest.mark.usefixtures("expert")
def test_mistakes_get_one_clear_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["imitate", *arguments]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert message in error
    assert "Traceback" not in error


def test_labels_without_solutions_name_the_command_that_adds_them(tmp_path, capsys):
    write_instances(tmp_path / "bare.npz", TSPGenerator(6, 3).generate())
    assert main(["imitate", "tsp", "--labels", str(tmp_path / "bare.npz"), "--folder", str(tmp_path / "run"), *SMALL]) == 2
    assert "gumbeldore label" in " ".join(capsys.readouterr().err.split())


def test_help_lists_the_fitting_presets_and_no_sampler(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["imitate", "tsp", "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert "supervised-small, supervised" in shown or "supervised, supervised-small" in shown
    assert "--training.learning-rate" in shown
    assert "--sampler " not in shown
    with pytest.raises(SystemExit):
        main(["train", "tsp", "--help"])
    assert "supervised" not in capsys.readouterr().out


def test_training_by_self_improvement_takes_no_labels(tmp_path, expert, capsys):
    with pytest.raises(SystemExit):
        main(["train", "tsp", "--labels", expert, "--folder", str(tmp_path / "run")])
    assert not (tmp_path / "run").exists()
