"""The independent verifiers, on cases worked by hand."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from gumbeldore import problems
from gumbeldore.errors import SettingsError
from gumbeldore.kits import verdict
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.cvrp.verify import verify_cvrp
from gumbeldore.problems.tsp.verify import verify_tsp

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
STAR = np.array([[0.0, 0.0], [3.0, 4.0], [-3.0, 4.0], [0.0, -2.0]])  # depot, customers 0, 1, 2
DEMANDS = np.array([0, 3, 4, 2])


def test_a_tour_around_the_unit_square_has_length_four() -> None:
    assert verify_tsp(SQUARE, [0, 1, 2, 3]) == Verdict(True, -4.0, "")
    assert verify_tsp(SQUARE, np.array([2, 1, 0, 3])) == Verdict(True, -4.0, "")


def test_a_tour_that_crosses_itself_is_longer() -> None:
    assert verify_tsp(SQUARE, [0, 2, 1, 3]).objective == pytest.approx(-2 - 2 * math.sqrt(2))


@pytest.mark.parametrize(
    ("tour", "reason"),
    [
        ([0, 1, 2], "1 cities are never visited, the first is 3"),
        ([0, 1, 2, 1], "city 1 is visited again at position 3"),
        ([0, 1, 2, 4], "city 4 at position 3 does not exist"),
        ([0, 1, 2, -1], "city -1 at position 3 does not exist"),
        ([0, 1, 2, 3, 0], "city 0 is visited again at position 4"),
        ([], "4 cities are never visited"),
    ],
)
def test_a_tour_that_is_no_permutation_is_infeasible(tour: list[int], reason: str) -> None:
    verdict = verify_tsp(SQUARE, tour)
    assert not verdict.feasible
    assert verdict.objective == -math.inf
    assert reason in verdict.reason


def test_routes_are_measured_from_depot_to_depot() -> None:
    together = verify_cvrp(STAR, DEMANDS, 9, [0, 1, 2], [1, 0, 0])
    assert together == Verdict(True, -(5 + 6 + math.dist((-3, 4), (0, -2)) + 2), "")
    apart = verify_cvrp(STAR, DEMANDS, 9, [2, 0, 1], [True, True, True])
    assert apart == Verdict(True, -(4.0 + 10 + 10), "")
    pair = verify_cvrp(STAR, DEMANDS, 9, [2, 0, 1], [1, 1, 0])
    assert pair == Verdict(True, -(4.0 + 5 + 6 + 5), "")


def test_a_full_vehicle_is_feasible_and_one_unit_more_is_not() -> None:
    assert verify_cvrp(STAR, DEMANDS, 7, [0, 1, 2], [1, 0, 1]).feasible
    verdict = verify_cvrp(STAR, DEMANDS, 6, [0, 1, 2], [1, 0, 1])
    assert not verdict.feasible
    assert verdict.reason == "subtour 0 carries 7, more than the capacity 6"
    assert "subtour 1 carries 6" in verify_cvrp(STAR, DEMANDS, 5, [0, 1, 2], [1, 1, 0]).reason


@pytest.mark.parametrize(
    ("customers", "flags", "reason"),
    [
        ([0, 1, 2], [1, 0], "there are 3 customers but 2 flags"),
        ([0, 1, 2], [0, 0, 0], "the first customer must be reached via the depot"),
        ([0, 1], [1, 0], "1 customers are never visited, the first is 2"),
        ([0, 1, 1], [1, 0, 0], "customer 1 is visited again at position 2"),
        ([1, 2, 3], [1, 0, 0], "customer 3 at position 2 does not exist: customers are 0 .. 2"),
        ([], [], "3 customers are never visited"),
    ],
)
def test_routes_that_do_not_serve_everyone_once_are_infeasible(customers: list[int], flags: list[int], reason: str) -> None:
    verdict = verify_cvrp(STAR, DEMANDS, 9, customers, flags)
    assert not verdict.feasible
    assert reason in verdict.reason


def test_malformed_instances_are_errors_and_not_verdicts() -> None:
    with pytest.raises(SettingsError, match="`coordinates` must have the shape"):
        verify_tsp(np.zeros(3), [0, 1, 2])
    with pytest.raises(SettingsError, match="`nodes` must have the shape"):
        verify_cvrp(np.zeros((0, 2)), np.zeros(0), 1, [], [])
    with pytest.raises(SettingsError, match=r"`demands` must have one entry per node \(4\)"):
        verify_cvrp(STAR, DEMANDS[1:], 9, [0, 1, 2], [1, 0, 0])


def test_the_reference_solutions_verify_to_their_lengths(shared: Path) -> None:
    file = shared / "data" / "cvrp_200_128.npz"
    if not file.is_file():
        pytest.skip(f"{file.name} is absent")
    with np.load(file) as data:
        arrays = dict(data)
    for row in range(len(arrays["length"])):
        nodes, demands, capacity = arrays["nodes"][row], arrays["demands"][row], arrays["capacity"][row]
        verdict = verify_cvrp(nodes, demands, capacity, arrays["customers"][row] - 1, arrays["via_depot"][row])
        assert verdict.feasible, verdict.reason
        assert verdict.objective == pytest.approx(-arrays["length"][row], abs=1e-6)


SHARED = ("gumbeldore.problems.intervals", "gumbeldore.problems.routes")
"""What several verifiers share: intervals that overlap, and actions split into routes. Neither knows a problem or its states."""


def test_the_verifiers_import_nothing_that_they_verify() -> None:
    files = [*Path(problems.__file__).parent.rglob("verify.py"), Path(verdict.__file__)]
    assert len(files) >= 5
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith("torch"), file
                allowed = ("gumbeldore.kits.verdict", "gumbeldore.errors", *SHARED)
                assert not name.startswith("gumbeldore") or name.startswith(allowed), file
