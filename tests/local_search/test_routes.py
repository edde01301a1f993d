"""Tests of the anytime search for vehicle routes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from gumbeldore.errors import SettingsError
from gumbeldore.local_search import compiling
from gumbeldore.local_search.distances import Distances, Matrix, Plane, path_cost
from gumbeldore.local_search.routes import Routes, RouteSearch

pytestmark = pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")


def plane(customers: int, rule: str = "EUC_2D", seed: int = 0) -> Plane:
    return Plane(100 * np.random.default_rng(seed).random((customers + 1, 2)), rule)


def demands(customers: int, seed: int = 0) -> np.ndarray:
    return np.array([0, *np.random.default_rng(seed).integers(1, 10, customers)])


def length(distances: Distances, routes: Routes) -> float:
    return sum(path_cost(distances, [0, *route, 0]) for route in routes)


def check(search: RouteSearch, loads: np.ndarray, capacity: int) -> None:
    assert sorted(node for route in search.best for node in route) == list(range(1, len(loads)))
    assert all(loads[route].sum() <= capacity for route in search.best)
    assert search.cost == pytest.approx(length(search.distances, search.best), rel=1e-12)


def shortest(distances: Distances, loads: np.ndarray, capacity: int) -> float:
    """By all orders of the customers, each cut into routes as well as can be."""
    found = np.inf
    for order in permutations(range(1, len(loads))):
        least = [0.0]
        for end in range(1, len(order) + 1):
            parts = [order[begin:end] for begin in range(end)]
            fitting = [(begin, part) for begin, part in enumerate(parts) if loads[list(part)].sum() <= capacity]
            least.append(min(least[begin] + path_cost(distances, [0, *part, 0]) for begin, part in fitting))
        found = min(found, least[-1])
    return found


@pytest.mark.parametrize("customers", range(1, 6))
@pytest.mark.parametrize("kind", ["EUC_2D", "exact", "asymmetric"])
def test_few_customers_are_served_optimally(customers: int, kind: str) -> None:
    matrix = np.random.default_rng(customers).integers(1, 60, (customers + 1, customers + 1))
    distances = Matrix(matrix) if kind == "asymmetric" else plane(customers, kind)
    loads = demands(customers)
    search = RouteSearch(distances, loads, 12, seed=1)
    search.run(work=2000)
    check(search, loads, 12)
    assert search.cost == pytest.approx(shortest(distances, loads, 12), rel=1e-12)


@pytest.mark.parametrize("rule", ["EUC_2D", "exact", "CEIL_2D"])
def test_capacities_hold_and_costs_never_grow(rule: str) -> None:
    loads, last = demands(80), float("inf")
    search = RouteSearch(plane(80, rule), loads, 40, seed=1, routes=[[node] for node in range(1, 81)])
    for _ in range(5):
        search.run(work=100)
        check(search, loads, 40)
        assert search.cost <= last
        last = search.cost


def test_the_same_work_and_seed_give_the_same_routes() -> None:
    found = []
    for seed in (3, 3, 4):
        search = RouteSearch(plane(60), demands(60), 30, seed=seed)
        for step in range(4):
            search.run(work=200, progress=(step / 4, (step + 1) / 4))
        found.append(search.best)
    assert found[0] == found[1] != found[2]


def test_work_may_come_in_pieces() -> None:
    whole, pieces = (RouteSearch(plane(20), demands(20), 30, seed=4) for _ in range(2))
    whole.run(work=9_000)  # it anneals twice
    for _ in range(40):
        pieces.run(work=225)
    assert whole.best == pieces.best


def test_better_routes_are_taken_and_others_are_not() -> None:
    loads, alone = demands(40), [[node] for node in range(1, 41)]
    good, bad = RouteSearch(plane(40), loads, 30, seed=1), RouteSearch(plane(40), loads, 30, seed=2, routes=alone)
    good.run(work=2000)
    assert not good.offer(alone)
    assert bad.offer(good.best)
    assert bad.cost == good.cost


@pytest.mark.parametrize("capacity", [3, 2_000_000_000, 1 << 60])
def test_customers_of_the_size_of_a_vehicle_ride_alone(capacity: int) -> None:
    search = RouteSearch(plane(9), np.array([0, *[capacity] * 9]), capacity, seed=1)
    search.run(work=300)
    assert sorted(search.best) == [[node] for node in range(1, 10)]


@pytest.mark.parametrize("points", [np.zeros((20, 2)), np.repeat([[0.0, 0.0], [3.0, 1.0]], 10, axis=0), 1e9 * np.eye(20, 2)])
@pytest.mark.parametrize("load", [0, 1, 7])
def test_degenerate_instances_come_to_an_end(points: np.ndarray, load: int) -> None:
    loads = np.array([0, *[load] * 19])
    for rule in ("exact", "EUC_2D"):
        search = RouteSearch(Plane(points, rule), loads, 7, seed=1)
        search.run(work=500)
        check(search, loads, 7)


def test_a_search_ends_when_time_is_up() -> None:
    search = RouteSearch(plane(200), demands(200), 50, seed=1)
    assert search.run(seconds=0.05) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": 0}, r"`capacity` must be in 1 .. 2\^60, got 0"),
        ({"demands": [0, 1, 2, 13, 1, 1]}, "`demands` must be in 0 .. 12, got 13"),
        ({"demands": [0, 1, -1, 1, 1, 1]}, "`demands` must be in 0 .. 12, got -1"),
        ({"demands": [0, 1, 1, 1]}, "Axis 0 of `demands` must have the size 6, got 4"),
        ({"demands": [0, 1.5, 1, 1, 1, 1]}, "demands must be whole numbers"),
        ({"routes": [[1, 2], [3, 4]]}, "must serve every customer, 1 are missing"),
        ({"routes": [[1, 2], [3, 4, 5, 1]]}, "must serve every customer once, got node 1 twice"),
        ({"routes": [[1, 2], [3, 4, 6]]}, "`routes` must be in 0 .. 5, got 6"),
        ({"routes": [[1, 2, 3, 4, 5]], "capacity": 4}, "must load at most the capacity, 4, got 5"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict, message: str) -> None:
    given = {"demands": [0, 1, 1, 1, 1, 1], "capacity": 12, **change}
    with pytest.raises(SettingsError, match=message):
        RouteSearch(plane(5), seed=1, **given)
