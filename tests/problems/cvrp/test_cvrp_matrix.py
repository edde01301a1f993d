"""Customers of whom only the distances are known."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import gumbeldore
from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file
from gumbeldore.problems.cvrp.kit import KIT

MATRIX = np.random.RandomState(1).randint(1, 100, (6, 6))
DEMANDS, CAPACITY, DEPOT = [2, 1, 2, 0, 1, 2], 4, 3  # in the order of the file


def write(path: Path, places: str = "", matrix: np.ndarray = MATRIX) -> Path:
    rows = "\n".join(" ".join(map(str, row)) for row in matrix.tolist())
    demands = "\n".join(f"{node} {demand}" for node, demand in enumerate(DEMANDS, 1))
    path.write_text(
        f"NAME: x\nTYPE: CVRP\nDIMENSION: 6\nCAPACITY: {CAPACITY}\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
        f"{places}EDGE_WEIGHT_SECTION\n{rows}\nDEMAND_SECTION\n{demands}\nDEPOT_SECTION\n{DEPOT + 1}\n-1\nEOF\n"
    )
    return path


def shortest() -> float:
    """Of all orders of the customers and all ways to cut them into routes."""
    customers, least = [node for node in range(6) if node != DEPOT], float("inf")
    for order in itertools.permutations(customers):
        for cuts in itertools.product([False, True], repeat=4):
            routes = [[order[0]]]
            for node, cut in zip(order[1:], cuts, strict=True):
                routes = [*routes, [node]] if cut else [*routes[:-1], [*routes[-1], node]]
            if all(sum(DEMANDS[node] for node in route) <= CAPACITY for route in routes):
                ways = [[DEPOT, *route, DEPOT] for route in routes]
                least = min(least, sum(MATRIX[a, b] for way in ways for a, b in itertools.pairwise(way)))
    return least


def test_a_matrix_alone_is_solved_by_local_search(tmp_path):
    found = gumbeldore.solve(write(tmp_path / "x.vrp"), time_limit=0.2)
    assert (found.cost, found.found.evaluations) == (shortest(), 0)
    assert KIT.exports["sol"].read(found.job.given, found.text("sol")) == found.actions
    assert "img" not in found._repr_html_()


def test_with_places_to_draw_it_need_not_be_alike_in_both_directions(tmp_path):
    places = "NODE_COORD_SECTION\n" + "".join(f"{node} {node} {node * node}\n" for node in range(1, 7))
    found = gumbeldore.solve(write(tmp_path / "x.vrp", places), parts=["local-search"], time_limit=0.2)
    assert found.cost == shortest()
    assert found.job.for_policies


def test_the_verifier_knows_loads_and_customers_without_places(tmp_path):
    _, (given,) = read_file(write(tmp_path / "x.vrp"))
    verify = KIT.solution_format.verify
    alone = [2 * customer + 1 for customer in range(5)]
    assert (
        -verify(given.arrays, alone).objective
        == given.cost(alone)
        == sum(MATRIX[DEPOT]) + sum(MATRIX[:, DEPOT]) - 2 * MATRIX[DEPOT, DEPOT]
    )
    assert "more than the capacity" in verify(given.arrays, [1, 2, 4, 6, 8]).reason
    assert not verify(given.arrays, [1, 1, 5, 7, 9]).feasible


def test_a_matrix_that_is_none_is_refused(tmp_path):
    with pytest.raises(FormatError, match="must have 36 numbers"):
        read_file(write(tmp_path / "x.vrp", matrix=MATRIX[:5]))
