"""Matrices of distances from files and arrays, and tours of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import gumbeldore
from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file, read_solution, solution_cost
from gumbeldore.kits.registry import kit_named
from gumbeldore.problems.atsp.files import write_atsp
from gumbeldore.problems.atsp.improving import MatrixTourImprovement
from gumbeldore.problems.atsp.instances import ATSPGenerator
from gumbeldore.problems.atsp.kit import KIT
from gumbeldore.problems.tours import verify_by_matrix

DATA = Path(__file__).parents[2] / "data" / "instances"
ASYMMETRIC = np.random.RandomState(0).randint(1, 100, (7, 7))
SYMMETRIC = ASYMMETRIC + ASYMMETRIC.T
OPTIMA = {"br17": 39, "ftv33": 1286, "p43": 5620}


def shortest(matrix: np.ndarray) -> float:
    ways = ([0, *rest] for rest in itertools.permutations(range(1, len(matrix))))
    return min(sum(matrix[a, b] for a, b in zip(way, [*way[1:], 0], strict=True)) for way in ways)


def tsplib(kind: str, matrix: np.ndarray) -> str:
    return write_atsp({"distances": matrix}, "x").replace("TYPE: ATSP", f"TYPE: {kind}")


def rows(matrix: np.ndarray, between: str = ",") -> str:
    return "\n".join(between.join(map(str, row)) for row in matrix.tolist())


FILES = {
    "x.atsp": lambda path: path.write_text(tsplib("ATSP", ASYMMETRIC)),
    "x.csv": lambda path: path.write_text(rows(ASYMMETRIC)),
    "x.txt": lambda path: path.write_text(rows(ASYMMETRIC, "; ")),
    "x.npy": lambda path: np.save(path, ASYMMETRIC),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_distances_are_read_solved_and_written(name, tmp_path):
    FILES[name](tmp_path / name)
    kit, (given,) = read_file(tmp_path / name)
    assert kit is KIT
    found = gumbeldore.solve(tmp_path / name, time_limit=0.1)
    assert found.cost == shortest(ASYMMETRIC)
    assert KIT.exports["tour"].read(given, found.text("tour")) == found.actions


def test_a_matrix_is_solved_in_both_directions_alike_or_not():
    for matrix in (ASYMMETRIC, SYMMETRIC):
        found = gumbeldore.solve(matrix=matrix, time_limit=0.1)
        assert found.cost == shortest(matrix)
        assert "img" in found._repr_html_()


@pytest.mark.parametrize("name", OPTIMA)
def test_published_optima_are_the_lengths_of_tours_beside_their_files(name):
    kit, (given,) = read_file(DATA / f"{name}.atsp")
    assert (kit, given.name, given.known) == (KIT, name, OPTIMA[name])
    assert "TSPLIB" in given.known_from
    actions = read_solution(KIT.exports["tour"], given, DATA / f"{name}.opt.tour")
    assert solution_cost(KIT, given, actions) == OPTIMA[name] == -verify_by_matrix(given.arrays, actions).objective


@pytest.mark.parametrize("name", OPTIMA)
def test_local_search_reaches_published_optima(name):
    _, (given,) = read_file(DATA / f"{name}.atsp")
    search = MatrixTourImprovement(given, 0, None)
    search.run(work=5000)
    assert given.cost(search.actions) == OPTIMA[name]


def test_a_published_instance_is_known_by_its_content_not_its_name(tmp_path):
    text = (DATA / "br17.atsp").read_text()
    (tmp_path / "other.atsp").write_text(text.replace("br17", "mine"))
    assert read_file(tmp_path / "other.atsp")[1][0].known == 39
    (tmp_path / "br17.atsp").write_text(text.replace("   72", "   71"))
    (given,) = read_file(tmp_path / "br17.atsp")[1]
    assert given.known is None
    assert "differ from those of the published br17" in given.notes[0]


def test_what_is_written_is_read_back(tmp_path):
    drawn = ATSPGenerator(9, 3, 5).generate()
    for row in range(3):
        (tmp_path / "a.atsp").write_text(write_atsp(drawn.instance(row)))
        _, (given,) = read_file(tmp_path / "a.atsp")
        assert np.array_equal(given.arrays["distances"], drawn.arrays["distances"][row])
    np.save(tmp_path / "a.npy", drawn.arrays["distances"])
    kit, found = read_file(tmp_path / "a.npy")
    assert (kit, [given.name for given in found]) == (KIT, ["a[0]", "a[1]", "a[2]"])


def test_a_symmetric_file_belongs_to_the_tsp_unless_it_is_asked_for_here(tmp_path):
    (tmp_path / "x.tsp").write_text(tsplib("TSP", SYMMETRIC))
    kit, (given,) = read_file(tmp_path / "x.tsp")
    assert (kit.name, given.unit) == ("tsp", {})
    assert gumbeldore.solve(tmp_path / "x.tsp", time_limit=0.1).cost == shortest(SYMMETRIC)
    kit, (given,) = read_file(tmp_path / "x.tsp", KIT)
    assert given.cost([1, 2, 3, 4, 5, 6]) == SYMMETRIC[range(7), [1, 2, 3, 4, 5, 6, 0]].sum()


def test_places_belong_to_the_tsp(tmp_path):
    (tmp_path / "a.csv").write_text("1,0,0\n2,0,1\n3,1,0\n4,1,1\n")  # numbers of cities without a header: no matrix either
    with pytest.raises(FormatError, match="Name the columns `x` and `y`"):
        read_file(tmp_path / "a.csv")
    np.save(tmp_path / "a.npy", np.eye(2))
    assert read_file(tmp_path / "a.npy")[0].name == "tsp"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.tsp", tsplib("TSP", ASYMMETRIC), "not symmetric"),
        ("x.atsp", tsplib("SOP", ASYMMETRIC), "TYPE is SOP"),
        ("x.atsp", tsplib("ATSP", ASYMMETRIC).replace("EXPLICIT", "EUC_2D"), "EDGE_WEIGHT_TYPE is EUC_2D, not EXPLICIT"),
        ("x.atsp", tsplib("ATSP", ASYMMETRIC).replace("DIMENSION: 7", "DIMENSION: 8"), "must have 64 numbers"),
        ("x.csv", rows(ASYMMETRIC[:6]), "A matrix of 6 rows must have 6 columns, got 7 in line 1"),
        ("x.csv", rows(ASYMMETRIC).replace("48", "nan"), "Distances must be finite"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=message) as error:
        read_file(tmp_path / name)
    assert len(str(error.value).splitlines()) == 1


def test_an_asymmetric_file_is_refused_where_the_tsp_is_asked_for():
    with pytest.raises(FormatError, match="that is the problem `atsp`"):
        read_file(DATA / "br17.atsp", kit_named("tsp"))


@pytest.mark.parametrize("matrix", [np.zeros((2, 3)), np.full((3, 3), np.nan), np.full((3, 3), 1e300)])
def test_what_is_no_matrix_of_distances_is_refused_in_one_line(matrix):
    with pytest.raises(gumbeldore.GumbeldoreError):
        gumbeldore.solve(matrix=matrix)


def test_a_matrix_of_one_or_two_cities_has_one_tour():
    assert gumbeldore.solve(matrix=[[5]]).actions == []
    assert gumbeldore.solve(matrix=[[0, 2], [3, 0]]).cost == 5


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ([1, 2, 3, 3, 4, 5], "city 3 is visited again at position 4"),
        ([1, 2, 3, 4, 5], "1 cities are never visited, the first is 6"),
        ([1, 2, 3, 4, 5, 7], "city 7 at position 6 does not exist"),
    ],
)
def test_what_is_no_tour_is_infeasible(actions, reason):
    verdict = verify_by_matrix({"distances": ASYMMETRIC}, actions)
    assert not verdict.feasible
    assert reason in verdict.reason


def test_a_picture_shows_the_matrix_in_the_order_of_the_tour(tmp_path):
    KIT.solution_format.draw(tmp_path / "one.png", {"distances": ASYMMETRIC}, [3, 2, 1, 6, 5, 4], "one")
    KIT.solution_format.compare(tmp_path / "two.png", {"distances": ASYMMETRIC * 0}, [[1, 2, 3, 4, 5, 6]] * 2, ["a", "b"])
    assert (tmp_path / "one.png").stat().st_size > 1000
    assert (tmp_path / "two.png").stat().st_size > 1000
