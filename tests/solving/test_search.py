"""Anytime search: limits, head starts, repeats and what is counted."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from routing import awake, seeded

from gumbeldore import Gumbeldore, WithReplacement
from gumbeldore.errors import SettingsError
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.search.samplers import BeamSearch, Greedy
from gumbeldore.solving import search as searching
from gumbeldore.solving.search import KEPT, Limits, Piece, search

PROBLEM = TSP(cities=7)
POLICY = awake(TSPPolicy(d=16, layers=1, heads=2, ff=16)).eval()


def piece(count: int = 2, cities: int = 7) -> Piece:
    state = TSP(cities).generate(count, generator=seeded(1))
    return Piece(list(range(count)), state, torch.arange(5, 5 + count))


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to go on; whatever happens is reported."""
    now = [0.0]
    monkeypatch.setattr(searching, "REPORTED", 0.0)
    monkeypatch.setattr(searching, "monotonic", lambda: now[0])
    return now


def test_without_limits_it_is_the_samplers_own_answer():
    sampler, given = Gumbeldore(4, 3), piece()
    rounds = list(search(PROBLEM, POLICY, sampler, given, Limits()))
    whole = sampler(PROBLEM, POLICY, given.state, seeds=given.seeds)
    assert len(rounds) == 3
    for row, found in enumerate(rounds[-1]):
        assert found.objective == whole.best_objective[row].item()
        assert found.actions == [a for a in whole.best_actions[row].tolist() if a >= 0]
        assert found.evaluations == whole.diagnostics.evaluations[row].item()
        assert found.sequences == 12


def test_the_best_never_gets_worse_and_is_a_list_of_different_sequences():
    for earlier, later in pairwise(search(PROBLEM, POLICY, Gumbeldore(8, 4), piece(), Limits())):
        assert all(new.objective >= old.objective for old, new in zip(earlier, later, strict=True))
        for found in later:
            assert len(found.best) == min(KEPT, found.sequences)
            assert len({tuple(actions) for actions, _ in found.best}) == len(found.best)
            assert [value for _, value in found.best] == sorted((value for _, value in found.best), reverse=True)


@pytest.mark.parametrize("limits", [Limits(seconds=1.0), Limits(greedy=True)])
def test_with_a_time_limit_or_if_asked_for_a_greedy_answer_comes_first(limits, clock):
    given = piece(1)
    first = next(search(PROBLEM, POLICY, Gumbeldore(4, 3), given, limits))
    assert first[0].objective == Greedy()(PROBLEM, POLICY, given.state, seeds=given.seeds).best_objective.item()
    assert first[0].sequences == 1


def test_a_round_that_takes_too_long_is_broken_off_and_its_evaluations_count(clock):
    def passes(fraction: float) -> None:
        clock[0] += 0.3

    rounds = list(search(PROBLEM, POLICY, Gumbeldore(4, 3), piece(1), Limits(seconds=2.5), passes))
    greedy, last = rounds[0][0], rounds[-1][0]
    assert (last.best, last.sequences) == (greedy.best, 1)
    assert last.evaluations > greedy.evaluations
    assert last.seconds >= 2.5
    assert not POLICY._forward_hooks


def test_the_first_answer_is_finished_however_long_it_takes(clock):
    def passes(fraction: float) -> None:
        clock[0] += 100.0

    (found,) = list(search(PROBLEM, POLICY, Gumbeldore(4, 3), piece(1), Limits(seconds=1.0), passes))
    assert len(found[0].actions) == 6


def test_time_is_counted_per_instance(clock):
    rounds = search(PROBLEM, POLICY, Gumbeldore(4, 3), piece(2), Limits(seconds=1.0))
    next(rounds)
    clock[0] = 1.5
    assert next(rounds)[0].seconds == pytest.approx(0.75)
    clock[0] = 2.0
    assert next(rounds, None) is None


def test_it_goes_on_with_other_random_numbers_until_there_are_enough_sequences():
    rounds = list(search(PROBLEM, POLICY, Gumbeldore(4, 2), piece(), Limits(sequences=20, repeat=True)))
    assert [found.sequences for found, _ in rounds] == [4, 8, 12, 16, 20]
    rounds = list(search(PROBLEM, POLICY, WithReplacement(8), piece(), Limits(sequences=20, repeat=True)))
    assert [found.sequences for found, _ in rounds] == [8, 16, 24]


def test_without_repeats_it_ends_with_the_sampler():
    assert len(list(search(PROBLEM, POLICY, Gumbeldore(4, 2), piece(), Limits(sequences=20)))) == 2


def test_a_deterministic_sampler_is_not_repeated():
    assert len(list(search(PROBLEM, POLICY, BeamSearch(4), piece(), Limits(sequences=20, repeat=True)))) == 1


def test_it_ends_when_everything_was_found():
    given = piece(cities=4)
    *_, found = search(PROBLEM, POLICY, Gumbeldore(4, 2), given, Limits(sequences=1000, repeat=True))
    assert [each.sequences for each in found] == [math.factorial(3)] * 2


def test_progress_is_reported_within_the_first_round_and_grows(monkeypatch):
    monkeypatch.setattr(searching, "REPORTED", 0.0)
    reported: list[float] = []
    rounds = search(PROBLEM, POLICY, Gumbeldore(4, 2), piece(), Limits(), reported.append)
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
