"""Cities of which only the distances are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gumbeldore
from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file
from gumbeldore.problems.tsp.kit import KIT

ASYMMETRIC = np.random.RandomState(0).randint(1, 100, (7, 7))


def shortest(matrix: np.ndarray) -> float:
    count = len(matrix)
    ways = ([0, *rest] for rest in itertools.permutations(range(1, count)))
    return min(sum(matrix[a, b] for a, b in zip(way, [*way[1:], 0], strict=True)) for way in ways)


def test_a_matrix_is_solved_in_both_directions_alike_or_not():
    for matrix in (ASYMMETRIC, ASYMMETRIC + ASYMMETRIC.T):
        found = gumbeldore.solve(matrix=matrix, time_limit=0.1)
        assert found.cost == shortest(matrix)
        assert found.found.evaluations == 0
        assert "img" not in found._repr_html_()


def tsplib(kind: str, matrix: np.ndarray) -> str:
    rows = "\n".join(" ".join(map(str, row)) for row in matrix.tolist())
    head = f"NAME: x\nTYPE: {kind}\nDIMENSION: {len(matrix)}\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
    return f"{head}EDGE_WEIGHT_SECTION\n{rows}\nEOF\n"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("x.atsp", lambda path: path.write_text(tsplib("ATSP", ASYMMETRIC))),
        ("x.csv", lambda path: path.write_text("\n".join(",".join(map(str, row)) for row in ASYMMETRIC.tolist()))),
        ("x.npy", lambda path: np.save(path, ASYMMETRIC)),
    ],
)
def test_files_of_distances_are_read_solved_and_written(name, write, tmp_path):
    write(tmp_path / name)
    kit, (given,) = read_file(tmp_path / name)
    assert (kit.name, given.unit) == ("tsp", {})
    found = gumbeldore.solve(tmp_path / name, time_limit=0.1)
    assert found.cost == shortest(ASYMMETRIC)
    assert KIT.exports["tour"].read(given, found.text("tour")) == found.actions


def test_a_symmetric_file_must_be_symmetric(tmp_path):
    (tmp_path / "x.tsp").write_text(tsplib("TSP", ASYMMETRIC))
    with pytest.raises(FormatError, match="not symmetric"):
        read_file(tmp_path / "x.tsp")
    (tmp_path / "x.tsp").write_text(tsplib("TSP", ASYMMETRIC + ASYMMETRIC.T))
    assert read_file(tmp_path / "x.tsp")[1][0].cost([1, 2, 3, 4, 5, 6]) > 0


@pytest.mark.parametrize("matrix", [np.zeros((2, 3)), np.full((3, 3), np.nan), np.full((3, 3), 1e300)])
def test_what_is_no_matrix_of_distances_is_refused_in_one_line(matrix):
    with pytest.raises(gumbeldore.GumbeldoreError):
        gumbeldore.solve(matrix=matrix)


def test_a_solution_that_misses_a_city_is_infeasible():
    verdict = KIT.solution_format.verify({"distances": ASYMMETRIC}, [1, 2, 3, 3, 4, 5])
    assert not verdict.feasible
