"""The bot of Gomoku against hand-worked positions and a second bot."""

from __future__ import annotations

import random

import pytest
import torch
from gomoku_games import STONES, random_views, view

from gumbeldore.problems.gomoku.bot import BORDER, board_lines, bot_move, cell_scores, line_scores, points, swapped
from gumbeldore.problems.gomoku.verify import cell_score, rule_bot


def line_score(line: str, place: int) -> float:
    """The score of one place of a line for x, in points of the rules."""
    return line_scores(torch.tensor([[STONES[stone]] for stone in line]))[place].item() / points(len(line))


def cell_points(board: torch.Tensor, row: int, column: int, size: int = 9) -> list[float]:
    """The scores of a cell for the bot and for its opponent, in points of the rules."""
    return [score / points(size) for score in cell_scores(board, size)[0, :, row * size + column].tolist()]


def as_stones(board: list[int], size: int) -> dict[tuple[int, int], str]:
    """A board from the bot's side as the plain-Python bot wants it."""
    return {divmod(cell, size): "black" if stone == 1 else "white" for cell, stone in enumerate(board) if stone}


# The bot's scores, worked out by hand


@pytest.mark.parametrize(
    ("line", "place", "score"),
    [
        ("....x....", 3, 107),  # right: 100 + four empty cells; left: three
        ("....x....", 2, 17),  # right: 1, then the stone at a tenth (10), 4; left: 2
        ("....x....", 0, 7.1),  # three empty cells, the stone at a thousandth, four
        ("x.x.x....", 3, 215),  # left: 100 + 1 + 10; right: 100 + 4
        (".........", 4, 8),
        ("xx.......", 2, 206),  # left: 200; right: six empty cells
    ],
)
def test_a_line_scores_stones_by_the_gaps_before_them(line, place, score):
    assert line_score(line, place) == score


@pytest.mark.parametrize(
    ("line", "place", "score"),
    [
        ("oxxx.....", 4, 299),  # 300 - 5 + 4: one short of everything
        ("oxx......", 3, 200),  # 200 - 5 + 5
        ("o........", 1, 2),  # seven empty cells, -5
        ("oooo.....", 4, -1),  # blocked at once: -5, and four empty cells
        ("...o.x...", 4, 98),  # -5; 100 + three empty cells; four walked
    ],
)
def test_an_opposing_stone_costs_five_and_hides_what_is_behind_it(line, place, score):
    assert line_score(line, place) == score


@pytest.mark.parametrize(
    ("line", "place", "score"),
    [
        ("ox.xo....", 2, 0),  # two cells between the opposing stones: 190 points count nothing
        ("ox..xo...", 2, 0),  # three
        ("ox...xo..", 2, 93),  # four: 100 - 5; 1 + 1, the stone at a hundredth (1), -5
        ("....#####", 0, 0),  # a line of four cells has three to walk over
        ("xxx..####", 3, 301),  # a line of five cells has four
    ],
)
def test_a_line_with_fewer_than_four_cells_to_walk_over_counts_nothing(line, place, score):
    assert line_score(line, place) == score


@pytest.mark.parametrize(
    ("line", "place", "score"),
    [
        ("xxx..####", 3, 301),  # 300 + 1: below 302
        ("xxx...###", 3, 1000),  # exactly 302
        ("xxx......", 3, 1000),  # 305
        ("xxx..xxxx", 3, 1000),  # 300 + 1 + 4 x 10 = 341
        ("oxxxx.o..", 5, 2000),  # exactly 390 = 400 - 5 - 5
        ("xx.xx....", 2, 2000),  # 200 + 204
        ("oxxx..o..", 4, 291),  # 300 - 5 + 1 - 5
    ],
)
def test_a_line_score_jumps_at_302_and_at_390(line, place, score):
    assert line_score(line, place) == score


def test_a_cell_adds_up_its_four_lines():
    board = view("x........", *["........."] * 8)
    assert cell_points(board, 1, 1) == [107 + 8 + 8 + 0, 2 + 8 + 8 + 0]  # the short diagonal has two cells to walk over
    assert cell_points(board, 0, 1) == [107 + 8 + 7 + 0, 2 + 8 + 7 + 0]
    assert cell_points(board, 4, 4) == [7.1 + 8 + 8 + 8, 2 + 8 + 8 + 8]  # three empty, -5, four empty on the diagonal


