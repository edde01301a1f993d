"""Gomoku (five in a row) against a deterministic bot (paper, appendix "Gomoku: A Toy Problem")."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import hash_numbers
from gumbeldore.problem import Examples, Problem, State
from gumbeldore.problems.gomoku.bot import WIN, bot_move, has_five
from gumbeldore.solutions import Solutions

WHITE, EMPTY, BLACK = 1, 0, -1


@dataclass(frozen=True)
class GomokuState(State):
    """Positions. Colours are numbers: 1 is white, -1 is black, 0 is nobody."""

    board: Int[Tensor, "row cell"]  # int8; row-major
    to_move: Int[Tensor, " row"]  # whose view a policy takes; between the steps of a game always white
    winner: Int[Tensor, " row"]  # 0 during the game and after a draw


@dataclass(frozen=True)
class Gomoku(Problem[GomokuState]):
    """Beat a deterministic rule bot at five in a row, from any of its first stones.

    - Instances: the first stone of black, which is the bot, on one of `size * size` cells (`starts` gives them all).
    - Action: the cell of the next stone, `row * size + column`. Empty cells are allowed. The player to move, white, puts a
      stone there; then the bot (`gomoku_bot`) answers within the same step.
    - The game ends when a player has five or more stones in a row in any direction, or when the board is full: after
      white's stone or after the bot's answer, so games differ in length.
    - Objective: 1 if white wins, 0 for a draw, -1 if black wins.

    In a training example of the bot's move it is black's turn. Stepping from there puts a black stone and returns the
    turn to white.
    """

    size: int = 9

    def __post_init__(self) -> None:
        require(self.size >= WIN, f"`size` must be at least {WIN} (nobody could win on a smaller board), got {self.size}.")

    @property
    def cells(self) -> int:
        return self.size * self.size

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> GomokuState:
        """Random first stones. No cell comes again before all came once: `size * size` games are all starts, shuffled."""
        decks = -(-count // self.cells)
        order = torch.rand(decks, self.cells, generator=generator, device=generator.device).argsort(1)
        return self.openings(order.flatten()[:count].to(device))

    def starts(self, device: torch.device | str = "cpu") -> GomokuState:
        """All start positions, in row-major order of black's first stone."""
        return self.openings(torch.arange(self.cells, device=device))

    def openings(self, first: Int[Tensor, " row"]) -> GomokuState:
        """Start positions with black's first stone on the given cells."""
        require(
            first.dim() == 1 and bool(((first >= 0) & (first < self.cells)).all()),
            f"`first` must be a vector of cells in 0 .. {self.cells - 1}, got {first.tolist()}.",
        )
        nobody = torch.zeros(len(first), dtype=torch.int8, device=first.device)
        board = torch.zeros(len(first), self.cells, dtype=torch.int8, device=first.device).scatter_(1, first[:, None], BLACK)
        return GomokuState(torch.arange(len(first), device=first.device), board, nobody + WHITE, nobody)

    def mask(self, state: GomokuState) -> Bool[Tensor, "row cell"]:
        return state.board == EMPTY

    def done(self, state: GomokuState) -> Bool[Tensor, " row"]:
        return (state.winner != 0) | (state.board != EMPTY).all(1)

    def step(self, state: GomokuState, action: Int[Tensor, " row"]) -> GomokuState:
        playing = ~self.done(state)
        state = self._place(state, action, playing)
        answers = (playing & (state.to_move == BLACK) & ~self.done(state)).nonzero().squeeze(1)
        if len(answers) == 0:
            return state
        reply = torch.zeros_like(action)
        reply[answers] = bot_move(BLACK * state.board[answers], self.size)
        return self._place(state, reply, torch.zeros_like(playing).index_fill_(0, answers, True))

    def _place(self, state: GomokuState, cell: Int[Tensor, " row"], playing: Bool[Tensor, " row"]) -> GomokuState:
        """Puts a stone of the player to move on the given cell of the rows that are `playing`."""
        cell = cell.where(playing, 0)[:, None]
        stone = state.to_move[:, None].where(playing[:, None], state.board.gather(1, cell))
        board = state.board.scatter(1, cell, stone)
        wins = playing & has_five(board == state.to_move[:, None], self.size)
        return replace(
            state,
            board=board,
            to_move=torch.where(playing, -state.to_move, state.to_move),
            winner=torch.where(wins, state.to_move, state.winner),
        )

    def objective(self, state: GomokuState) -> Float[Tensor, " row"]:
        return state.winner.float()

    def horizon(self, state: GomokuState) -> int:
        """White fills every other empty cell; if it is black's turn, that is one step more."""
        empty = (state.board == EMPTY).sum(1)
        steps = torch.where(state.to_move == WHITE, (empty + 1) // 2, 1 + empty // 2)
        return int(steps.where(~self.done(state), 0).max())

    def examples(
        self, state: GomokuState, actions: Int[Tensor, "row depth"], *, generator: torch.Generator
    ) -> Examples[GomokuState]:
        """A uniformly random move of the winner of each game; of white if it was a draw.

        A black win therefore teaches the bot's answers, seen from its side (`to_move` is black). Its first stone is no answer
        to anything and never a target. Nothing is mirrored or rotated: the bot breaks ties in row-major order, so it is
        not symmetric.
        """
        plies, end = self._play(state, actions)
        choice = torch.rand(len(actions), generator=generator, device=generator.device).to(actions.device)
        taught = end.winner.where(end.winner != 0, WHITE)
        ply = 2 * (choice * (actions >= 0).sum(1)).long() + (taught == BLACK)
        before = torch.arange(plies.shape[1], device=plies.device) < ply[:, None]
        colour = torch.full_like(plies, WHITE, dtype=torch.int8)
        colour[:, 1::2] = BLACK
        spare = state.board.new_zeros(len(plies), 1)
        board = torch.cat([state.board, spare], 1).scatter(1, plies.where(before, self.cells), colour)[:, :-1]
        position = GomokuState(torch.arange(len(plies), device=plies.device), board, taught, torch.zeros_like(taught))
        return Examples(position, plies.gather(1, ply[:, None]).squeeze(1))

    def moves(self, state: GomokuState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row ply"]:
        """All stones of finished games in order, -1 after the end: black's first stone, then white and the bot in turn."""
        require(bool(((state.board != EMPTY).sum(1) == 1).all()), "`moves` needs start positions: boards with one stone.")
        first = (state.board != EMPTY).int().argmax(1, keepdim=True)
        return torch.cat([first, self._play(state, actions)[0]], 1)

    def _play(self, state: GomokuState, actions: Int[Tensor, "row depth"]) -> tuple[Int[Tensor, "row ply"], GomokuState]:
        """The stones from `state` to the end of the game (white's, the bot's, white's, ...) and the final position."""
        require(bool((state.to_move == WHITE).all()), "A game to replay must begin with white to move, got black.")
        plies = []
        for action in actions.unbind(1):
            after = self.step(state, action)
            require(
                bool(((action >= 0) == ~self.done(state)).all()),
                "`actions` must be white's moves of whole games, padded with -1 exactly after their end.",
            )
            reply = (after.board == BLACK) & (state.board == EMPTY)
            plies += [action, reply.int().argmax(1).where(reply.any(1), -1)]
            state = after
        require(bool(self.done(state).all()), "`actions` must be white's moves of whole games: some games have not ended.")
        return torch.stack(plies, 1), state

    def key(self, state: GomokuState) -> Int[Tensor, "row 2"]:
        """A 128-bit hash of the board and the player to move: the order of the stones does not matter."""
        return hash_numbers(torch.cat([state.board, state.to_move[:, None]], 1).long())


def random_winner(solutions: Solutions, generator: torch.Generator) -> Int[Tensor, " batch"]:
    """The game to learn from: of each instance a random white win, else a random black win, else a random draw."""
    objective = solutions.objective
    rank = torch.where(objective > 0, 3, torch.where(objective < 0, 2, 1)).where(solutions.filled, 0)
    best = rank.amax(1, keepdim=True)
    require(bool((best > 0).all()), "`random_winner` needs at least one game per start position, got none.")
    lots = torch.rand(objective.shape, generator=generator, device=generator.device).to(objective.device)
    return lots.where(rank == best, -1).argmax(1)
