"""The rule bot of Gomoku ('v1' of the LightZero suite), for many boards at once, and the lines of a board.

The bot scores every empty cell for both players: a cell is worth the sum of the four lines through it. A line is worth what
one meets when walking from the cell to both ends:

- An own stone adds its weight, which begins at 100 in each of the two directions.
- An empty cell adds 1, and divides the weight of all that follows by 10.
- An opposing stone subtracts 5 and ends the walk, as the border does.
- A line with fewer than 4 cells to walk over is worth 0. Otherwise 390 points or more become 2000, 302 or more become 1000.

It plays its own best cell if that is worth at least as much as the opponent's best cell is to the opponent, else the latter.

Scores are exact integers: one point of the rules counts `points(size)`, so that a weight divided by ten again and again
stays whole and ties are ties on every device. (Beyond 19 x 19 a weight below 10^-15 counts nothing.) Up to 9 x 9 the score of
every cell of every possible line is looked up in a table. It is built by `line_scores`, which larger boards call themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Int, Num
from torch import Tensor

from gumbeldore.problem import precise

WIN = 5
"""Stones in a row that win."""

BORDER = 2
"""What lies beyond the end of a line; 1, 0 and -1 are an own stone, an empty cell and an opponent's stone."""

_TABLE_SIZE = 9
"""The largest board whose lines are looked up: the table holds 3^size lines."""


@dataclass(frozen=True)
class Lines:
    """All lines of at least five cells: rows, columns and both diagonals. The last line is a spare without cells."""

    cell: Int[Tensor, "line place"]  # size * size beyond the end of a line
    length: Int[Tensor, " line"]
    entry: Int[Tensor, "4 cell"]  # `line * size + place` of the four lines through a cell; short diagonals: the spare
    window: Num[Tensor, "cell window"]  # 1 where a cell belongs to five cells in a row


@dataclass(frozen=True)
class Table:
    """Scores of every possible line, for the lookup: line `board @ power + offset`."""

    power: Num[Tensor, "cell line"]
    offset: Num[Tensor, " line"]
    score: Int[Tensor, "pattern 2 place"]  # for the own and for the opponent's stones


def bot_move(view: Int[Tensor, "row cell"], size: int) -> Int[Tensor, " row"]:
    """The bot's cell on boards seen from its side (1 its own stones, -1 the opponent's), each with an empty cell.

    Its own best cell if that scores at least as much as the opponent's best cell, else the latter; ties go to the first
    cell in row-major order.
    """
    score = cell_scores(view, size)
    best, cell = score.masked_fill((view != 0)[:, None], torch.iinfo(score.dtype).min).max(2)  # `max` gives the first
    return torch.where(best[:, 0] >= best[:, 1], cell[:, 0], cell[:, 1])


def cell_scores(view: Int[Tensor, "row cell"], size: int) -> Int[Tensor, "row 2 cell"]:
    """What each empty cell is worth to the bot and to its opponent, times `points(size)`: the sum over its four lines."""
    rows, device = len(view), view.device
    lines = board_lines(size, device)
    if size <= _TABLE_SIZE:
        table = _line_table(size, device)
        pattern = torch.addmm(table.offset, view.to(table.power.dtype), table.power).long()
        score = table.score.index_select(0, pattern.flatten())
    else:
        beyond = torch.full((1, rows), BORDER, dtype=view.dtype, device=device)
        stones = torch.cat([view.T, beyond]).index_select(0, lines.cell.T.flatten()).view(size, -1)
        both = torch.stack([line_scores(stones), line_scores(swapped(stones))])
        score = both.view(2, size, -1, rows).permute(3, 2, 0, 1).reshape(rows, -1)
    entry = lines.entry + lines.entry // size * size  # the scores of a line: `size` own ones, then the opponent's
    pick = torch.stack([entry, entry + size], 1).flatten()
    along = score.view(rows, -1).index_select(1, pick).view(rows, 4, 2, size * size)
    return along[:, 0] + along[:, 1] + along[:, 2] + along[:, 3]


def line_scores(stones: Int[Tensor, "place line"]) -> Int[Tensor, "place line"]:
    """What each place of a line is worth to the owner of the stones 1, times `points`."""
    point = points(len(stones))
    one_way, walked_one_way = _walk(stones)
    other_way, walked_other_way = _walk(stones.flip(0))
    score = (one_way + other_way.flip(0)).masked_fill_(walked_one_way + walked_other_way.flip(0) < 4, 0)
    return torch.where(score >= 390 * point, 2000 * point, torch.where(score >= 302 * point, 1000 * point, score))


