"""What Gomoku brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import torch

from gumbeldore.errors import require, require_positive
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, Record, SolutionFormat
from gumbeldore.kits.verdict import Verdict
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, State
from gumbeldore.problems.gomoku.network import GomokuPolicy
from gumbeldore.problems.gomoku.plot import plot_game
from gumbeldore.problems.gomoku.problem import Gomoku, random_winner
from gumbeldore.problems.gomoku.verify import verify_gomoku


@dataclass(frozen=True)
class TowerSize:
    """Size of Gomoku's convolutional network; the defaults are the paper's."""

    channels: int = 32
    blocks: int = 2
    head_channels: int = 16
    hidden: int = 32

    def __post_init__(self) -> None:
        require_positive(channels=self.channels, blocks=self.blocks, head_channels=self.head_channels, hidden=self.hidden)


@dataclass(frozen=True)
class GomokuOpenings:
    """Random first stones of the bot; no cell comes again before all came once. The board is the policy's."""

    count: int = 1  # how many games
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.count >= 1, f"`count` must be at least 1, got {self.count}.")

    def states(self, policy: Network, device: torch.device) -> tuple[Problem[Any], State]:
        problem = Gomoku(policy.config["size"])
        return problem, problem.generate(self.count, generator=torch.Generator().manual_seed(self.seed), device=device)


def game(instance: Arrays, actions: Sequence[int]) -> tuple[int, list[int]]:
    """The size of the board, and all stones in order; the instance is the board with the bot's first stone."""
    size, first = isqrt(instance["board"].size), int(instance["board"].nonzero()[0][0])
    problem = Gomoku(size)
    moves = problem.moves(problem.openings(torch.tensor([first])), torch.tensor([list(actions)]))
    return size, [move for move in moves[0].tolist() if move >= 0]


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_gomoku(*game(instance, actions))


def _record(instance: Arrays, actions: Sequence[int]) -> Record:
    size, moves = game(instance, actions)
    winner = {1: "white", 0: None, -1: "black"}[int(verify_gomoku(size, moves).objective)]
    return {"size": size, "moves": moves, "winner": winner}


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    size, moves = game(instance, actions)
    plot_game(moves, size, path)


KIT = Kit(
    "gomoku",
    "Gomoku against a rule bot",
    problem=Gomoku(),
    architectures={
        "tower": Architecture(GomokuPolicy, TowerSize(), build=lambda game, size: GomokuPolicy(game.size, **vars(size)))
    },
    cost="lost minus won games",
    select=random_winner,
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(verify, _record, draw, "game.png"),
    generator=GomokuOpenings,
)
