"""Runs that take no time, for tests of what surrounds them."""

from __future__ import annotations

from pathlib import Path

from gumbeldore.cli import main

SMALL = [
    "--problem.cities", "6", "--policy.d", "16", "--policy.layers", "1", "--policy.heads", "2", "--policy.ff", "32",
    "--training.instances", "6", "--training.batches", "3", "--training.batch-size", "8", "--validation.instances", "8",
    "--sampler", "gd:4x2", "--device", "cpu", "--workers", "0",
]  # fmt: skip

TINY = {
    "problem": {"cities": 6},
    "policy": {"d": 16, "layers": 1, "heads": 2, "ff": 32},
    "training": {"instances": 6, "batches": 3, "batch_size": 8},
    "validation": {"instances": 8},
    "sampler": "gd:4x2",
}
"""The same as tables of settings."""


def new_run(folder: Path, epochs: int, *more: str) -> int:
    """The exit code of a new run."""
    return main(["train", "tsp", "--folder", str(folder), "--training.epochs", str(epochs), *SMALL, *more])


def resumed(folder: Path, epochs: int, *more: str) -> int:
    """The exit code of a run that goes on."""
    return main(
        ["train", "tsp", "--folder", str(folder), "--resume", "--training.epochs", str(epochs), "--workers", "0", *more]
    )


def weights(folder: Path) -> bytes:
    """The policy file, which is the same for the same weights."""
    return (folder / "policy.safetensors").read_bytes()


def words(text: str) -> str:
    """What was printed, as one line."""
    return " ".join(text.split())
