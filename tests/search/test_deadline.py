"""A deadline ends a search from within, at the next call of the policy."""

from __future__ import annotations

import pytest
import torch
from routing import awake, seeded

from gumbeldore import Adaptive, BeamSearch, Greedy, Gumbeldore, StepAndReconsider, WithReplacement
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.search import deadline as deadlines
from gumbeldore.search.deadline import Deadline

PROBLEM, CALLS = TSP(cities=9), 30
POLICY = awake(TSPPolicy(d=16, layers=1, heads=2, ff=16)).eval()
SAMPLERS = [Adaptive(effort=64), BeamSearch(4), Greedy(), Gumbeldore(4, 16), StepAndReconsider(4, 2), WithReplacement(8)]


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(deadlines, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_every_sampler_ends_at_the_deadline_with_what_it_had_yielded(sampler, clock):
    state, seeds = PROBLEM.generate(2, generator=seeded(1)), torch.arange(2)
    whole = list(sampler.stream(PROBLEM, POLICY, state, seeds))

    def one_call(rows: int) -> None:
        clock[0] += 1.0

    for calls in (5, CALLS):
        clock[0], deadline = 0.0, Deadline(float(calls), one_call)
        part = list(sampler.stream(PROBLEM, POLICY, state, seeds, deadline))
        assert deadline.calls <= calls
        assert len(part) <= len(whole)
        for mine, theirs in zip(part, whole, strict=False):
            assert torch.equal(mine.best_objective, theirs.best_objective)


@pytest.mark.parametrize(
    "sampler",
    [Gumbeldore(4, 3), BeamSearch(3, augmentations=4), Adaptive(effort=64)],
    ids=lambda sampler: type(sampler).__name__,
)
def test_a_deadline_that_is_far_away_changes_nothing_and_counts_the_rows(sampler):
    state, seeds = PROBLEM.generate(2, generator=seeded(1)), torch.arange(2)
    deadline = Deadline()
    *_, found = sampler.stream(PROBLEM, POLICY, state, seeds, deadline)
    *_, free = sampler.stream(PROBLEM, POLICY, state, seeds)
    assert torch.equal(found.actions, free.actions)
    assert deadline.rows == int(free.diagnostics.evaluations.sum())


def test_it_can_be_moved_while_the_search_goes_on(clock):
    deadline = Deadline()
    stream = Gumbeldore(4, 16).stream(PROBLEM, POLICY, PROBLEM.generate(1, generator=seeded(1)), torch.tensor([0]), deadline)
    next(stream)
    clock[0], deadline.at = 2.0, 1.0
    assert next(stream, None) is None
