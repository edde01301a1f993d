"""The command line, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from gumbeldore.cli import main
from gumbeldore.io.policy_files import read_weights
from gumbeldore.training.checkpoint import load_state, read_metrics

SMALL = [
    "--problem.cities", "6", "--policy.d", "16", "--policy.layers", "1", "--policy.heads", "2", "--policy.ff", "32",
    "--training.instances", "6", "--training.batches", "3", "--training.batch-size", "8", "--validation.instances", "8",
    "--sampler", "gd:4x2", "--device", "cpu",
]  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """A finished run of two epochs."""
    folder = tmp_path / "run"
    assert main(["train", "tsp", "--folder", str(folder), "--training.epochs", "2", *SMALL]) == 0
    return folder


def test_a_run_leaves_settings_metrics_checkpoint_policy_and_plot(run):
    assert {path.name for path in run.iterdir()} == {
        "settings.json", "metrics.jsonl", "checkpoint.pt", "checkpoint.previous.pt", "policy.safetensors", "training.png",
        "environment.json", "progress.json", ".lock",
    }  # fmt: skip
    assert [line["epoch"] for line in read_metrics(run / "metrics.jsonl")] == [1, 2]
    assert json.loads((run / "settings.json").read_text())["problem"]["cities"] == 6
    assert load_state(run / "checkpoint.pt")["epoch"] == 2


def test_resume_goes_on_with_the_runs_own_settings(run, capsys):
    assert main(["train", "tsp", "--folder", str(run), "--resume", "--training.epochs", "3"]) == 0
    assert [line["epoch"] for line in read_metrics(run / "metrics.jsonl")] == [1, 2, 3]


def test_resumed_and_uninterrupted_runs_end_in_the_same_weights(run, tmp_path):
    assert main(["train", "tsp", "--folder", str(run), "--resume", "--training.epochs", "3"]) == 0
    whole = tmp_path / "whole"
    assert main(["train", "tsp", "--folder", str(whole), "--training.epochs", "3", *SMALL]) == 0
    (ours, header), (theirs, other) = (read_weights(folder / "policy.safetensors") for folder in (run, whole))
    assert header == other
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    drop = {"seconds_sampling", "seconds_training", "seconds_validating"}
    lines = [
        [{k: v for k, v in line.items() if k not in drop} for line in read_metrics(f / "metrics.jsonl")] for f in (run, whole)
    ]
    assert lines[0] == lines[1]


def test_an_existing_run_is_not_overwritten(run, capsys):
    assert main(["train", "tsp", "--folder", str(run), *SMALL]) == 2
    assert "--resume" in capsys.readouterr().err


def test_resuming_with_another_problem_is_refused(run, capsys):
    assert main(["train", "tsp", "--folder", str(run), "--resume", "--problem.cities", "7"]) == 2
    assert "problem" in capsys.readouterr().err


def test_solving_random_instances_saves_verified_tours_and_a_plot(run, tmp_path):
    folder = tmp_path / "solved"
    policy = str(run / "policy.safetensors")
    assert main(["solve", "tsp", "--policy", policy, "--cities", "7", "--count", "3", "--folder", str(folder)]) == 0
    records = json.loads((folder / "solutions.json").read_text())
    assert [sorted(record["tour"]) for record in records] == [list(range(7))] * 3
    assert (folder / "tsp-0.png").stat().st_size > 1000


def test_a_files_instance_is_solved_in_its_own_units(run, tmp_path):
    path = tmp_path / "square.csv"
    path.write_text("0,0\n100,0\n100,100\n0,100\n")
    folder = tmp_path / "solved"
    policy = str(run / "policy.safetensors")
    assert main(["solve", str(path), "--policy", policy, "--folder", str(folder)]) == 0
    (record,) = json.loads((folder / "solutions.json").read_text())
    assert record["cost"] == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "Unknown command `fly`"),
        (["train", "knapsack"], "Unknown problem `knapsack`"),
        (["train"], "Name a problem"),
        (["train", "tsp", "--preset", "huge"], "Unknown preset"),
        (["train", "tsp", "--settings", "absent.toml"], "absent.toml"),
        (["train", "tsp", "--folder", "absent", "--resume"], "no checkpoint"),
        (["solve", "tsp", "--policy", "absent.safetensors"], "absent.safetensors"),
    ],
)
def test_mistakes_get_one_clear_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert message in error
    assert "Traceback" not in error


def test_a_value_out_of_range_on_the_command_line_is_refused(tmp_path, capsys):
    assert main(["train", "tsp", "--folder", str(tmp_path / "x"), "--sampler", "gd:0x4"]) == 2
    shown = capsys.readouterr()
    assert "beam_width" in shown.out + shown.err


@pytest.mark.parametrize("arguments", [[], ["--help"], ["train", "--help"]])
def test_help_is_always_at_hand(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 0
    assert "tsp" in capsys.readouterr().out


def test_the_command_can_be_called_as_a_module():
    called = subprocess.run([sys.executable, "-m", "gumbeldore", "--help"], capture_output=True, text=True, check=True)
    assert "gumbeldore solve" in called.stdout
