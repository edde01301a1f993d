"""Positions of Gomoku drawn as text, and games that are played out."""

from __future__ import annotations

import random

import torch

from gumbeldore.problems.gomoku.bot import BORDER, bot_move
from gumbeldore.problems.gomoku.problem import WHITE, Gomoku, GomokuState

STONES = {"x": 1, ".": 0, "o": -1, "#": BORDER}  # x: the bot (black), o: its opponent (white), #: beyond the board


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def view(*rows: str) -> torch.Tensor:
    """A board from the bot's side, drawn with x, o and dots."""
    return torch.tensor([[STONES[stone] for row in rows for stone in row]], dtype=torch.int8)


def position(*rows: str, to_move: int = WHITE) -> GomokuState:
    """The state of a drawn board."""
    colour = torch.tensor([to_move], dtype=torch.int8)
    return GomokuState(torch.zeros(1, dtype=torch.long), -view(*rows), colour, torch.zeros_like(colour))


def random_views(count: int, size: int, rng: random.Random) -> torch.Tensor:
    """Boards with an empty cell, from nearly empty to nearly full."""
    boards = []
    for _ in range(count):
        share = rng.random()
        cells = [rng.choice((1, -1)) if rng.random() < share else 0 for _ in range(size * size)]
        cells[rng.randrange(size * size)] = 0
        boards.append(cells)
    return torch.tensor(boards, dtype=torch.int8)


def play(problem: Gomoku, state: GomokuState, skill: float, generator: torch.Generator) -> torch.Tensor:
    """White's moves of whole games; white plays like the bot with probability `skill`, else at random."""
    actions = []
    while not bool(problem.done(state).all()):
        open_ = ~problem.done(state)
        lots = torch.rand(state.board.shape, generator=generator).where(problem.mask(state), -1).argmax(1)
        clever = lots.clone()
        clever[open_] = bot_move(state.board[open_], problem.size)
        action = torch.where(torch.rand(len(lots), generator=generator) < skill, clever, lots)
        actions.append(action.where(open_, -1))
        state = problem.step(state, action)
    return torch.stack(actions, 1)