def _walk(stones: Int[Tensor, "place line"]) -> tuple[Int[Tensor, "place line"], Int[Tensor, "place line"]]:
    """From each place outwards to place 0: the points collected, and the cells walked over.

    The walk from a place begins with its neighbour and goes on with what the walk from there collects: all of it if the
    neighbour is an own stone; the stones at a tenth if it is empty; nothing if it is an opposing stone or the border.
    """
    point = points(len(stones))
    weight = free = walked = torch.zeros(stones.shape[1], dtype=torch.long, device=stones.device)
    score, steps = [weight], [walked]
    for neighbour in stones[:-1]:
        own, empty, opposing = neighbour == 1, neighbour == 0, neighbour == -1
        weight = torch.where(own, weight + 100 * point, torch.where(empty, weight // 10, 0))
        free = torch.where(own | empty, free + empty * point, opposing * (-5 * point))
        walked = torch.where(own | empty, walked + 1, 0)
        score.append(weight + free)
        steps.append(walked)
    return torch.stack(score), torch.stack(steps)


def points(size: int) -> int:
    """One point of the rules in units of `line_scores`: a stone may stand behind `size - 2` empty cells."""
    return 10 ** min(max(size - 4, 0), 15)


def swapped(stones: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """The same lines seen from the other side."""
    return torch.where(stones == BORDER, stones, -stones)


def has_five(stones: Bool[Tensor, "row cell"], size: int) -> Bool[Tensor, " row"]:
    """Whether five or more of the stones stand in a row."""
    window = board_lines(size, stones.device).window
    return (stones.to(window.dtype) @ window == WIN).any(1)


@lru_cache(maxsize=32)
def board_lines(size: int, device: torch.device) -> Lines:
    """The lines of a board, built once per size and device."""
    board = torch.arange(size * size).view(size, size)
    offsets = range(WIN - size, size - WIN + 1)
    diagonals = [lane.diagonal(offset) for lane in (board, board.flip(1)) for offset in offsets]
    lanes = [*board, *board.T, *diagonals, board.new_empty(0)]
    cell = torch.stack([torch.nn.functional.pad(lane, (0, size - len(lane)), value=size * size) for lane in lanes])
    entry = torch.full((4, size * size), (len(lanes) - 1) * size)
    groups = (0, size, 2 * size, 2 * size + len(offsets), len(lanes) - 1)
    for direction in range(4):
        for line in range(groups[direction], groups[direction + 1]):
            entry[direction, lanes[line]] = line * size + torch.arange(len(lanes[line]))
    windows = torch.cat([lane.unfold(0, WIN, 1) for lane in lanes[:-1]])
    window = torch.zeros(size * size, len(windows)).scatter_(0, windows.T, 1.0)
    return Lines(cell.to(device), torch.tensor([len(lane) for lane in lanes]).to(device), entry.to(device), window.to(device))


@lru_cache(maxsize=8)
def _line_table(size: int, device: torch.device) -> Table:
    """The scores of all lines of a board that are possible, shorter diagonals included."""
    lines = board_lines(size, torch.device("cpu"))
    parts: list[Tensor] = []
    first: dict[int, int] = {}
    for length in [0, *range(WIN, size + 1)]:
        first[length] = sum(len(part) for part in parts)
        code = torch.arange(3**length)
        digits = code // 3 ** torch.arange(length)[:, None] % 3 - 1
        stones = torch.nn.functional.pad(digits, (0, 0, 0, size - length), value=BORDER)
        parts.append(torch.stack([line_scores(stones), line_scores(swapped(stones))]).permute(2, 0, 1))
    power = torch.zeros(size * size + 1, len(lines.cell), dtype=torch.float64)
    power.scatter_(0, lines.cell.T, (3.0 ** torch.arange(size, dtype=torch.float64))[:, None].expand(size, len(lines.cell)))
    offset = torch.tensor([first[length] + (3**length - 1) // 2 for length in lines.length.tolist()])
    exact = precise(device)
    return Table(power[:-1].to(device, exact), offset.to(device, exact), torch.cat(parts).to(device, torch.int32))
