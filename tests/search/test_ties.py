"""Equal scores: which candidate a search keeps is decided by the instance alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from answers import differences, generator, instance_of
from toys import TablePolicy, TreeProblem, flat_tree

from gumbeldore import BeamSearch, Greedy
from gumbeldore.policies import GomokuPolicy
from gumbeldore.problems import Gomoku
from gumbeldore.search.scores import highest

OPENINGS = 8


@pytest.fixture(scope="module")
def game():
    """An untrained policy likes all moves equally well, and games differ in length."""
    problem, policy = Gomoku(5), GomokuPolicy(5, channels=4, blocks=1, head_channels=2, hidden=4)
    return problem, policy, problem.generate(OPENINGS, generator=generator())


@pytest.mark.parametrize("sampler", [BeamSearch(4), BeamSearch(16), Greedy()])
def test_tied_games_of_different_length_do_not_depend_on_batch_and_memory(game, sampler):
    problem, policy, state = game
    seeds = torch.arange(OPENINGS)
    whole = sampler(problem, policy, state, seeds=seeds)
    lengths = (whole.actions >= 0).sum(2)
    assert lengths.unique().numel() > 1
    assert (whole.log_prob.diff(dim=1) == 0).any() or sampler.beam_width == 1
    little = replace(sampler, memory=1)(problem, policy, state, seeds=seeds)
    assert differences(whole, little) == []
    assert torch.equal(whole.best_actions, little.best_actions)
    for i in range(OPENINGS):
        alone = sampler(problem, policy, state.rows(slice(i, i + 1)).compact(), seeds=seeds[i : i + 1])
        assert differences(instance_of(whole, i), instance_of(alone, 0)) == []


@pytest.mark.parametrize("count", [1, 3, 7])
def test_of_equal_candidates_the_first_are_taken(count):
    scores = torch.randint(0, 4, (200, 7), generator=generator()).double()
    scores[scores == 0] = -torch.inf
    best, choice = highest(scores, count)
    for row, values in enumerate(scores.tolist()):
        order = sorted(range(7), key=lambda place: -values[place])[:count]
        assert best[row].tolist() == [values[place] for place in order]
        filled = sum(values[place] > -torch.inf for place in order)
        assert choice[row, :filled].tolist() == order[:filled]
        assert len(set(choice[row].tolist())) == count


def test_a_tie_elsewhere_in_the_batch_changes_nothing():
    scores = torch.randn(5, 40, generator=generator(), dtype=torch.float64)
    alone = highest(scores, 8)
    together = highest(torch.cat([scores, torch.zeros(1, 40, dtype=torch.float64)]), 8)
    assert all(torch.equal(a, b[:5]) for a, b in zip(alone, together, strict=True))
    assert together[1][5].tolist() == list(range(8))


def test_of_equally_good_solutions_the_first_is_the_best():
    state = flat_tree([0.02] * 50, [1.0] * 50)
    solutions = BeamSearch(50)(TreeProblem(), TablePolicy(), state, generator=generator())
    assert torch.equal(solutions.best_actions, solutions.actions[:, 0])
    assert torch.equal(solutions.top(3).actions, solutions.actions[:, :3])
