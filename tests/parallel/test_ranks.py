"""Data-parallel training: two ranks that torchrun starts, against one process."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gumbeldore.cli import main
from gumbeldore.parallel.ranks import Ranks, joined, ranks

RUN = shlex.split("""train tsp --problem.cities 6 --policy.d 16 --policy.layers 1 --policy.heads 2 --policy.ff 32 --sampler gd:4x2
--training.instances 5 --training.sampling-batch 2 --training.batches 2 --training.batch-size 9 --training.part-size 4
--validation.instances 3 --device cpu --workers 0""")
SCRIPT = Path(__file__).parent / "ranked.py"


def train(folder: Path, epochs: int, *options: str) -> None:
    """In this process."""
    assert main([*RUN, "--folder", str(folder), "--training.epochs", str(epochs), *options]) == 0


def train_in_two(folder: Path, epochs: int, *options: str) -> str:
    """In two ranks; returns what they print."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(SCRIPT)]
    command = [*start, *RUN, "--folder", str(folder), "--training.epochs", str(epochs), *options]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def values(folder: Path, name: str) -> list[float]:
    return [json.loads(line)[name] for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_two_ranks_train_like_one_write_once_and_any_number_of_them_goes_on(tmp_path, capsys):
    """Adam turns rounding into steps where a gradient is nearly 0, so trainings agree less closely than gradients."""
    one, two = tmp_path / "one", tmp_path / "two"
    train(one, 1)
    shutil.copytree(one, two)
    train(one, 2, "--resume")
    assert train_in_two(two, 2, "--resume").count("epoch    2") == 1
    for folder in (one, two):
        train(folder, 3, "--resume")
    assert values(two, "epoch") == [1, 2, 3]
    for name in ("loss", "sampled", "validation"):
        assert values(two, name) == pytest.approx(values(one, name), rel=0.01)


def test_a_process_alone_is_the_first_of_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as alone:
        assert alone == ranks() == Ranks(0, 1)
        assert alone.told(5) == 5
        assert list(alone.synchronised(iter([1, 2.0, 3]), int)) == [1, 2.0, 3]
