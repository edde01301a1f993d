"""Curves in a terminal."""

from __future__ import annotations

from rich.text import Text

from gumbeldore.runs.braille import chart, grid


def text(curves, width, height, plain=False):
    return ["".join(cell.character for cell in row) for row in grid(curves, width, height, plain)]


def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right():
    assert text([[(0, 0), (1, 1)]], 2, 1) == ["⡠⠊"]
    assert text([[(0, 1), (1, 0)]], 2, 1) == ["⠑⢄"]


def test_a_constant_curve_is_a_line_in_the_middle():
    rows = text([[(1, 5.0), (9, 5.0)]], 4, 3)
    assert [row.strip() != "" for row in rows] == [False, True, False]


def test_the_first_tenth_of_a_long_curve_may_leave_the_picture():
    curve = [(0, 1000.0), *((n, float(n % 2)) for n in range(1, 20))]
    rows = chart({"loss": curve}, 40, 4)
    assert rows[0].lstrip().startswith("1 ")


def test_later_curves_lie_on_top_in_their_own_colour():
    (row,) = grid([[(0, 0), (1, 0)], [(0, 0), (1, 0)]], 3, 1)
    assert {cell.colour for cell in row} == {"yellow"}


def test_a_chart_fits_its_width_and_names_its_scale_and_curves():
    rows = [Text.from_markup(row).plain for row in chart({"greedy": [(1, 3.5), (20, 3.25)], "none": []}, 50, 6)]
    assert max(map(len, rows)) == 50
    assert rows[0].startswith(" 3.5")
    assert rows[5].startswith("3.25")
    assert rows[-2].split() == ["1", "20"]
    assert "greedy" in rows[-1]
    assert "none" not in rows[-1]


def test_a_plain_chart_is_ascii():
    assert all(row.isascii() for row in chart({"loss": [(0, 0), (3, 2), (5, 1)]}, 30, 5, plain=True))


def test_nothing_is_drawn_of_fewer_than_two_points():
    assert chart({"loss": [(1, 2.0)]}, 30, 5) == []
