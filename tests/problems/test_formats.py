"""Reading instances from files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gumbeldore.errors import FormatError
from gumbeldore.problems.tsp.files import normalised, read_points

POINTS = [[0.0, 1.0], [2.5, -3.0], [4.0, 4.0], [1e3, 2e-3]]


def written(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".npy"):
        np.save(path, np.array(POINTS))
    elif name.endswith(".json"):
        path.write_text(json.dumps(POINTS))
    elif name.endswith(".tsp"):
        rows = "\n".join(f"{i + 1} {x} {y}" for i, (x, y) in enumerate(POINTS))
        path.write_text(f"NAME: toy\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{rows}\nEOF\n")
    elif name.startswith("header"):
        path.write_text("x,y\n" + "\n".join(f"{x},{y}" for x, y in POINTS))
    else:
        path.write_text("# cities\n" + "\n".join(f"{x} {y}" for x, y in POINTS) + "\n\n")
    return path


@pytest.mark.parametrize("name", ["a.npy", "a.json", "a.tsp", "header.csv", "a.txt"])
def test_every_format_gives_the_same_points(tmp_path, name):
    np.testing.assert_array_equal(read_points(written(tmp_path, name)), np.array(POINTS))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "1,2\n3,4\n", "at least 3 rows"),
        ("a.csv", "1,2,3\n3,4,5\n5,6,7\n", "2 coordinates"),
        ("a.csv", "1,2\n3,x\n5,6\n", "does not hold coordinates"),
        ("a.csv", "1,2\n3,nan\n5,6\n", "row 2"),
        ("a.json", "{}", "does not hold coordinates"),
        ("a.xyz", "", "ends in one of"),
        ("a.tsp", "EDGE_WEIGHT_TYPE: GEO\nNODE_COORD_SECTION\n1 0 0\n", "GEO"),
    ],
)
def test_a_wrong_file_is_named_with_its_fault(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FormatError, match=message):
        read_points(tmp_path / name)


def test_a_pickled_array_is_not_executed(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match="does not hold coordinates"):
        read_points(tmp_path / "a.npy")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"none\.csv"):
        read_points(tmp_path / "none.csv")


def test_normalising_keeps_shape_and_can_be_undone():
    points = np.array([[10.0, 20.0], [30.0, 25.0], [12.0, 60.0]])
    unit, scale = normalised(points)
    assert unit.min() == 0
    assert unit.max() == 1
    np.testing.assert_allclose(unit * scale + points.min(0), points)
    same, one = normalised(np.ones((3, 2)))
    assert one == 1.0
    assert (same == 0).all()
