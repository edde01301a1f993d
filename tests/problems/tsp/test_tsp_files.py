"""Cities from files: TSPLIB, columns, JSON, arrays; and tours."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.problems.tsp.kit import KIT

POINTS = [[0.0, 1.0], [2.5, -3.0], [4.0, 4.0], [1e3, 2e-3]]
HEAD = "NAME: toy\nTYPE: TSP\nDIMENSION: {}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
PLAIN = "".join(f"{x} {y}\n" for x, y in POINTS)
COMMAS = PLAIN.replace(" ", ",")
TEXTS = {
    "a.tsp": HEAD.format(4) + "".join(f"{n} {x} {y}\n" for n, (x, y) in enumerate(POINTS, 1)) + "EOF\n",
    "plain.txt": "# cities\n" + PLAIN + "\n",
    "commas.csv": COMMAS,
    "header.csv": "x,y\n" + COMMAS,
    "other header.csv": '"east";"north"\n' + PLAIN.replace(" ", ";"),
    "tabs.xy": PLAIN.replace(" ", "\t"),
    "named.csv": "city,y,x\n" + "".join(f"New York {n},{y},{x}\n" for n, (x, y) in enumerate(POINTS)),
    "list.json": json.dumps(POINTS),
    "object.json": json.dumps({"name": "mine", "coordinates": POINTS}),
}


def only(path, kit=None):
    found, (given,) = read_file(path, kit)
    assert found is KIT
    return given


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_format_gives_the_same_points_in_any_encoding(tmp_path, name, encoding):
    (tmp_path / name).write_text(TEXTS[name], encoding=encoding)
    assert only(tmp_path / name).arrays["coordinates"].tolist() == POINTS


def test_an_array_may_hold_one_instance_or_many(tmp_path):
    np.save(tmp_path / "a.npy", np.array(POINTS))
    assert only(tmp_path / "a.npy").arrays["coordinates"].tolist() == POINTS
    np.save(tmp_path / "b.npy", np.arange(24, dtype=np.int32).reshape(3, 4, 2))
    many = read_file(tmp_path / "b.npy")[1]
    assert [given.name for given in many] == ["b[0]", "b[1]", "b[2]"]
    assert many[2].arrays["coordinates"][3].tolist() == [22, 23]


def test_a_pickled_array_is_not_executed(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match=r"cannot be read as a \.npy file of plain numbers"):
        read_file(tmp_path / "a.npy")


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("ending", ["tsp", "csv"])
def test_up_to_three_cities_are_solved_by_the_reader(tmp_path, count, ending):
    points = [(0, 0), (30, 40), (30, 0)][:count]
    rows = "".join(f"{n} {x} {y}\n" for n, (x, y) in enumerate(points, 1))
    text = HEAD.format(count) + rows if ending == "tsp" else "".join(f"{x},{y}\n" for x, y in points)
    (tmp_path / f"a.{ending}").write_text(text)
    given = only(tmp_path / f"a.{ending}")
    assert len(given.solved) == count - 1
    assert solution_cost(KIT, given, list(given.solved)) == [0, 100, 120][count - 1]
    assert KIT.exports["tour"].read(given, KIT.exports["tour"].write(given, given.solved)) == list(given.solved)


def test_larger_instances_are_left_to_the_search(tmp_path):
    (tmp_path / "a.txt").write_text(PLAIN)
    assert only(tmp_path / "a.txt").solved is None


def test_duplicate_cities_are_fine_and_said(tmp_path):
    (tmp_path / "a.txt").write_text("1 1\n2 2\n1 1\n5 5\n2 2\n")
    assert only(tmp_path / "a.txt").notes == ("2 cities at the place of another one, first city 3 at that of 1.",)
    (tmp_path / "a.txt").write_text("1 1\n" * 5)  # all at one place
    given = only(tmp_path / "a.txt")
    assert (given.unit["coordinates"] == 0).all()
    assert solution_cost(KIT, given, [1, 2, 3, 4]) == 0


def test_a_large_file_in_one_line_is_recognised(tmp_path):
    points = np.random.RandomState(0).uniform(size=(5000, 2)).tolist()
    (tmp_path / "a").write_text(json.dumps(points))
    assert only(tmp_path / "a").arrays["coordinates"].tolist() == points


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "1,2,3\n3,4,5\n", "Line 1 must hold 2 columns, got 3"),
        ("a.csv", "1,2\n3\n", "Line 2 must hold 2 columns, got 1"),
        ("a.csv", "1,2\n3,x\n5,6\n", "A coordinate in line 2 must be a number, got 'x'"),
        ("a.csv", "x1,2\n3,4\n5,6\n", "A coordinate in line 1 must be a number, got 'x1'"),
        ("a.csv", "x,y\n", "There are no coordinates"),
        ("a.csv", "1,2\n3,nan\n5,6\n", "coordinates of city 2 are 3, nan, but must be finite"),
        ("a.csv", "1,2\n3,1e308\n5,6\n", "coordinates of city 2 are 3, 1e[+]308"),
        ("a.csv", "1,2\n3,1_0\n", "must be a number, got '1_0'"),
        ("a.json", "{}", "JSON must be a list of pairs"),
        ("a.json", "[]", "JSON must be a list of pairs"),
        ("a.json", "[[1, 2], [3, 4]", "no valid JSON"),
        ("a.json", "[" * 100_000, "no valid JSON"),
        ("a.json", "[[1, 2], [3]]", r"City 2 must be a pair of numbers, got '\[3\]'"),
        ("a.json", "[[1, true]]", "City 1 must be a pair of numbers"),
        ("a.json", "[[1, NaN]]", "must be finite"),
        ("a.json", "[[1, 1" + 400 * "0" + "]]", "too large"),
        ("a.tsp", HEAD.format(10) + "1 0 0\n2 1 1\n3 2 2\n4 3 3\nEOF\n", "DIMENSION is 10, but NODE_COORD_SECTION has 4 rows"),
        ("a.tsp", "TYPE : ATSP\n", "There is no EDGE_WEIGHT_TYPE"),
        ("a.tsp", "TYPE :\n", "TYPE must say what the file is about"),
        ("a.tsp", "TYPE : TSP\nFIXED_EDGES_SECTION\n1 2\n-1\n", "FIXED_EDGES_SECTION is not supported"),
        ("a.tsp", "rubbish", "Line 1 is neither"),
    ],
)
def test_a_wrong_file_is_refused_with_its_fault(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FormatError, match=message) as caught:
        read_file(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_an_array_of_another_shape_is_refused(tmp_path):
    for array in (np.ones((3, 4)), np.ones(2), np.ones((0, 2)), np.array([["a", "b"]]), np.ones((1, 2), dtype=complex)):
        np.save(tmp_path / "a.npy", array)
        with pytest.raises(FormatError, match="must hold places with the axes"):
            read_file(tmp_path / "a.npy")


def test_a_section_that_is_not_read_is_said(tmp_path):
    written = HEAD.format(3) + "1 0 0\n2 3 0\n3 0 4\nMAGIC_SECTION\n1 2\nEOF\n"
    (tmp_path / "a.tsp").write_text(written)
    (given,) = read_file(tmp_path / "a.tsp")[1]
    assert given.notes == ("MAGIC_SECTION is not read: what it asks for is not part of the problem here.",)
    matrix = "TYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n0 3 4\n3 0 5\n4 5 0\n"
    (tmp_path / "b.tsp").write_text(matrix + "MAGIC_SECTION\n1 2\nDISPLAY_DATA_SECTION\n1 0 0\n2 3 0\n3 0 4\nEOF\n")
    assert any("MAGIC_SECTION" in note for note in read_file(tmp_path / "b.tsp")[1][0].notes)
    (tmp_path / "b.tsp").write_text(matrix + "EOF\n")
    assert not any("SECTION" in note for note in read_file(tmp_path / "b.tsp")[1][0].notes)
