"""Games of Gomoku: the board with numbered stones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gumbeldore.errors import require
from gumbeldore.figure import saved_figure

_WOOD = "#e3c08a"
_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def plot_game(moves: Sequence[int], size: int, path: str | Path) -> None:
    """Draws the final board. Stones carry their number, black's first stone is 1; a winning row is ringed in red.

    `moves` are the cells of all stones in order, as `Gomoku.moves` gives them (entries of -1 after the end are ignored).
    """
    stones = _stones(moves, size)
    with saved_figure(path, size=(0.5 * size + 0.6, 0.5 * size + 0.9)) as axes:
        _draw_board(axes, size)
        for number, cell in enumerate(stones):
            _draw_stone(axes, size, number, cell)
        _draw_end(axes, size, stones)


def _stones(moves: Sequence[int], size: int) -> list[int]:
    """The moves before the padding, checked to lie on the board and not on each other."""
    cells = [int(move) for move in moves]
    while cells and cells[-1] == -1:
        cells.pop()
    require(len(cells) > 0, "`moves` must hold at least one stone, got none.")
    for cell in cells:
        require(0 <= cell < size * size, f"`moves` must be cells in 0 .. {size * size - 1}, got {cell}.")
    require(len(set(cells)) == len(cells), f"`moves` must not repeat a cell, got {cells}.")
    return cells


def winning_row(stones: Sequence[int], size: int) -> list[int]:
    """The cells of the longest row through the last stone if there are at least five, else nothing."""
    mine = {divmod(cell, size) for cell in stones[(len(stones) - 1) % 2 :: 2]}
    best: list[tuple[int, int]] = []
    for step in _DIRECTIONS:
        row = [divmod(stones[-1], size)]
        for sign in (1, -1):
            while (following := (row[-1][0] + sign * step[0], row[-1][1] + sign * step[1])) in mine:
                row.append(following)
            row.reverse()
        best = max(best, row, key=len)
    return [row * size + column for row, column in best] if len(best) >= 5 else []


def _draw_board(axes: Any, size: int) -> None:
    axes.set_facecolor(_WOOD)
    for line in range(size):
        axes.plot([0, size - 1], [line, line], color="black", linewidth=0.7, zorder=1)
        axes.plot([line, line], [0, size - 1], color="black", linewidth=0.7, zorder=1)
    axes.set(xlim=(-0.6, size - 0.4), ylim=(size - 0.4, -0.6), aspect="equal", xticks=range(size), yticks=range(size))
    axes.tick_params(length=0)


def _draw_stone(axes: Any, size: int, number: int, cell: int) -> None:
    from matplotlib.patches import Circle

    row, column = divmod(cell, size)
    fill, ink = ("white", "black") if number % 2 else ("black", "white")
    axes.add_patch(Circle((column, row), 0.44, facecolor=fill, edgecolor="black", linewidth=0.8, zorder=2))
    axes.text(column, row, str(number + 1), color=ink, ha="center", va="center_baseline", fontsize=10, zorder=3)


def _draw_end(axes: Any, size: int, stones: Sequence[int]) -> None:
    from matplotlib.patches import Circle

    row = winning_row(stones, size)
    for cell in row:
        axes.add_patch(Circle(divmod(cell, size)[::-1], 0.44, fill=False, edgecolor="tab:red", linewidth=2.5, zorder=4))
    if row:
        axes.set_title(f"{'black' if len(stones) % 2 else 'white'} wins with stone {len(stones)}")
    else:
        axes.set_title("draw" if len(stones) == size * size else f"after stone {len(stones)}")
