"""Data-parallel training: two ranks that torchrun starts, against one process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gumbeldore.cli import main
from gumbeldore.problems.policy_files import read_weights
from gumbeldore.training.ranks import Ranks, joined, ranks

RUN = [
    "train",
    "tsp",
    "--problem.cities",
    "6",
    "--policy.d",
    "16",
    "--policy.layers",
    "1",
    "--policy.heads",
    "2",
    "--policy.ff",
    "32",
]
RUN += ["--training.instances", "5", "--training.sampling-batch", "2", "--training.batches", "2", "--training.batch-size", "9"]
RUN += ["--training.part-size", "4", "--validation.instances", "3", "--device", "cpu", "--workers", "0"]
RUN += ["--sampler.beam-width", "4", "--sampler.rounds", "2"]
COMMAND = "import sys; from gumbeldore.cli import main; sys.exit(main(sys.argv[1:]))"


def train(folder: Path, epochs: int, *options: str) -> None:
    """In this process."""
    assert main([*RUN, "--folder", str(folder), "--training.epochs", str(epochs), *options]) == 0


def train_in_two(folder: Path, epochs: int, *options: str) -> str:
    """In two ranks; returns what they print."""
    script = folder.parent / "command.py"
    script.write_text(COMMAND)
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    command = [*start, *RUN, "--folder", str(folder), "--training.epochs", str(epochs), *options]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_ranks_train_like_one_write_once_and_any_number_of_them_goes_on(tmp_path, capsys):
    one, two = tmp_path / "one", tmp_path / "two"
    train(one, 1)
    shutil.copytree(one, two)
    train(one, 2, "--resume")
    assert train_in_two(two, 2, "--resume").count("epoch    2") == 1
    for folder in (one, two):
        train(folder, 3, "--resume")
    ours, theirs = ([json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()] for folder in (one, two))
    assert [line["epoch"] for line in theirs] == [1, 2, 3]
    for name in ("loss", "sampled", "validation"):
        assert [line[name] for line in theirs] == pytest.approx([line[name] for line in ours], rel=1e-4)
    weights = [read_weights(folder / "policy.safetensors")[0] for folder in (one, two)]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=1e-3, atol=1e-5)


def test_a_process_alone_is_the_first_of_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as alone:
        assert alone == ranks() == Ranks(0, 1)
        assert alone.told(5) == 5
        assert list(alone.led(iter([1, 2.0, 3]), int)) == [1, 2.0, 3]
