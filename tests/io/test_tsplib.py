"""TSPLIB's syntax and distances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gumbeldore.errors import FormatError
from gumbeldore.io.tsplib import parse_tsplib
from gumbeldore.io.tsplib_distances import path_length, places, projected, radians

MATRIX = [[0, 3, 5, 7], [3, 0, 2, 4], [5, 2, 0, 6], [7, 4, 6, 0]]
FORMATS = {
    "FULL_MATRIX": "0 3 5 7\n3 0 2 4\n5 2 0 6\n7 4 6 0",
    "UPPER_ROW": "3 5 7\n2 4\n6",
    "LOWER_ROW": "3\n5 2\n7 4 6",
    "UPPER_DIAG_ROW": "0 3 5 7\n0 2 4\n0 6\n0",
    "LOWER_DIAG_ROW": "0\n3 0\n5 2 0\n7 4 6 0",
    "UPPER_COL": "3 5 2 7 4 6",
    "LOWER_COL": "3 5 7 2 4 6",
    "UPPER_DIAG_COL": "0 3 0 5 2 0 7 4 6 0",
    "LOWER_DIAG_COL": "0 3 5 7 0 2 4 0 6 0",
}
DISPLAY = "DISPLAY_DATA_SECTION\n1 0 0\n2 3 0\n3 4 1\n4 7 7\n"


def file(kind, rows):
    lines = "\n".join(f"{number} {x} {y}" for number, (x, y) in enumerate(rows, 1))
    return parse_tsplib(f"DIMENSION : {len(rows)}\nEDGE_WEIGHT_TYPE : {kind}\nNODE_COORD_SECTION\n{lines}\nEOF\n")


def explicit(kind, weights, display=DISPLAY):
    return parse_tsplib(
        f"DIMENSION : 4\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : {kind}\nEDGE_WEIGHT_SECTION\n{weights}\n{display}EOF\n"
    )


@pytest.mark.parametrize(
    ("kind", "there", "distance"),
    [
        ("EUC_2D", (3, 4), 5),
        ("EUC_2D", (1, 1), 1),  # 1.414
        ("EUC_2D", (1.5, 0), 2),  # a half goes up
        ("EUC_2D", (2.5, 0), 3),  # also from an even number
        ("CEIL_2D", (1, 1), 2),
        ("CEIL_2D", (3, 4), 5),
        ("ATT", (10, 0), 4),  # 3.162 becomes 3, which is less
        ("ATT", (0, 30), 10),  # 9.487 becomes 9, which is less
        ("ATT", (11, 7), 5),  # 4.123
        ("MAN_2D", (1.2, 3.4), 5),
        ("MAX_2D", (1.2, 3.6), 4),
    ],
)
def test_distances_in_the_plane_are_rounded_as_the_rule_says(kind, there, distance):
    weights = places(file(kind, [(0, 0), there])).weights
    assert path_length(weights, [0, 1]) == path_length(weights, [1, 0]) == distance
    assert path_length(weights, [1, 1]) == 0


def test_geographical_distances_are_those_worked_out_by_hand():
    """Formulas of "TSPLIB 95" with its PI and degrees.minutes, for the first two cities of ulysses16."""
    (north_a, east_a), (north_b, east_b) = (
        [3.141592 * (math.trunc(x) + 5 * (x - math.trunc(x)) / 3) / 180 for x in place]
        for place in ((38.24, 20.42), (39.57, 26.15))
    )
    q1, q2, q3 = math.cos(east_a - east_b), math.cos(north_a - north_b), math.cos(north_a + north_b)
    distance = int(6378.388 * math.acos(0.5 * ((1 + q1) * q2 - (1 - q1) * q3)) + 1)
    weights = places(file("GEO", [(38.24, 20.42), (39.57, 26.15)])).weights
    assert path_length(weights, [0, 1]) == distance == 509
    assert path_length(weights, [0, 0]) == 0  # although the formula gives 1


def test_a_map_is_true_to_scale_near_its_middle_and_not_torn_by_the_date_line():
    places_ = np.array([(0.0, 179.0), (0.0, -179.0), (1.0, 180.0)])
    points = projected(radians(places_))
    degree = 6378.388 * math.pi / 180
    assert math.dist(points[0], points[1]) == pytest.approx(2 * degree, rel=1e-3)
    assert math.dist(points[0], points[2]) == pytest.approx(math.sqrt(2) * degree, rel=1e-3)
    assert points[0, 0] < points[2, 0] < points[1, 0]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_of_a_matrix_gives_the_same_distances(kind):
    found = places(explicit(kind, FORMATS[kind]))
    a, b = np.divmod(np.arange(16), 4)
    assert found.weights(a, b).reshape(4, 4).tolist() == MATRIX
    assert found.points.tolist() == [[0, 0], [3, 0], [4, 1], [7, 7]]
    assert "EXPLICIT" in found.notes[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (explicit("FULL_MATRIX", FORMATS["FULL_MATRIX"], ""), "explicit matrix and there are no coordinates"),
        (explicit("UPPER_ROW", "1 2 3"), r"must have 6 numbers \(UPPER_ROW of 4 nodes\), got 3"),
        (explicit("FULL_MATRIX", "0 1 2 3\n" * 4), "not symmetric, first between nodes 1 and 2"),
        (explicit("FUNCTION", "1"), "EDGE_WEIGHT_FORMAT FUNCTION is not supported"),
        (explicit("UPPER_ROW", "1 2 3 4 5 nan"), "must hold finite numbers"),
        (explicit("UPPER_ROW", "1 2 3 4 5 x"), "must be a number, got 'x'"),
        (file("EUC_3D", [(0, 0), (1, 1)]), "EDGE_WEIGHT_TYPE EUC_3D is not supported, only EUC_2D"),
        (file("GEO", [(95, 0), (1, 1)]), "latitude in -90 .. 90"),
        (file("EUC_2D", [(0, 0), (1, "nan")]), "coordinates of node 2 are 1, nan, but must be finite"),
        (
            file("EUC_2D", [("1e308", 0), (1, 1)]),
            "coordinates of node 1 are 1e[+]308, 0, but must be finite and at most 1e[+]12",
        ),
        (parse_tsplib("DIMENSION : 2\nNODE_COORD_SECTION\n1 1 1\n2 2 2"), "There is no EDGE_WEIGHT_TYPE"),
        (parse_tsplib("EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 1 1"), "There is no DIMENSION"),
        (parse_tsplib("DIMENSION : 1\nEDGE_WEIGHT_TYPE : EUC_2D\n"), "There is no NODE_COORD_SECTION"),
        (parse_tsplib("DIMENSION : x\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"), "DIMENSION must be a number, got 'x'"),
        (parse_tsplib("DIMENSION : -3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"), "DIMENSION must be at least 1"),
        (parse_tsplib("DIMENSION : 1.5\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"), "must be an integer, got '1.5'"),
    ],
)
def test_what_has_no_distances_is_refused(given, message):
    with pytest.raises(FormatError, match=message):
        places(given)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1 0 0\n2 1 1\n3 2 2\n4 3 3", "DIMENSION is 10, but NODE_COORD_SECTION has 4 rows"),
        ("\n".join(f"{n} 0 0" for n in range(10)), "has node 0, but nodes are numbered 1 .. 10"),
        ("\n".join(f"{min(n, 9)} 0 0" for n in range(1, 11)), "has node 9 twice"),
        ("\n".join(f"{n} 0" for n in range(1, 11)), "must give 2 numbers for each node, got 1 for node 1"),
        ("\n".join(f"{n} 0 a" for n in range(1, 11)), "NODE_COORD_SECTION of node 1 must be a number, got 'a'"),
        ("\n".join(f"x{n} 0 0" for n in range(1, 11)), "node in row 1 of NODE_COORD_SECTION must be a number, got 'x1'"),
    ],
)
def test_every_node_must_be_there_once(rows, message):
    given = parse_tsplib(f"DIMENSION : 10\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{rows}\nEOF\n")
    with pytest.raises(FormatError, match=message):
        places(given)


def test_nodes_may_come_in_any_order_and_sections_before_specifications():
    given = parse_tsplib("NODE_COORD_SECTION:\n 2 3 4\n\n1 0 0\nEDGE_WEIGHT_TYPE: EUC_2D\nDIMENSION:2")
    assert places(given).points.tolist() == [[0, 0], [3, 4]]


def test_what_stands_after_the_end_is_not_read():
    assert parse_tsplib("NAME : EOF\nEOF\nrubbish").specifications == {"NAME": "EOF"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NAME : a\nrubbish\n", "Line 2 is neither `KEY : value` nor the name of a section: 'rubbish'"),
        ("NAME : a\nNAME : b\n", "NAME in line 2 is there a second time"),
        ("X_SECTION\nX_SECTION\n", "The X_SECTION in line 2 is there a second time"),
    ],
)
def test_a_text_in_another_syntax_is_refused(text, message):
    with pytest.raises(FormatError, match=message):
        parse_tsplib(text)


def test_a_list_must_end_where_it_says():
    assert parse_tsplib("A_SECTION\n1 2\n3 -1\n-1\n").listed("A") == [1, 2, 3]
    with pytest.raises(FormatError, match="goes on after the -1"):
        parse_tsplib("A_SECTION\n1\n-1\n2\n").listed("A")


def test_comments_may_have_several_lines_and_names_an_ending():
    given = parse_tsplib("NAME : berlin52.tsp\nCOMMENT : a\nCOMMENT : b: c\n")
    assert given.specifications["COMMENT"] == "a b: c"
    assert given.name("file") == "berlin52"
    assert parse_tsplib("").name("file") == "file"
