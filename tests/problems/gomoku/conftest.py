"""A game for the referee and the pictures."""

from __future__ import annotations

import pytest
import torch
from gomoku_games import play, seeded

from gumbeldore.problems.gomoku.problem import Gomoku


@pytest.fixture(scope="module")
def game() -> list[int]:
    """A game that black wins."""
    problem = Gomoku()
    state = problem.openings(torch.tensor([40]))
    return [move for move in problem.moves(state, play(problem, state, 0.0, seeded(5)))[0].tolist() if move >= 0]
