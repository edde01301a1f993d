"""`gumbeldore check`: tests that a problem keeps the contract and that what its kit brings along fits it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.runs.checking import check, repeat
from gumbeldore.training.settings import check_seed


@dataclass(frozen=True)
class CheckSettings:
    """Test a problem by playing many random solutions: masks, steps, ends, objectives, examples, keys; then its network."""

    seed: int = 0  # of the random solutions
    diverged: Path | None = None  # instead: repeat the training step of this file (diverged.pt) and say what is not finite

    def __post_init__(self) -> None:
        check_seed(self.seed)


def command(arguments: list[str]) -> None:
    """gumbeldore check PROBLEM"""
    entry, arguments = take_entry("check", arguments)
    prog, about = f"gumbeldore check {entry.argument}", CheckSettings.__doc__
    settings = tyro.cli(CheckSettings, args=arguments, prog=prog, description=about)
    if settings.diverged is None:
        check(entry, settings.seed)
    else:
        repeat(entry, settings.diverged)
