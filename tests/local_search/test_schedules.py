"""Tests of the anytime search for job shops."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from gumbeldore.errors import SettingsError
from gumbeldore.local_search import compiling
from gumbeldore.local_search.improve import improve_schedules
from gumbeldore.local_search.schedules import ScheduleSearch

pytestmark = pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")

Shop = tuple[np.ndarray, np.ndarray]


def shop(jobs: int, machines: int, seed: int = 0) -> Shop:
    generator = np.random.default_rng(seed)
    return generator.integers(1, 99, (jobs, machines)), np.stack([generator.permutation(machines) for _ in range(jobs)])


def makespan(given: Shop, schedule: np.ndarray) -> float:
    """Operations in the order of the schedule, each as early as its job and its machine allow."""
    times, machines = given
    jobs, free, step = np.zeros(len(times)), np.zeros(times.shape[1]), np.zeros(len(times), dtype=int)
    for job in schedule:
        machine = machines[job, step[job]]
        jobs[job] = free[machine] = max(jobs[job], free[machine]) + times[job, step[job]]
        step[job] += 1
    assert (step == times.shape[1]).all()
    return jobs.max()


@pytest.mark.parametrize("size", [(1, 1), (1, 4), (4, 1), (2, 2), (3, 2), (2, 4), (3, 3)])
def test_small_shops_become_optimal(size: tuple[int, int]) -> None:
    given = shop(*size)
    search = ScheduleSearch(*given, seed=1)
    search.run(work=2000)
    every = set(permutations(np.arange(size[0]).repeat(size[1]).tolist())) if np.prod(size) <= 8 else None
    assert search.cost == makespan(given, search.best)
    if every is not None:
        assert search.cost == min(makespan(given, np.array(order)) for order in every)


@pytest.mark.parametrize("scale", [1, 0.001, 1e9])
def test_the_cost_is_that_of_the_schedule_and_never_grows(scale: float) -> None:
    times, machines = shop(10, 6)
    given, last = (scale * times, machines), float("inf")
    search = ScheduleSearch(*given, seed=1, schedule=np.arange(10).repeat(6))
    for _ in range(5):
        search.run(work=50)
        assert makespan(given, search.best) <= search.cost * (1 + 1e-9)
        assert search.cost <= last
        last = search.cost
    assert search.cost < makespan(given, np.arange(10).repeat(6))


def test_work_may_come_in_pieces() -> None:
    whole, pieces = (ScheduleSearch(*shop(12, 8), seed=4) for _ in range(2))
    whole.run(work=2000)
    for _ in range(20):
        pieces.run(work=100)
    assert whole.work == pieces.work
    assert np.array_equal(whole.best, pieces.best)


def test_better_schedules_are_taken_and_others_are_not() -> None:
    in_turn = np.arange(9).repeat(7)
    good, bad = ScheduleSearch(*shop(9, 7), seed=1), ScheduleSearch(*shop(9, 7), seed=2, schedule=in_turn)
    good.run(work=500)
    assert not good.offer(in_turn)
    assert bad.offer(good.best)
    assert bad.cost == good.cost


def test_a_search_that_is_done_says_so() -> None:
    search = ScheduleSearch(*shop(1, 6), seed=1)
    assert search.run(seconds=3600) < 10
    assert search.optimal
    search = ScheduleSearch(*shop(15, 15), seed=1)
    search.run(seconds=0.05)
    assert not search.optimal


@pytest.mark.parametrize("times", [np.zeros((6, 5)), np.ones((6, 5)), np.eye(6, 5), np.full((6, 5), 1e9)])
def test_degenerate_times_come_to_an_end(times: np.ndarray) -> None:
    machines = shop(6, 5)[1]
    search = ScheduleSearch(times, machines, seed=1)
    search.run(work=3000)
    assert makespan((times, machines), search.best) <= search.cost


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": np.full((3, 2), np.nan)}, "`times` must be in"),
        ({"times": -np.ones((3, 2))}, "`times` must be in 0"),
        ({"machines": [[0, 1], [0, 1], [0, 2]]}, "`machines` must be in 0 .. 1, got 2"),
        ({"machines": [[0, 1], [0, 1], [0, 0]]}, "`machines` must hold every number once"),
        ({"schedule": [0, 1, 2]}, "Axis 0 of `schedule` must have the size 6, got 3"),
        ({"schedule": [0, 1, 2, 0, 1, 3]}, "must be in 0 .. 2, got 3"),
        ({"schedule": [0, 1, 2, 0, 1, 1]}, "every job 2 times, got 1 more often"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict, message: str) -> None:
    given = {"times": np.ones((3, 2)), "machines": [[0, 1], [0, 1], [1, 0]], **change}
    with pytest.raises(SettingsError, match=message):
        ScheduleSearch(**given, seed=1)


def test_beyond_its_patience_the_search_goes_on_between_good_schedules() -> None:
    """Long enough for many beginnings, in whole and in pieces."""
    given = shop(6, 6, seed=3)
    whole, pieces = (ScheduleSearch(*given, seed=4) for _ in range(2))
    whole.run(work=120_000)
    for _ in range(8):
        pieces.run(work=15_000)
    assert np.array_equal(whole.best, pieces.best)
    assert makespan(given, whole.best) == whole.cost


def test_what_stays_does_so_however_long_the_search_is() -> None:
    times, machines = (torch.tensor(each)[None] for each in shop(6, 5, seed=5))
    start = torch.arange(6).repeat(5)[None]
    found = improve_schedules(times, machines, start, torch.tensor([1]), 80_000, kept=12)
    assert found[0, :12].tolist() == start[0, :12].tolist()
    assert found[0].bincount().tolist() == [5] * 6
    assert makespan(shop(6, 5, seed=5), found[0].numpy()) < makespan(shop(6, 5, seed=5), start[0].numpy())


@pytest.mark.parametrize("least", [1e-30, 0.0])
def test_times_that_others_swallow_make_no_cycles(least: float) -> None:
    generator = np.random.default_rng(6)
    times, machines = np.where(generator.random((8, 6)) < 0.5, least, 1e12), shop(8, 6)[1]
    search = ScheduleSearch(times, machines, seed=1)
    search.run(work=20_000)
    assert makespan((times, machines), search.best) <= search.cost * (1 + 1e-12)
