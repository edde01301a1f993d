"""Verifies games of Gomoku against the rule bot: a referee and a second bot, written for reading, not for speed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gumbeldore.errors import require
from gumbeldore.kits.verdict import Verdict

Cell = tuple[int, int]  # row, column
Walk = tuple[Cell, ...]  # cells in the order of walking
Stones = dict[Cell, str]  # "black" or "white"

_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def verify_gomoku(size: int, moves: Sequence[int] | Any) -> Verdict:
    """Checks a whole game; the objective is 1 if white wins, 0 for a draw, -1 if black wins.

    `moves` are the cells (`row * size + column`) of all stones in order: black's first stone, white's, black's, ... Every
    stone of black after the first must be the rule bot's answer, and the game must end with the first five in a row or with
    the full board, not before and not later.
    """
    require(size >= 5, f"`size` must be at least 5, got {size}.")
    cells = [divmod(int(move), size) for move in moves]
    stones: Stones = {}
    winner = ""
    for ply, cell in enumerate(cells):
        player = "white" if ply % 2 else "black"
        if fault := _fault(size, stones, ply, cell, winner):
            return Verdict.infeasible(fault)
        stones[cell] = player
        if _longest_row(stones, cell) >= 5:
            winner = player
    if winner == "" and len(stones) < size * size:
        return Verdict.infeasible(f"the game is not over after {len(cells)} stones: nobody has five in a row")
    return Verdict(True, {"white": 1.0, "": 0.0, "black": -1.0}[winner])


def _fault(size: int, stones: Stones, ply: int, cell: Cell, winner: str) -> str:
    """Why the stone number `ply` (from 0) must not be put on `cell`, or an empty string."""
    if winner:
        return f"stone {ply} is put after {winner} has won"
    if not (0 <= cell[0] < size and 0 <= cell[1] < size):
        return f"stone {ply} is put on row {cell[0]}, column {cell[1]}, which is not on the board"
    if cell in stones:
        return f"stone {ply} is put on row {cell[0]}, column {cell[1]}, which is taken"
    if ply % 2 == 0 and ply > 0 and cell != (answer := rule_bot(size, stones)):
        return f"stone {ply} of the bot is put on row {cell[0]}, column {cell[1]}, but its rules say {answer}"
    return ""


def _longest_row(stones: Stones, cell: Cell) -> int:
    """The longest unbroken row of one colour through the stone on `cell`."""
    return max(1 + _reach(stones, cell, (dr, dc)) + _reach(stones, cell, (-dr, -dc)) for dr, dc in _DIRECTIONS)


def _reach(stones: Stones, cell: Cell, step: Cell) -> int:
    """How many stones of the colour on `cell` follow it without a gap in one direction."""
    count, (row, column) = 0, cell
    while stones.get((row + step[0], column + step[1])) == stones[cell]:
        count, row, column = count + 1, row + step[0], column + step[1]
    return count


def rule_bot(size: int, stones: Stones, player: str = "black") -> Cell:
    """The answer of the rule bot: its own best cell, or the opponent's if that is worth more to the opponent."""
    opponent = "white" if player == "black" else "black"
    empty = [(row, column) for row in range(size) for column in range(size) if (row, column) not in stones]
    own = {cell: cell_score(size, stones, cell, player) for cell in empty}
    theirs = {cell: cell_score(size, stones, cell, opponent) for cell in empty}
    mine, threat = max(empty, key=lambda cell: own[cell]), max(empty, key=lambda cell: theirs[cell])  # the first of equals
    return mine if own[mine] >= theirs[threat] else threat


def cell_score(size: int, stones: Stones, cell: Cell, player: str) -> int:
    """What an empty cell is worth to a player, in units of 10^-size points (so that all numbers are whole)."""
    point = 10**size
    total = 0
    for ways in _lines_through(size)[cell]:
        score = walked = 0
        for way in ways:
            weight = 100 * point
            for stone in map(stones.get, way):
                if stone is None:
                    score += point
                    weight //= 10
                elif stone == player:
                    score += weight
                else:
                    score -= 5 * point
                    break
                walked += 1
        if walked < 4:
            continue
        if score >= 390 * point:
            score = 2000 * point
        elif score >= 302 * point:
            score = 1000 * point
        total += score
    return total


@lru_cache(maxsize=8)
def _lines_through(size: int) -> dict[Cell, list[tuple[Walk, Walk]]]:
    """The four lines through each cell: the cells to walk over from its neighbour to the border, one way and the other."""

    def way(cell: Cell, step: Cell) -> Walk:
        row, column = cell[0] + step[0], cell[1] + step[1]
        return ((row, column), *way((row, column), step)) if 0 <= row < size and 0 <= column < size else ()

    cells = [(row, column) for row in range(size) for column in range(size)]
    return {cell: [(way(cell, (dr, dc)), way(cell, (-dr, -dc))) for dr, dc in _DIRECTIONS] for cell in cells}
