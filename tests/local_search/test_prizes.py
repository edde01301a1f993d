"""Tests of the anytime search for tours that collect prizes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from gumbeldore.errors import SettingsError
from gumbeldore.local_search import compiling
from gumbeldore.local_search.distances import Matrix, Plane, path_cost
from gumbeldore.local_search.prizes import PrizeSearch
from gumbeldore.problem import replay
from gumbeldore.problems import OP

pytestmark = pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")


def given(customers, rule="exact", seed=0):
    random = np.random.default_rng(seed)
    points = 100 * random.random((customers + 1, 2))
    return Plane(points, rule), np.array([0.0, *random.integers(1, 50, customers)])


def check(search, prizes, budget):
    assert len(set(search.best)) == len(search.best)
    assert path_cost(search.distances, [0, *search.best, 0]) <= budget * (1 + 1e-9)
    assert search.prize == pytest.approx(prizes[search.best].sum())


def most(distances, prizes, budget):
    """By dynamic programming over sets of nodes."""
    count = len(prizes) - 1
    ways = np.array([[path_cost(distances, [a, b]) for b in range(count + 1)] for a in range(count + 1)])
    length = np.full((1 << count, count), np.inf)
    best = 0.0
    for node in range(count):
        length[1 << node, node] = ways[0, node + 1]
    for members in range(1, 1 << count):
        for last in range(count):
            if length[members, last] + ways[last + 1, 0] <= budget:
                best = max(best, sum(prizes[node + 1] for node in range(count) if members >> node & 1))
            for node in range(count):
                if not members >> node & 1:
                    more = members | 1 << node
                    length[more, node] = min(length[more, node], length[members, last] + ways[last + 1, node + 1])
    return best


@pytest.mark.parametrize("customers", range(1, 9))
@pytest.mark.parametrize("rule", ["exact", "EUC_2D", "listed"])
def test_few_customers_are_visited_optimally(customers, rule):
    distances, prizes = given(customers, "EUC_2D" if rule == "listed" else rule, seed=customers)
    if rule == "listed":
        values = np.random.default_rng(customers).integers(20, 90, (customers + 1, customers + 1))
        distances = Matrix(values + values.T)
    for budget in (60, 170, 300):
        search = PrizeSearch(distances, prizes, budget, seed=1)
        search.run(work=2000, progress=(0.0, 1.0))
        check(search, prizes, budget)
        assert search.prize == pytest.approx(most(distances, prizes, budget))


def test_the_same_work_finds_the_same():
    distances, prizes = given(60)
    found = []
    for parts in ([300], [300]):
        search = PrizeSearch(distances, prizes, 350.0, seed=7)
        for part in parts:
            search.run(work=part)
        found.append((search.best, search.prize))
    assert found[0] == found[1]
    check(search, prizes, 350.0)
    other = PrizeSearch(distances, prizes, 350.0, seed=8)
    other.run(work=300)
    assert other.best != found[0][0]


@pytest.mark.parametrize("customers", [1, 2, 30, 400])
def test_tours_stay_within_any_budget(customers):
    distances, prizes = given(customers)
    for budget in (0.0, 1.0, 120.0, 1e6):
        search = PrizeSearch(distances, prizes, budget, seed=0)
        search.run(work=100)
        check(search, prizes, budget)
    assert search.prize == prizes.sum()


def test_equal_places_and_prizes_are_no_trouble():
    distances = Plane(np.zeros((20, 2)))
    for prizes in (np.ones(20), np.zeros(20)):
        search = PrizeSearch(distances, prizes, 0.0, seed=0)
        search.run(work=50)
        check(search, prizes, 0.0)


def test_it_goes_on_from_better_tours_only():
    distances, prizes = given(20)
    search = PrizeSearch(distances, prizes, 200.0, seed=0)
    search.run(work=3000, progress=(0.0, 1.0))
    good, worth = search.best, search.prize
    other = PrizeSearch(distances, prizes, 200.0, seed=3, tour=good[:2])
    assert other.prize <= worth
    if other.prize < worth:
        assert other.offer(good)
    assert not other.offer(good[:1])
    assert other.prize == pytest.approx(worth)


def test_it_stops_when_it_is_told_to():
    distances, prizes = given(300)
    search = PrizeSearch(distances, prizes, 1000.0, seed=0)
    threading.Timer(0.05, search.stop).start()
    assert search.run(seconds=60) > 0
    check(search, prizes, 1000.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prizes": [0, 1]}, "Axis 0 of `prizes` must have the size 4"),
        ({"prizes": [0, 1, -1, 1]}, "`prizes` must be in 0"),
        ({"budget": float("nan")}, "`budget` must be at least 0 and finite"),
        ({"tour": [1, 1]}, "`tour` must hold every node at most once, got node 1 twice"),
        ({"tour": [4]}, r"`tour` must hold nodes in 1 .. 3, got 4"),
        ({"tour": [0]}, r"`tour` must hold nodes in 1 .. 3, got 0"),
        ({"tour": [1, 2, 3]}, "A tour must be at most as long as the budget"),
    ],
)
def test_what_is_impossible_is_refused_in_one_line(arguments, message):
    distances = Plane(np.array([[0, 0], [0, 5.0], [5, 5], [5, 0]]))
    with pytest.raises(SettingsError, match=message):
        PrizeSearch(distances, **{"prizes": [0, 1, 1, 1], "budget": 19.0, "seed": 0, **arguments})


def test_distances_must_be_alike_in_both_directions():
    with pytest.raises(SettingsError, match="must be alike in both directions"):
        PrizeSearch(Matrix(np.array([[0, 1], [2, 0]])), [0, 1], 9.0, seed=0)


def test_the_first_nodes_of_tours_stay():
    problem = OP(15)
    state = problem.generate(10, generator=torch.Generator().manual_seed(0))
    begun = problem.local_search(state, torch.zeros(10, 1, dtype=torch.long), effort=1, seeds=torch.arange(10))
    for kept in range(5):
        found = problem.local_search(state, begun, effort=20, seeds=torch.arange(10), kept=kept)
        assert torch.equal(found[:, :kept], begun[:, :kept])
        ends = [replay(problem, state, each, (each >= 0).sum(1)) for each in (begun, found)]
        assert bool(problem.done(ends[1]).all())
        assert bool((ends[1].length <= state.budget * (1 + 1e-9)).all())
        assert bool((problem.objective(ends[1]) >= problem.objective(ends[0]) - 1e-9).all())


def test_what_is_found_does_not_depend_on_the_batch():
    problem = OP(15)
    state = problem.generate(6, generator=torch.Generator().manual_seed(0))
    begin = torch.zeros(6, 1, dtype=torch.long)
    found = problem.local_search(state, begin, effort=5, seeds=torch.arange(6))
    alone = problem.local_search(state.rows(slice(3, 4)), begin[3:4], effort=5, seeds=torch.tensor([3]))
    assert torch.equal(found[3:4], alone)
