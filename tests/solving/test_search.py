"""Anytime search: limits, head starts, repeats and what is counted."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from kits import KITS
from routing import awake, seeded

from gumbeldore import Gumbeldore, WithReplacement
from gumbeldore.errors import SettingsError
from gumbeldore.kits.kit import Instance
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.search import deadline as deadlines
from gumbeldore.search.samplers import BeamSearch, Greedy
from gumbeldore.solving import search as searching
from gumbeldore.solving.effort import Limits
from gumbeldore.solving.found import KEPT, START
from gumbeldore.solving.jobs import Group, Job
from gumbeldore.solving.search import search

PROBLEM = TSP(cities=7)
POLICY = awake(TSPPolicy(d=16, layers=1, heads=2, ff=16)).eval()


def group(count: int = 2, cities: int = 7) -> Group:
    points = TSP(cities).generate(count, generator=seeded(1)).coordinates.numpy()
    jobs = [Job(KITS["tsp"], Instance({"coordinates": each}, {"coordinates": each})) for each in points]
    return Group(list(range(count)), jobs, list(range(5, 5 + count)), 0)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to go on; whatever happens is reported."""
    now = [0.0]
    monkeypatch.setattr(searching, "REPORTED", 0.0)
    monkeypatch.setattr(searching, "monotonic", lambda: now[0])
    monkeypatch.setattr(deadlines, "monotonic", lambda: now[0])
    return now


def test_without_limits_it_is_the_samplers_own_answer():
    sampler, given = Gumbeldore(4, 3), group()
    rounds = list(search(given, POLICY, sampler, Limits()))
    whole = sampler(PROBLEM, POLICY, given.initial()[1], seeds=torch.tensor(given.seeds))
    assert len(rounds) == 3
    for row, found in enumerate(rounds[-1]):
        assert found.cost == -whole.best_objective[row].item()
        assert found.actions == [a for a in whole.best_actions[row].tolist() if a >= 0]
        assert found.evaluations == whole.diagnostics.evaluations[row].item()
        assert found.sequences == 12


def test_the_best_never_gets_worse_and_is_a_list_of_different_sequences():
    for earlier, later in pairwise(search(group(), POLICY, Gumbeldore(8, 4), Limits())):
        assert all(new.cost <= old.cost for old, new in zip(earlier, later, strict=True))
        for found in later:
            assert len(found.best) == min(KEPT, found.sequences)
            assert len({tuple(actions) for actions, _ in found.best}) == len(found.best)
            assert [cost for _, cost in found.best] == sorted(cost for _, cost in found.best)


@pytest.mark.parametrize("limits", [Limits(seconds=1.0), Limits(greedy=True)])
def test_with_a_time_limit_or_if_asked_for_a_greedy_answer_comes_first(limits, clock):
    given = group(1)
    first = next(search(given, POLICY, Gumbeldore(4, 3), limits))
    greedy = Greedy()(PROBLEM, POLICY, given.initial()[1], seeds=torch.tensor(given.seeds))
    assert first[0].cost == -greedy.best_objective.item()
    assert first[0].sequences == 1


def test_a_round_that_takes_too_long_is_broken_off_and_its_evaluations_count(clock):
    def passes(fraction: float) -> None:
        clock[0] += 0.3

    rounds = list(search(group(1), POLICY, Gumbeldore(4, 3), Limits(seconds=2.5), passes))
    greedy, last = rounds[0][0], rounds[-1][0]
    assert (last.best, last.sequences) == (greedy.best, 1)
    assert last.evaluations > greedy.evaluations
    assert last.seconds >= 2.5


def test_the_first_answer_is_finished_however_long_it_takes(clock):
    def passes(fraction: float) -> None:
        clock[0] += 100.0

    (found,) = list(search(group(1), POLICY, Gumbeldore(4, 3), Limits(seconds=1.0), passes))
    assert len(found[0].actions) == 6


def test_time_is_counted_per_instance(clock):
    rounds = search(group(2), POLICY, Gumbeldore(4, 3), Limits(seconds=1.0))
    next(rounds)
    clock[0] = 1.5
    assert next(rounds)[0].seconds == pytest.approx(0.75)
    clock[0] = 2.0
    assert next(rounds, None) is None


def test_it_goes_on_with_other_random_numbers_until_there_are_enough_sequences():
    rounds = list(search(group(), POLICY, Gumbeldore(4, 2), Limits(sequences=20, repeat=True)))
    assert [found.sequences for found, _ in rounds] == [4, 8, 12, 16, 20]
    rounds = list(search(group(), POLICY, WithReplacement(8), Limits(sequences=20, repeat=True)))
    assert [found.sequences for found, _ in rounds] == [8, 16, 24]


def test_without_repeats_it_ends_with_the_sampler():
    assert len(list(search(group(), POLICY, Gumbeldore(4, 2), Limits(sequences=20)))) == 2


def test_a_deterministic_sampler_is_not_repeated():
    assert len(list(search(group(), POLICY, BeamSearch(4), Limits(sequences=20, repeat=True)))) == 1


def test_it_ends_when_everything_was_found():
    given = group(cities=4)
    *_, found = search(given, POLICY, Gumbeldore(4, 2), Limits(sequences=1000, repeat=True))
    assert [each.sequences for each in found] == [math.factorial(3)] * 2


def test_progress_is_reported_within_the_first_round_and_grows(monkeypatch):
    monkeypatch.setattr(searching, "REPORTED", 0.0)
    reported: list[float] = []
    rounds = search(group(), POLICY, Gumbeldore(4, 2), Limits(), reported.append)
    next(rounds)
    assert 0 < reported[0] < reported[-1] <= 0.5
    list(rounds)
    assert reported == sorted(reported)
    assert 0.5 < reported[-1] <= 1


@pytest.mark.parametrize(
    ("limits", "message"), [({"seconds": 0}, "time_limit"), ({"sequences": 0}, "sequences"), ({"repeat": True}, "never end")]
)
def test_limits_out_of_range_are_refused(limits, message):
    with pytest.raises(SettingsError, match=message):
        Limits(**limits)


def test_a_given_solution_is_what_there_is_first_and_is_never_made_worse():
    given = group(1)
    begin = tuple(range(6, 0, -1))
    given.jobs[0] = replace(given.jobs[0], begin=begin)
    first, *_, last = search(given, POLICY, Gumbeldore(4, 2), Limits())
    assert (first[0].actions, first[0].by) == (list(begin), START)
    assert last[0].cost <= first[0].cost
