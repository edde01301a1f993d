"""What a search reports: remaining mass, means, duplicates avoided, the best sequences, tries on request."""

from __future__ import annotations

import pytest
import torch
from toys import TablePolicy, Tree, TreeProblem, check_leaves, flat_tree, high_precision, paths, random_trees

from gumbeldore.search.expansion import Search
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Gumbeldore, StochasticBeamSearch
from gumbeldore.search.scores import by_probability

PROBLEM = TreeProblem()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_remaining_mass_is_what_the_returned_sequences_leave():
    state = random_trees(80, 3, 3, generator=generator(9))
    for sampler in (
        StochasticBeamSearch(3, 2),
        Gumbeldore(2, 3, sigma=2.0, nucleus=(0.6, 0.9)),
        BeamSearch(4),
        WithReplacement(5),
    ):
        solutions = sampler(PROBLEM, TablePolicy(), state, generator=generator())
        for i in range(80):
            found = set(paths(solutions.actions[i], solutions.filled[i]))
            with high_precision():
                left = sum(p for leaf, p in Tree.of(state, i).leaves() if leaf not in found)
            assert float(solutions.diagnostics.remaining_mass[i]) == pytest.approx(float(left), abs=1e-12)


def test_remaining_mass_is_exact_for_confident_policies():
    """One minus the sum would be 0 or noise here."""
    state = flat_tree([1.0, 1e-30, 1e-40], [0.0, 1.0, 2.0])
    mass = StochasticBeamSearch(1, 1)(PROBLEM, TablePolicy(), state, generator=generator()).diagnostics.remaining_mass
    assert float(mass) == pytest.approx(1e-30, rel=1e-9, abs=0)


def test_duplicates_avoided_is_what_draws_with_replacement_would_repeat():
    state = flat_tree([0.6, 0.3, 0.1], [0.0, 1.0, 2.0])
    numbers = StochasticBeamSearch(3, 1)(PROBLEM, TablePolicy(), state, generator=generator()).diagnostics
    expected = sum(3 * p - (1 - (1 - p) ** 3) for p in (0.6, 0.3, 0.1))
    assert float(numbers.duplicates_avoided) == pytest.approx(expected)


def test_a_certain_sequence_would_be_repeated_by_every_further_draw():
    state = flat_tree([1.0], [0.0])
    numbers = StochasticBeamSearch(2, 3)(PROBLEM, TablePolicy(), state, generator=generator()).diagnostics
    assert float(numbers.duplicates_avoided) == pytest.approx(0, abs=1e-12)  # a single one was drawn


def test_a_complete_round_has_an_exact_mean_without_error():
    state = flat_tree([0.6, 0.3, 0.1], [0.0, 1.0, 2.0])
    numbers = StochasticBeamSearch(5, 2)(PROBLEM, TablePolicy(), state, generator=generator()).diagnostics
    assert float(numbers.mean[0, 0]) == pytest.approx(0.5, abs=1e-14)
    assert float(numbers.standard_error[0, 0]) == 0
    assert numbers.mean[0, 1].isnan()  # nothing was left to sample


def test_a_deterministic_round_estimates_nothing_unless_it_is_complete():
    state = flat_tree([0.6, 0.3, 0.1], [0.0, 1.0, 2.0])
    few, all_ = (BeamSearch(width)(PROBLEM, TablePolicy(), state, generator=generator()).diagnostics for width in (2, 3))
    assert few.mean.isnan().all()
    assert few.standard_error.isnan().all()
    assert float(all_.mean) == pytest.approx(0.5)
    mixed = StochasticBeamSearch(2, 2, first_round_deterministic=True)
    numbers = mixed(PROBLEM, TablePolicy(), state, generator=generator()).diagnostics
    assert numbers.mean[0, 0].isnan()
    assert float(numbers.mean[0, 1]) == pytest.approx(2.0)


def test_with_replacement_reports_the_plain_mean_and_its_error():
    state = random_trees(10, 3, 3, generator=generator(9))
    solutions = WithReplacement(40)(PROBLEM, TablePolicy(), state, generator=generator())
    torch.testing.assert_close(solutions.diagnostics.mean[:, 0], solutions.objective.mean(1))
    torch.testing.assert_close(solutions.diagnostics.standard_error[:, 0], solutions.objective.std(1) / 40**0.5)


def test_the_best_are_found_first():
    state = random_trees(30, 3, 3, generator=generator(9))
    solutions = Gumbeldore(4, 2)(PROBLEM, TablePolicy(), state, generator=generator())
    top = solutions.top(3)
    assert torch.equal(top.objective[:, 0], solutions.best_objective)
    assert torch.equal(top.objective, solutions.objective.sort(1, descending=True).values[:, :3])
    node = check_leaves(state, top.actions, top.filled)
    value = state.value[torch.arange(30)[:, None], node]
    assert torch.equal(value[top.filled], top.objective[top.filled])
    assert torch.equal(solutions.best_actions, top.actions[:, 0])


def test_tries_come_only_on_request():
    state = random_trees(20, 3, 3, generator=generator(9))
    assert StochasticBeamSearch(2, 2)(PROBLEM, TablePolicy(), state, generator=generator()).tries == ()
    kept = StochasticBeamSearch(2, 2, keep_trie=True, memory=20_000)
    solutions = kept(PROBLEM, TablePolicy(), state, generator=generator())
    assert len(solutions.tries) == len(kept.chunks(PROBLEM, state)) > 1
    mass = torch.cat([trie.left[0, :, 0].exp() for trie in solutions.tries])
    torch.testing.assert_close(mass, solutions.diagnostics.remaining_mass)


def test_a_plain_beam_search_round_scores_by_probability():
    state = random_trees(20, 3, 3, generator=generator(9))
    result = Search(PROBLEM, TablePolicy(), state, 3).round(3, by_probability)
    torch.testing.assert_close(result.score[result.filled], result.log_prob[result.filled])