def test_the_bot_takes_the_first_of_its_equally_good_cells():
    """Black on (4, 4), white on (4, 5). Of the cells around the black stone, (3, 3) and (5, 3) are worth most to black:
    107 along the diagonal through both, 8 + 8 straight, 6 along the other diagonal = 129. White's best are 127."""
    board = view(*["........."] * 4, "....xo...", *["........."] * 4)
    assert cell_points(board, 3, 3)[0] == cell_points(board, 5, 3)[0] == 129
    assert cell_points(board, 3, 4)[0] == 107 + 8 + 0 + 7  # a diagonal of which white leaves three cells
    assert cell_points(board, 4, 3)[0] == 98 + 8 + 7 + 7
    assert cell_points(board, 3, 6)[1] == cell_points(board, 5, 6)[1] == 106 + 8 + 8 + 5
    assert bot_move(board, 9).item() == 3 * 9 + 3


def test_the_bot_blocks_an_open_three_at_its_first_end():
    board = view("....x....", *["........."] * 3, "...ooo...", *["........."] * 2, "....x....", "....x....")
    assert cell_points(board, 4, 2)[1] == cell_points(board, 4, 6)[1] >= 1000  # mirror images of each other
    assert bot_move(board, 9).item() == 4 * 9 + 2


def test_the_bot_wins_rather_than_blocks_if_both_are_worth_the_same():
    board = view("xxxx.....", *["........."] * 7, "oooo.....")
    assert cell_points(board, 0, 4)[0] == 2000 + 8 + 4 + 4
    assert cell_points(board, 8, 4)[1] == 2000 + 8 + 4 + 4
    assert bot_move(board, 9).item() == 4


def test_the_bot_blocks_instead_of_winning_if_the_block_is_worth_more():
    """That is what its rules say, odd as it is: white's stone on (7, 4) raises white's best cell and lowers black's."""
    board = view("xxxx.....", *["........."] * 6, "....o....", "oooo.....")
    assert cell_points(board, 0, 4)[0] == 2000 + 1 + 4 + 4  # down: six empty cells, -5
    assert cell_points(board, 8, 4)[1] == 2000 + 107 + 4 + 4
    assert bot_move(board, 9).item() == 8 * 9 + 4


def test_the_bot_makes_an_exact_390_before_a_302():
    """Black's x gap in row 4 is worth 390 exactly (a four to complete), white's three on the border diagonal 302."""
    board = view(
        "...o.....",
        "....o....",
        ".....o...",
        ".........",
        "oxxxx.o..",
        ".........",
        ".........",
        ".........",
        ".........",
    )
    assert cell_points(board, 4, 5)[0] >= 2000
    assert 1000 <= cell_points(board, 3, 6)[1] < 2000  # the diagonal has six cells: 300 + 2
    assert bot_move(board, 9).item() == 4 * 9 + 5


def test_the_bot_equals_a_second_bot_on_random_positions():
    rng = random.Random(0)
    for count, size in ((800, 9), (80, 5), (60, 7), (40, 10), (20, 15)):
        boards = random_views(count, size, rng)
        cells = bot_move(boards, size).tolist()
        expected = [rule_bot(size, as_stones(board, size)) for board in boards.tolist()]
        assert [divmod(cell, size) for cell in cells] == expected


def test_scores_are_exact_and_do_not_depend_on_how_they_are_computed():
    """Looked up and walked give the same integers, and both are those of the second bot."""
    size = 9
    boards = random_views(50, size, random.Random(1))
    looked_up = cell_scores(boards, size)
    lines = board_lines(size, torch.device("cpu"))
    padded = torch.cat([boards.T, torch.full((1, 50), BORDER, dtype=torch.int8)])
    stones = padded[lines.cell.T.flatten()].view(size, -1)
    for player, walked in enumerate((line_scores(stones), line_scores(swapped(stones)))):
        by_entry = walked.view(size, -1, 50).transpose(0, 1).reshape(-1, 50)
        assert torch.equal(by_entry[lines.entry].sum(0).T, looked_up[:, player].long())
    board = boards[0].tolist()
    for cell in (cell for cell in range(size * size) if board[cell] == 0):
        second = [cell_score(size, as_stones(board, size), divmod(cell, size), player) for player in ("black", "white")]
        assert [score * 10**size // points(size) for score in looked_up[0, :, cell].tolist()] == second


def test_the_bot_sees_equal_boards_of_other_sizes_alike():
    """A cell's lines end at the border, so sizes differ; but a full line of stones is worth the same everywhere."""
    for size in (5, 9, 10, 19):
        board = torch.zeros(1, size * size, dtype=torch.int8)
        board[0, :4] = 1
        assert bot_move(board, size).item() == 4
