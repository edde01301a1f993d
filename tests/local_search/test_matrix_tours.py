"""Tests of assignments and of local search by matrices."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from gumbeldore.errors import SettingsError
from gumbeldore.local_search import compiling
from gumbeldore.local_search.assignment import assign, look_ahead
from gumbeldore.local_search.distances import path_cost
from gumbeldore.local_search.matrix_tours import MatrixTourSearch, improve_matrix_tours

pytestmark = pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")
KINDS = {
    "uniform": lambda random, n: random.uniform(size=(n, n)),
    "few values": lambda random, n: random.randint(0, 4, (n, n)).astype(float),
    "negative, too": lambda random, n: random.randint(-50, 1000, (n, n)).astype(float),
    "zeros": lambda random, n: np.zeros((n, n)),
    "far apart": lambda random, n: 10.0 ** random.randint(-6, 12, (n, n)),
}


def least(matrix: np.ndarray) -> float:
    closed = matrix.copy()
    np.fill_diagonal(closed, 1e15)
    return matrix[linear_sum_assignment(closed)].sum()


def optimum(matrix: np.ndarray) -> float:
    ways = np.array([[0, *rest] for rest in permutations(range(1, len(matrix)))])
    return matrix[ways, np.roll(ways, -1, 1)].sum(1).min()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3, 6, 25])
def test_assignments_are_the_least_and_prices_prove_it(kind, size):
    random = np.random.RandomState(size)
    matrices = np.stack([KINDS[kind](random, size) for _ in range(5)])
    found = assign(matrices)
    for matrix, follower, prices, tour in zip(matrices, *found[:2], found.tour, strict=True):
        total = matrix[range(size), follower].sum()
        assert total == pytest.approx(least(matrix), rel=1e-9, abs=1e-9)
        assert sorted(tour) == list(range(size))
        left = matrix - prices[0][:, None] - prices[1]
        np.fill_diagonal(left, 0)
        assert left.min() >= -1e-9 * max(1, np.abs(matrix).max())
        assert prices.sum() == pytest.approx(total, rel=1e-9, abs=1e-9 * np.abs(matrix).max())


@pytest.mark.parametrize("kind", ["uniform", "few values"])
def test_regrets_are_what_the_bound_grows_by(kind):
    random = np.random.RandomState(0)
    for _ in range(20):
        matrix = KINDS[kind](random, 7)
        left = [0, 1, 3, 4, 6]
        given = torch.tensor(matrix)[None], torch.zeros(1, dtype=torch.long), torch.tensor([[2, 5]])
        found = look_ahead(*given, torch.tensor([[*left, -1]]), tries=5)
        rest = matrix[np.ix_([2, *left], [5, *left])].copy()
        np.fill_diagonal(rest, 1e9)
        base = rest[linear_sum_assignment(rest)].sum()
        for place in range(1, 6):
            forced = rest.copy()
            forced[0] = 1e6
            forced[0, place] = rest[0, place]
            grown = forced[linear_sum_assignment(forced)].sum() - base
            assert found.regret[0, place - 1].item() * found.scale.item() == pytest.approx(grown, abs=1e-5)
            assert found.next[0, place - 1] == (grown <= 1e-9) or found.regret[0, place - 1] <= 1e-6
        assert found.tried[0, :5].sum() == 5
        assert found.tried[0, 5] == 0
        assert found.detour[0, :5].min() == 0


def test_a_patched_tour_is_never_shorter_than_the_best_and_the_last_two_steps_are_exact():
    random = np.random.RandomState(1)
    for _ in range(10):
        matrix = random.uniform(size=(3, 3))
        given = torch.tensor(matrix)[None], torch.zeros(1, dtype=torch.long), torch.tensor([[0, 0]])
        found = look_ahead(*given, torch.tensor([[1, 2]]), tries=2)
        both = [matrix[0, a] + matrix[a, b] + matrix[b, 0] for a, b in ((1, 2), (2, 1))]
        assert int(found.detour[0].argmin()) == int(np.argmin(both))
        assert (found.detour[0].max() * found.scale).item() == pytest.approx(max(both) - min(both), abs=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "far apart"])
def test_small_matrices_are_solved_to_optimality(kind):
    random = np.random.RandomState(3)
    for size in (2, 3, 4, 5, 7):
        matrix = KINDS[kind](random, size)
        for values in (matrix, matrix + matrix.T):
            search = MatrixTourSearch(values, seed=0)
            search.run(work=100)
            assert search.cost == pytest.approx(optimum(values))
            assert path_cost(search.distances, [*search.best, 0]) == search.cost


def test_it_goes_on_from_a_tour_that_is_offered():
    matrix = np.random.RandomState(5).uniform(size=(40, 40))
    best = MatrixTourSearch(matrix, seed=1)
    best.run(work=2000)
    other = MatrixTourSearch(matrix, seed=0)
    assert other.offer(best.best)
    assert other.cost == pytest.approx(best.cost)
    assert not other.offer(np.arange(40))


def test_tours_of_a_batch_are_no_longer_than_they_were():
    matrices = torch.rand(8, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = improve_matrix_tours(matrices, torch.arange(8), 0)
    place = torch.arange(8)[:, None]
    before = matrices[place, torch.arange(12), torch.arange(12).roll(-1)].sum(1)
    assert bool((matrices[place, found, found.roll(-1, 1)].sum(1) <= before).all())
    assert torch.equal(found.sort(1).values, torch.arange(12).expand(8, -1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"distances": torch.full((1, 4, 4), torch.nan)}, "`distances` must be in"),
        ({"left": torch.tensor([[1, 4]])}, "`left` must be in -1 .. 3, got 4"),
        ({"ends": torch.tensor([[0, -1]])}, "`ends` must be in 0 .. 3, got -1"),
        ({"instances": torch.tensor([1])}, "`instances` must be in 0 .. 0, got 1"),
        ({"tries": 0}, "`tries` must be at least 1, got 0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(given, message):
    usual = {
        "distances": torch.zeros(1, 4, 4),
        "instances": torch.tensor([0]),
        "ends": torch.tensor([[0, 0]]),
        "left": torch.tensor([[1, 2]]),
        "tries": 2,
    }
    with pytest.raises(SettingsError, match=message):
        look_ahead(**{**usual, **given})
    with pytest.raises(SettingsError, match="The number of cities must be in 2"):
        assign(np.zeros((1, 1, 1)))
