"""Orienteering instances from OPLib files, tours written and read back, and published values reproduced."""

from __future__ import annotations

import numpy as np
import pytest
from published import FOLDER

from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search import compiling
from gumbeldore.problems.op.baselines import BASELINES
from gumbeldore.problems.op.improving import TourImprovement
from gumbeldore.problems.op.kit import KIT

needs_compiler = pytest.mark.skipif(not compiling.available(), reason="the local search is not compiled")

PUBLISHED = {  # COST_LIMIT of OPLib's files, and what the solutions of EA4OP in github.com/bcamath-ds/OPLib collect
    ("att48", 1): (5314, 31),
    ("att48", 2): (5314, 1717),
    ("berlin52", 1): (3771, 37),
    ("berlin52", 2): (3771, 1897),
}
EA4OP = {  # two of those solutions
    ("att48", 1): "1 9 38 31 44 18 7 28 6 37 19 27 17 43 30 36 46 33 15 12 11 23 47 21 13 25 14 34 3 22 16 -1",
}
SMALL = (
    "NAME : small\nTYPE : OP\nDIMENSION : 4\nCOST_LIMIT : 20\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 5\n3 5 5\n4 5 0\n"
    "NODE_SCORE_SECTION\n1 3\n2 10\n3 20\n4 40\nDEPOT_SECTION\n2\n-1\nEOF\n"
)
LISTED = SMALL.replace(
    "EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 5\n3 5 5\n4 5 0",
    "EXPLICIT\nEDGE_WEIGHT_FORMAT : UPPER_ROW\nEDGE_WEIGHT_SECTION\n5 8 5 5 8 5",
)


def oplib(name, generation, limit):
    """The file as OPLib makes it of TSPLIB's: scores 1, by a formula, or by the distance from the first node."""
    text = (FOLDER / f"{name}.tsp").read_text().replace("EOF", "").rstrip()
    _, (given,) = read_file(FOLDER / f"{name}.tsp")
    nodes = np.arange(len(given.arrays["coordinates"]))
    away = given.cost.weights(np.zeros_like(nodes), nodes)
    scores = {1: np.ones_like(nodes), 2: 1 + (7141 * nodes + 73) % 100, 3: 1 + np.floor(99 * away / away.max()).astype(int)}
    rows = [f"{node + 1} {score}" for node, score in enumerate(scores[generation])]
    text = text.replace("TYPE : TSP", f"TYPE : OP\nCOST_LIMIT : {limit}").replace(
        "TYPE: TSP", f"TYPE: OP\nCOST_LIMIT : {limit}"
    )
    return "\n".join([text, "NODE_SCORE_SECTION", *rows, "DEPOT_SECTION", "1", "-1", "EOF", ""])


def read(tmp_path, text, name="a.oplib"):
    (tmp_path / name).write_text(text)
    found, given = read_file(tmp_path / name)
    assert found is KIT
    return given[0]


@pytest.mark.parametrize("name", ["a.oplib", "a.txt", "a.tsp"])
def test_oplib_is_read_with_the_depot_first(tmp_path, name):
    given = read(tmp_path, SMALL, name)
    assert given.arrays["nodes"].tolist() == [[0, 5], [0, 0], [5, 5], [5, 0]]
    assert given.arrays["prizes"].tolist() == [10, 3, 20, 40]
    assert given.arrays["distances"][0].tolist() == [0, 5, 5, 7]
    assert given.arrays["budget"] == 20
    assert any("The depot is node 2" in note for note in given.notes)
    assert solution_cost(KIT, given, [1, 3, 2, 0]) == -73


def test_distances_alone_are_searched_without_a_policy(tmp_path):
    given = read(tmp_path, LISTED)
    assert given.unit == {}
    assert any("All that is known are distances" in note for note in given.notes)
    assert solution_cost(KIT, given, [1, 3, 2, 0]) == -73


@pytest.mark.parametrize(("which", "expected"), PUBLISHED.items())
@needs_compiler
def test_published_values_are_known_and_reached(tmp_path, which, expected):
    limit, value = expected
    given = read(tmp_path, oplib(*which, limit))
    assert given.name == f"{which[0]}-gen{which[1]}-50"
    assert given.known == -value
    assert "EA4OP" in given.known_from
    found = []
    for seed in range(2):
        search = TourImprovement(given, seed, None)
        search.run(work=20_000)
        found.append(solution_cost(KIT, given, search.actions))
    assert min(found) == -value


@pytest.mark.parametrize("which", EA4OP)
def test_published_tours_are_worth_what_is_published(tmp_path, which):
    limit, value = PUBLISHED[which]
    given = read(tmp_path, oplib(*which, limit))
    text = "NAME : any\nTYPE : OP\nNODE_SEQUENCE_SECTION\n" + EA4OP[which].replace(" ", "\n") + "\nDEPOT_SECTION\n1\n-1\nEOF\n"
    assert solution_cost(KIT, given, KIT.exports["sol"].read(given, text)) == -value


def test_tours_are_written_and_read_back(tmp_path):
    for text in (SMALL, LISTED):
        given = read(tmp_path, text)
        for actions in ([0], [1, 0], [3, 2, 0], [1, 3, 2, 0]):
            written = KIT.exports["sol"].write(given, actions)
            assert KIT.exports["sol"].read(given, written) == actions
        assert "ROUTE_SCORE : 73\nROUTE_COST : 20" in written


def test_a_tour_may_be_written_from_any_node_on(tmp_path):
    given = read(tmp_path, SMALL)
    assert KIT.exports["sol"].read(given, "NODE_SEQUENCE_SECTION\n4\n3\n2\n1\n-1\n") == [1, 3, 2, 0]
    with pytest.raises(FormatError, match="must pass the depot, node 2"):
        KIT.exports["sol"].read(given, "NODE_SEQUENCE_SECTION\n4\n3\n-1\n")
    with pytest.raises(FormatError, match=r"names node 9, but nodes are numbered 1 \.\. 4"):
        KIT.exports["sol"].read(given, "NODE_SEQUENCE_SECTION\n9\n-1\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("COST_LIMIT : 20\n", "", "There is no COST_LIMIT"),
        ("COST_LIMIT : 20", "COST_LIMIT : -1", "COST_LIMIT must be at least 0 and finite, got -1"),
        ("4 40", "4 -40", "The score of node 4 must be in 0 .. 1e[+]12, got -40"),
        ("4 40\n", "", "DIMENSION is 4, but NODE_SCORE_SECTION has 3 rows"),
        ("SECTION\n2\n-1", "SECTION\n7\n-1", "DEPOT_SECTION names node 7"),
        ("SECTION\n2\n-1", "SECTION\n1\n2\n-1", "DEPOT_SECTION must name one depot, got 2"),
        ("EUC_2D", "XRAY1", "EDGE_WEIGHT_TYPE XRAY1 is not supported"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, old, new, message):
    with pytest.raises(FormatError, match=message) as error:
        read(tmp_path, SMALL.replace(old, new))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("text", [SMALL, LISTED])
def test_pyvrp_keeps_to_the_budget_of_the_file(tmp_path, text):
    pytest.importorskip("pyvrp")
    given = read(tmp_path, text.replace("COST_LIMIT : 20", "COST_LIMIT : 19"))
    actions = BASELINES["pyvrp"].solve(given.arrays, Limit(None, 50), 0)
    assert solution_cost(KIT, given, list(actions)) == -70
