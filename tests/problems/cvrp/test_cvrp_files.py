"""Vehicle routing from CVRPLIB files; and routes."""

from __future__ import annotations

import pytest

from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.problems.cvrp.kit import KIT

TEXT = """NAME : toy
COMMENT : (Nobody, No of trucks: 2, {comment})
TYPE : {kind}
DIMENSION : 4
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : {capacity}
{more}NODE_COORD_SECTION
1 0 0
2 30 40
3 30 0
4 0 100
DEMAND_SECTION
{demands}DEPOT_SECTION
{depot}
EOF
"""
USUAL = {"comment": "x", "kind": "CVRP", "capacity": "10", "more": "", "demands": "1 0\n2 4\n3 6\n4 7\n", "depot": " 1\n -1"}


def read(tmp_path, **changes):
    (tmp_path / "a.vrp").write_text(TEXT.format(**USUAL | changes))
    kit, (given,) = read_file(tmp_path / "a.vrp")
    assert kit is KIT
    return given


def test_an_instance_is_read_with_its_depot_demands_and_capacity(tmp_path):
    given = read(tmp_path)
    assert given.arrays["nodes"].tolist() == [[0, 0], [30, 40], [30, 0], [0, 100]]
    assert given.arrays["demands"].tolist() == [0, 4, 6, 7]
    assert given.arrays["capacity"] == 10
    assert given.unit["nodes"].max() == 1
    assert solution_cost(KIT, given, [1, 2, 5]) == 50 + 40 + 30 + 200
    assert given.known is None


@pytest.mark.parametrize("comment", ["Optimal value: 320", "Best value: 320", "optimal: 320", "best known solution 320"])
def test_a_comment_may_state_the_best_known_cost(tmp_path, comment):
    given = read(tmp_path, comment=comment)
    assert (given.known, given.known_from) == (320, "the file's comment")


def test_the_depot_may_be_any_node(tmp_path):
    given = read(tmp_path, depot="3\n-1", demands="1 5\n2 4\n3 0\n4 7\n")
    assert given.arrays["nodes"].tolist() == [[30, 0], [0, 0], [30, 40], [0, 100]]
    assert given.arrays["demands"].tolist() == [0, 5, 4, 7]
    assert solution_cost(KIT, given, [1, 2, 5]) == 30 + 50 + 40 + 2 * 104
    assert "The depot is node 3" in given.notes[0]


def test_a_number_of_vehicles_is_no_limit_and_that_is_said(tmp_path):
    assert "number of vehicles (2) is not limited" in read(tmp_path, more="VEHICLES : 2\n").notes[0]


@pytest.mark.parametrize("count", [1, 2])
def test_no_customer_or_one_is_solved_by_the_reader(tmp_path, count):
    rows, demands = (["1 0 0\n", "2 3 4\n"][:count], ["1 0\n", "2 1\n"][:count])
    text = f"TYPE : CVRP\nDIMENSION : {count}\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 9\nNODE_COORD_SECTION\n{''.join(rows)}"
    (tmp_path / "a.vrp").write_text(f"{text}DEMAND_SECTION\n{''.join(demands)}DEPOT_SECTION\n1\n-1\nEOF\n")
    given = read_file(tmp_path / "a.vrp")[1][0]
    assert len(given.solved) == count - 1
    assert solution_cost(KIT, given, list(given.solved)) == [0, 10][count - 1]
    export = KIT.exports["sol"]
    assert export.read(given, export.write(given, given.solved)) == list(given.solved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"demands": "1 0\n2 -4\n3 6\n4 7\n"}, "demand of node 2 must be at least 0, got -4"),
        ({"demands": "1 0\n2 4\n3 11\n4 7\n"}, "demand of node 3 is 11, more than the CAPACITY 10"),
        ({"demands": "1 0\n2 4\n3 1.5\n4 7\n"}, "demand of node 3 must be an integer, got 1.5"),
        ({"demands": "1 0\n2 4\n3 nan\n4 7\n"}, "demand of node 3 must be an integer, got nan"),
        ({"demands": "1 0\n2 4\n3 inf\n4 7\n"}, "demand of node 3 is inf, more than the CAPACITY 10"),
        ({"demands": "1 0\n2 4\n3 6\n"}, "DIMENSION is 4, but DEMAND_SECTION has 3 rows"),
        ({"demands": "1 2\n2 4\n3 6\n4 7\n"}, "demand of the depot must be 0, got 2"),
        ({"capacity": "0"}, "CAPACITY must be at least 1, got 0"),
        ({"capacity": ""}, "There is no CAPACITY"),
        ({"depot": "1\n2\n-1"}, "must name one depot, got 2"),
        ({"depot": "-1"}, "must name one depot, got 0"),
        ({"depot": "9\n-1"}, "names node 9, but nodes are numbered 1 .. 4"),
        ({"kind": "VRPB"}, "TYPE is VRPB, not CVRP"),
        ({"more": "DISTANCE : 200\n"}, r"a limit on the length of routes \(DISTANCE\), which is not supported"),
    ],
)
def test_a_wrong_file_is_refused_with_its_fault(tmp_path, changes, message):
    with pytest.raises(FormatError, match=message):
        read(tmp_path, **changes)


class TestRoutes:
    def test_may_name_the_depot_at_their_ends(self, tmp_path):
        given = read(tmp_path)
        assert KIT.exports["sol"].read(given, "Route #1: 0 1 2 0\nroute 2 : 3\ncost 320\n") == [1, 2, 5]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("Route #1: 1 4\n", "Line 1 names customer 4, but customers are numbered 1 .. 3"),
            ("Route #1: 1 x\n", "Each customer in line 1 must be a number, got 'x'"),
            ("nothing\n", "There is no line `Route #1: ...`"),
        ],
    )
    def test_of_a_wrong_file_are_refused(self, tmp_path, text, message):
        given = read(tmp_path)
        with pytest.raises(FormatError, match=message):
            KIT.exports["sol"].read(given, text)

    @pytest.mark.parametrize(
        ("text", "reason"), [("Route #1: 1 2 3\n", "carries 17, more than the capacity 10"), ("Route #1: 1\n", "never visited")]
    )
    def test_that_are_infeasible_give_no_known_cost(self, tmp_path, text, reason):
        (tmp_path / "a.sol").write_text(text)
        given = read(tmp_path)
        assert given.known is None
        assert reason in given.notes[-1]

    def test_that_are_feasible_give_the_known_cost_whatever_they_claim(self, tmp_path):
        (tmp_path / "a.sol").write_text("Route #1: 1 2\nRoute #2: 3\nCost 1\n")
        assert read(tmp_path).known == 320
