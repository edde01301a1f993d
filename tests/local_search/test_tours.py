"""Tests of the anytime search for tours."""

from __future__ import annotations

import threading
from itertools import permutations

import numpy as np
import pytest

from gumbeldore.errors import SettingsError
from gumbeldore.io import tsplib_distances
from gumbeldore.local_search import compiling
from gumbeldore.local_search.distances import RULES, Distances, Matrix, Plane, path_cost
from gumbeldore.local_search.tours import TourSearch

pytestmark = pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")


def points(count: int, seed: int = 0) -> np.ndarray:
    return 100 * np.random.default_rng(seed).random((count, 2))


def plane(count: int, rule: str, seed: int = 0) -> Plane:
    given = points(count, seed)
    return Plane(np.radians(given - 50) if rule == "GEO" else given, rule)


def asymmetric(count: int, seed: int = 0) -> Matrix:
    return Matrix(np.random.default_rng(seed).integers(0, 50, (count, count)))


def length(distances: Distances, tour: np.ndarray) -> float:
    return path_cost(distances, [*tour, tour[0]])


def shortest(distances: Distances) -> float:
    return min(path_cost(distances, [0, *order, 0]) for order in permutations(range(1, len(distances))))


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("exact", "GEO")])
def test_rules_are_those_of_the_reader(rule: str) -> None:
    distances, given = plane(60, rule), points(60)
    ours = [[path_cost(distances, [a, b]) for b in range(60)] for a in range(60)]
    theirs = tsplib_distances.all_pairs(tsplib_distances.Planar(given, tsplib_distances.PLANAR[rule]), 60)
    assert np.array_equal(ours, theirs)


def test_the_rule_of_the_sphere_is_that_of_the_reader() -> None:
    angles = np.radians(points(60) - 50)
    ours = [[path_cost(Plane(angles, "GEO"), [a, b]) for b in range(60)] for a in range(60)]
    assert np.array_equal(ours, tsplib_distances.all_pairs(tsplib_distances.Geographical(angles), 60))


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("rule", ["exact", "EUC_2D", "GEO"])
def test_small_tours_become_optimal(count: int, rule: str) -> None:
    search = TourSearch(plane(count, rule), seed=1)
    search.run(work=200)
    assert sorted(search.best) == list(range(count))
    assert search.cost == pytest.approx(shortest(search.distances), rel=1e-12)


@pytest.mark.parametrize("count", range(1, 9))
def test_small_asymmetric_tours_become_optimal(count: int) -> None:
    search = TourSearch(asymmetric(count), seed=1)
    search.run(work=300)
    assert sorted(search.best) == list(range(count))
    assert search.cost == length(search.distances, search.best) == shortest(search.distances)


@pytest.mark.parametrize("distances", [plane(80, "exact"), plane(80, "ATT"), plane(70, "GEO"), asymmetric(40)])
def test_the_cost_is_that_of_the_tour_and_never_grows(distances: Distances) -> None:
    search, last = TourSearch(distances, seed=3, tour=np.arange(len(distances))), length(distances, np.arange(len(distances)))
    for _ in range(5):
        search.run(work=20)
        assert sorted(search.best) == list(range(len(distances)))
        assert search.cost == pytest.approx(length(distances, search.best), rel=1e-12)
        assert search.cost <= last
        last = search.cost


@pytest.mark.parametrize("distances", [plane(90, "EUC_2D"), asymmetric(90)])
def test_work_may_come_in_pieces(distances: Distances) -> None:
    whole, pieces, other = (TourSearch(distances, seed=seed) for seed in (5, 5, 6))
    whole.run(work=60)
    for _ in range(6):
        pieces.run(work=10)
    other.run(work=60)
    assert whole.work == pieces.work == 60
    assert np.array_equal(whole.best, pieces.best)
    assert not np.array_equal(whole.best, other.best)


def test_better_tours_are_taken_and_others_are_not() -> None:
    distances = plane(60, "EUC_2D")
    good, bad = TourSearch(distances, seed=1), TourSearch(distances, seed=2, tour=np.arange(60))
    good.run(work=300)
    assert not good.offer(np.arange(60))
    assert bad.offer(good.best)
    assert bad.cost == good.cost
    bad.run(work=50)
    assert bad.cost <= good.cost


def test_a_search_comes_within_a_few_percent_of_the_best() -> None:
    search = TourSearch(plane(1000, "exact"), seed=1)
    search.run(work=1000)
    assert search.cost < 0.7313 * np.sqrt(1000) * 100 * 1.04  # random tours of 1,000 cities (Johnson and McGeoch)


DEGENERATE = {
    "equal": np.zeros((50, 2)),
    "two places": np.repeat([[0.0, 0.0], [1.0, 1.0]], 25, axis=0),
    "a line": np.stack([np.arange(50.0), np.arange(50.0)], 1),
    "a grid": np.stack(np.divmod(np.arange(49.0), 7), 1),
    "far away": 1e9 * points(50),
    "tiny": 1e-9 * points(50),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("rule", ["exact", "EUC_2D", "ATT"])
def test_degenerate_points_come_to_an_end(name: str, rule: str) -> None:
    search = TourSearch(Plane(DEGENERATE[name], rule), seed=1)
    search.run(work=500)
    assert sorted(search.best) == list(range(len(search.distances)))
    assert search.cost == pytest.approx(length(search.distances, search.best), rel=1e-12)


def test_a_matrix_without_distances_is_no_problem() -> None:
    search = TourSearch(Matrix(np.zeros((30, 30))), seed=1)
    search.run(work=100)
    assert search.cost == 0


def test_a_search_ends_when_time_is_up_or_somebody_says_so() -> None:
    search = TourSearch(plane(200, "EUC_2D"), seed=1)
    assert search.run(seconds=0.05) > 0
    worker = threading.Thread(target=search.run, kwargs={"seconds": 3600})
    worker.start()
    with pytest.raises(SettingsError, match="at work in another thread"):
        [search.best for _ in iter(int, 1)]
    search.stop()
    worker.join(30)
    assert not worker.is_alive()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Plane(np.full((5, 2), np.nan)), "`points` must be in -1000000000000 .. 1000000000000|`points` must be in"),
        (lambda: Plane(points(5), "GEOM"), "`rule` must be one of exact, EUC_2D"),
        (lambda: Plane(np.zeros((0, 2))), "The number of nodes must be in 1"),
        (lambda: Plane(np.full((5, 2), 1e13)), "`points` must be in"),
        (lambda: Matrix(np.zeros((3, 4))), "A matrix must be square"),
        (lambda: Matrix(np.full((3, 3), np.inf)), "`matrix` must be in"),
        (lambda: TourSearch(plane(5, "exact"), seed=1, tour=[0, 1, 2, 3]), "Axis 0 of `tour` must have the size 5, got 4"),
        (
            lambda: TourSearch(plane(5, "exact"), seed=1, tour=[0, 1, 2, 3, 3]),
            "`tour` must hold every number once, got 3 twice",
        ),
        (lambda: TourSearch(plane(5, "exact"), seed=1, tour=[0, 1, 2, 3, -1]), "`tour` must be in 0 .. 4, got -1"),
        (lambda: TourSearch(plane(5, "exact"), seed=1).run(), "`run` needs `work` or `seconds`"),
        (lambda: TourSearch(plane(5, "exact"), seed=1).run(work=-1), "`work` must be at least 0, got -1"),
        (lambda: path_cost(plane(5, "exact"), [0, 5]), "`nodes` must be in 0 .. 4, got 5"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        make()
