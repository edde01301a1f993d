"""Pictures of games."""

from __future__ import annotations

import pytest

from gumbeldore.errors import SettingsError
from gumbeldore.problems.gomoku.plot import plot_game, winning_row


def test_a_game_is_drawn(tmp_path, game):
    plot_game(game, 9, tmp_path / "new" / "game.png")
    assert (tmp_path / "new" / "game.png").read_bytes().startswith(b"\x89PNG")


def test_the_winning_row_is_found_in_every_direction_and_only_if_it_is_long_enough(game):
    assert winning_row(game[:-1], 9) == []
    assert len(winning_row(game, 9)) >= 5
    for step in (1, 9, 10, 8):
        black = [40 + k * step for k in (-2, -1, 1, 2, 0)]
        white = [0, 1, 2, 3]
        moves = [cell for pair in zip(black, [*white, None], strict=True) for cell in pair if cell is not None]
        assert sorted(winning_row(moves, 9)) == sorted(black)


def test_moves_that_cannot_be_drawn_are_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"must not repeat a cell"):
        plot_game([1, 2, 1], 9, tmp_path / "game.png")
    with pytest.raises(SettingsError, match=r"cells in 0 .. 80, got 81"):
        plot_game([81], 9, tmp_path / "game.png")
