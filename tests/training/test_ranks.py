"""Data-parallel training: two ranks that torchrun starts, against one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gumbeldore import load_state
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


def run(ranks: int, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Trains in `ranks` processes."""
    script = folder.parent / "command.py"
    script.write_text(COMMAND)
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    command = [sys.executable, *start, str(script), *RUN, "--folder", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, env={**os.environ, "OMP_NUM_THREADS": "1"})


@pytest.mark.slow
def test_two_ranks_train_like_one_write_once_and_another_number_of_them_goes_on(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for number, folder in ((1, one), (2, two)):
        done = run(number, folder, "--training.epochs", "1")
        assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch    1") == 1
    for name in ("policy", "best_policy"):
        ours, theirs = (load_state(folder / "checkpoint.pt")[name] for folder in (one, two))
        for key, weight in ours.items():
            torch.testing.assert_close(theirs[key], weight, rtol=1e-4, atol=1e-6)
    lines = [json.loads((folder / "metrics.jsonl").read_text()) for folder in (one, two)]
    for name in ("loss", "sampled", "validation"):
        assert lines[1][name] == pytest.approx(lines[0][name], rel=1e-5)
    for number, folder in ((2, one), (1, two)):
        done = run(number, folder, "--training.epochs", "2", "--resume")
        assert done.returncode == 0, done.stderr
    ours, theirs = (read_weights(folder / "policy.safetensors")[0] for folder in (one, two))
    for key, weight in ours.items():
        torch.testing.assert_close(theirs[key], weight, rtol=1e-3, atol=1e-5)


def test_a_process_alone_is_the_first_of_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as alone:
        assert alone == ranks() == Ranks(0, 1)
        assert alone.told(5) == 5
        assert list(alone.led(iter([1, 2.0, 3]), int)) == [1, 2.0, 3]
