"""Files of instances with time windows: published solutions are worth what is published, by each convention of rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from published import FOLDER

from gumbeldore.errors import FormatError, SettingsError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.problems.vrptw.files import parse_solomon, write_solomon
from gumbeldore.problems.vrptw.instances import VRPTWGenerator, verify
from gumbeldore.problems.vrptw.kit import KIT
from gumbeldore.problems.vrptw.verify import verify_vrptw

SMALL = """small

VEHICLE
NUMBER     CAPACITY
  3         9

CUSTOMER
CUST NO.  XCOORD.  YCOORD.  DEMAND  READY TIME  DUE DATE  SERVICE TIME

0 0 0 0 0 40 0
1 3 4 4 6 9 3
2 1 8 9 0 20 2.5
"""
WITH_SECTIONS = """NAME : small
TYPE : VRPTW
DIMENSION : 3
VEHICLES : 3
CAPACITY : 9
EDGE_WEIGHT_TYPE : EXACT_2D
NODE_COORD_SECTION
1 3 4
2 0 0
3 1 8
DEMAND_SECTION
1 4
2 0
3 9
TIME_WINDOW_SECTION
1 6 9
2 0 40
3 0 20
SERVICE_TIME_SECTION
1 3
2 0
3 2.5
DEPOT_SECTION
2
-1
EOF
"""


def read(tmp_path, text, name="a.txt"):
    (tmp_path / name).write_text(text)
    kit, (given,) = read_file(tmp_path / name)
    assert kit is KIT
    return given


@pytest.mark.parametrize(("name", "length", "vehicles"), [("C101", 828.94, 10), ("C102", 828.94, 10), ("R101", 1650.80, 19)])
def test_published_solutions_are_worth_what_is_published(name, length, vehicles):
    kit, (given,) = read_file(FOLDER / f"{name}.txt")
    assert kit is KIT
    actions = KIT.exports["sol"].read(given, (FOLDER / f"{name}.sol").read_text())
    assert round(solution_cost(KIT, given, actions), 2) == length
    assert sum(action % 2 for action in actions) == vehicles
    assert given.known == pytest.approx(length, abs=0.005)
    assert "SINTEF" in given.known_from


def test_with_one_decimal_the_optima_of_the_literature_are_known(tmp_path):
    text = (FOLDER / "R101.txt").read_text()
    given = read(tmp_path, text.replace("VEHICLE", "DECIMALS 1\n\nVEHICLE", 1))
    assert given.known == 1637.7
    actions = KIT.exports["sol"].read(given, (FOLDER / "R101.sol").read_text())
    cost = solution_cost(KIT, given, actions)
    assert 1637.7 < cost < 1650.8
    assert cost == pytest.approx(round(cost, 1), abs=1e-9)
    first = "\n".join(text.splitlines()[: 9 + 26])
    assert read(tmp_path, first.replace("VEHICLE", "DECIMALS 1\n\nVEHICLE", 1)).known == 617.1
    assert read(tmp_path, first).known is None


def test_both_layouts_say_the_same(tmp_path):
    one, other = read(tmp_path, SMALL), read(tmp_path, WITH_SECTIONS, "a.vrp")
    assert one.arrays.keys() == other.arrays.keys()
    for name in one.arrays:
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name])
    assert "The depot is node 2" in other.notes[0]


@pytest.mark.parametrize(
    ("rule", "length"), [("EXACT_2D", math.sqrt(65) + 5 + math.sqrt(20)), ("EUC_2D", 8.0 + 5 + 4.4), ("FLOOR_2D", 17.0)]
)
def test_rules_of_rounding(tmp_path, rule, length):
    text = WITH_SECTIONS.replace("EXACT_2D", rule).replace("3 9\nTIME", "3 5\nTIME")
    given = read(tmp_path, text, "a.vrp")
    assert solution_cost(KIT, given, [1, 2]) == pytest.approx(length, abs=1e-12)


@pytest.mark.parametrize("parts", [0, 10])
def test_what_is_written_is_read_back(tmp_path, parts):
    arrays = VRPTWGenerator(9, None, 1, 3).generate().instance(0) | {"parts": np.array(parts)}
    arrays["nodes"] = arrays["nodes"] * 9 if parts else arrays["nodes"]
    arrays["windows"] = arrays["windows"] * 9 if parts else arrays["windows"]
    given = read(tmp_path, write_solomon(arrays))
    for name, array in arrays.items():
        np.testing.assert_array_equal(given.arrays[name], array)
    actions = [2 * customer + 1 for customer in range(9)]
    text = KIT.exports["sol"].write(given, actions)
    assert KIT.exports["sol"].read(given, text) == actions


def test_distances_cut_down_to_other_parts_have_no_layout():
    arrays = VRPTWGenerator(3, None, 1, 3).generate().instance(0) | {"parts": np.array(7)}
    with pytest.raises(SettingsError, match="`parts` must be 0 or a power of ten"):
        write_solomon(arrays)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  3         9", "", "the number and the capacity of vehicles"),
        ("  3         9", "3 0", "capacity must be at least 1"),
        ("VEHICLE", "DECIMALS 9\n\nVEHICLE", "DECIMALS and a number in 0 .. 6"),
        ("1 3 4 4 6 9 3\n", "1 3 4 4 6 9\n", "7 numbers"),
        ("1 3 4 4 6 9 3\n", "2 3 4 4 6 9 3\n", "twice"),
        ("1 3 4 4 6 9 3\n", "1 3 4 4.5 6 9 3\n", "integer"),
        ("1 3 4 4 6 9 3\n", "1 3 4 10 6 9 3\n", "more than the capacity 9"),
        ("1 3 4 4 6 9 3\n", "1 3 4 4 9 6 3\n", "close after it opens"),
        ("1 3 4 4 6 9 3\n", "1 3 4 4 nan 9 3\n", "must be numbers"),
        ("1 3 4 4 6 9 3\n", "1 3 4 4 1 4 3\n", "cannot be served in time"),
        ("1 3 4 4 6 9 3\n", "1 3 4 4 6 9 30\n", "cannot be served in time"),
        ("0 0 0 0 0 40 0", "0 0 0 1 0 40 0", "depot must be 0"),
    ],
)
def test_faults_of_files_are_named(old, new, message):
    assert old in SMALL
    with pytest.raises(FormatError, match=message):
        parse_solomon(SMALL.replace(old, new, 1), "small")


@pytest.mark.parametrize(
    ("actions", "fault"),
    [
        ([1], "1 customers are never visited"),
        ([1, 1], "customer 0"),
        ([1, 2], "carries 13"),
        ([0, 3], "via the depot"),
    ],
)
def test_the_verifier_finds_faults(actions, fault):
    (given,) = parse_solomon(SMALL, "small")
    verdict = verify(given.arrays, actions)
    assert not verdict.feasible
    assert any(each in verdict.reason for each in fault.split("|")), verdict.reason


def test_the_verifier_knows_the_clock():
    given = ([[0, 0], [0, 5], [0, 9]], [0, 1, 1], 2, [[0, 30], [0, 10], [0, 12]], [0, 3, 4])
    assert verify_vrptw(*given, [0, 1], [1, 0]).objective == -18
    late = verify_vrptw(*given, [1, 0], [1, 0])
    assert late.reason == "subtour 0 comes to customer 0 at 17, after the window has closed at 10"
    short = ([[0, 0], [0, 5], [0, 9]], [0, 1, 1], 2, [[0, 24], [0, 10], [0, 12]], [0, 3, 4])
    assert (
        verify_vrptw(*short, [0, 1], [1, 0]).reason == "subtour 0 comes to the depot at 25, after the window has closed at 24"
    )


def test_other_vehicles_files_stay_those_of_the_cvrp():
    assert read_file(FOLDER / "A-n32-k5.vrp")[0].name == "cvrp"
