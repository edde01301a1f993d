"""The memory that worker processes share."""

from __future__ import annotations

import pickle

import pytest

from gumbeldore.solving.board import Board
from gumbeldore.solving.found import LOCAL, Found, Improvement


@pytest.fixture
def board(tmp_path) -> Board:
    made = Board(tmp_path / "board", instances=3, depth=4)
    made.clear()
    return made


def found(cost: float, *actions: int) -> Found:
    return Found([(list(actions), cost)], 7, 0.25, 100, 3, 1.5, (Improvement(LOCAL, cost, 1.5),))


def test_another_process_reads_what_was_written_last(board):
    board.write(1, found(-2.0, 3, 1, 2))
    board.write(1, found(-1.5, 1, 2, 3, 0))
    other = pickle.loads(pickle.dumps(board))
    assert other.read(1) == found(-1.5, 1, 2, 3, 0)
    assert other.turns().tolist() == [0, 2, 0]


def test_a_shorter_sequence_leaves_nothing_of_a_longer_one(board):
    for actions in ((1, 2, 3, 0), (3, 2, 1, 0), (2,)):
        board.write(0, found(-1.0, *actions))
    assert board.read(0) == found(-1.0, 2)


def test_a_writer_that_dies_before_it_turns_the_page_changes_nothing(board):
    board.write(2, found(-3.0, 1, 2))
    row = board._rows[2]
    row[2 + board.entry * (int(row[1] + 1) % 2) :][: board.entry] = 99.0
    assert board.read(2) == found(-3.0, 1, 2)


def test_progress_is_seen_by_everyone(board):
    pickle.loads(pickle.dumps(board)).report(1, 0.5)
    assert board.progress().tolist() == [0.0, 0.5, 0.0]
