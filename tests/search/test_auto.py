"""The automatic nucleus and step: what they compute, and that nothing breaks at the edges."""

from __future__ import annotations

import pytest
import torch
from answers import generator
from toys import ManyFacedTree, TablePolicy, TreeProblem, check_leaves, flat_tree, leaf_counts, random_trees

from gumbeldore.errors import SettingsError
from gumbeldore.search import gumbel
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.auto import DEPARTURES, GRID, AutoNucleus
from gumbeldore.search.samplers import Greedy, Gumbeldore, StochasticBeamSearch
from gumbeldore.search.stepping import StepAndReconsider

AUTO = [
    Gumbeldore(4, 3, sigma="auto", nucleus="auto"),
    StepAndReconsider(4, 1, sigma="auto", nucleus="auto"),
    Adaptive(1),
    Adaptive(7),
    Adaptive(60),
]


def test_departures_are_those_of_the_truncated_distribution() -> None:
    log_prob = gumbel.normalise(torch.randn(5, 3, 7, generator=generator(0), dtype=torch.float64) * 2)
    log_prob[0, 0, 3:] = -torch.inf
    log_prob = gumbel.normalise(log_prob)
    measured = gumbel.departures(log_prob, torch.tensor(GRID, dtype=torch.float64))
    for index, p in enumerate(GRID):
        truncated = gumbel.nucleus(log_prob, max(p, 1e-9)) if p < 1 else log_prob
        torch.testing.assert_close(measured[..., index], 1 - truncated.exp().amax(-1))


def test_a_nucleus_may_differ_between_rows() -> None:
    log_prob = gumbel.normalise(torch.randn(4, 2, 6, generator=generator(1), dtype=torch.float64))
    p = torch.tensor([0.3, 0.7, 1.0, 0.9], dtype=torch.float64)
    together = gumbel.nucleus(log_prob, p[:, None])
    for row in range(4):
        torch.testing.assert_close(together[row], gumbel.nucleus(log_prob[row], p[row].item()))


def test_the_nucleus_makes_sequences_depart_as_often_as_wanted() -> None:
    nucleus = AutoNucleus.start(3)
    levels = [gumbel.normalise(torch.randn(3, 2, 9, generator=generator(s), dtype=torch.float64) * 1.5) for s in range(12)]
    for log_prob in levels:
        nucleus(log_prob, torch.ones(3, 2, dtype=torch.bool))
    nucleus.wanted = torch.full((3,), 4.0, dtype=torch.float64)
    p = nucleus.p
    assert ((p > 0) & (p < 1)).all()
    around = torch.stack([gumbel.departures(x, torch.tensor([0.0, 0.999])).mean(1) for x in levels]).sum(0)
    assert ((around[:, 0] <= 4) & (around[:, 1] >= 4)).all()
    nucleus.wanted = torch.full((3,), 1e9, dtype=torch.float64)
    assert (nucleus.p == 1).all()


def test_a_sure_policy_is_not_truncated() -> None:
    nucleus = AutoNucleus.start(1)
    sure = gumbel.normalise(torch.tensor([[[20.0, 0.0, 0.0]]], dtype=torch.float64))
    nucleus(sure, torch.ones(1, 1, dtype=torch.bool))
    nucleus.wanted = torch.full((1,), DEPARTURES, dtype=torch.float64)
    assert nucleus.p.item() == 1


@pytest.mark.parametrize("sampler", AUTO, ids=lambda sampler: type(sampler).__name__)
@pytest.mark.parametrize(
    "case", ["constant objective", "a single action", "a single sequence", "random trees", "huge objectives"]
)
def test_edges_give_finite_numbers_and_no_sequence_twice(sampler, case: str) -> None:
    trees = {
        "constant objective": lambda: flat_tree([0.2, 0.3, 0.5], [1.0, 1.0, 1.0], 3),
        "a single action": lambda: flat_tree([1.0], [2.0], 3),
        "a single sequence": lambda: random_trees(3, 2, 3, generator=generator(2), forced=1.0),
        "random trees": lambda: random_trees(8, 3, 3, generator=generator(3)),
        "huge objectives": lambda: flat_tree([0.2, 0.3, 0.5], [1e12, -1e12, 1e12 + 1], 3),
    }
    state = trees[case]()
    found = sampler(TreeProblem(), TablePolicy(), state, generator=generator(4))
    nodes = check_leaves(state, found.actions, found.filled)
    for row in range(state.row_count):
        taken = nodes[row][found.filled[row]].tolist()
        assert len(taken) == len(set(taken)) >= 1
        assert found.objective[row][found.filled[row]].isfinite().all()
        assert found.log_prob[row][found.filled[row]].isfinite().all()


def test_everything_is_found_if_rounds_suffice() -> None:
    """Departures grow while nothing better is found, so that the nucleus does not hide sequences for ever."""
    state = random_trees(5, 2, 3, generator=generator(5), keep=1.0, forced=0.0, leaf=0.0)
    found = Gumbeldore(4, 30, sigma="auto", nucleus="auto")(TreeProblem(), TablePolicy(), state, generator=generator(6))
    assert found.filled.sum(1).tolist() == leaf_counts(state)[:, 0].tolist()


def test_settings_are_checked() -> None:
    for wrong in ({"sigma": float("inf")}, {"sigma": -1.0}, {"nucleus": (0.5, 2.0)}, {"augmentations": 0}):
        with pytest.raises(SettingsError, match=f"`{next(iter(wrong))}`"):
            Gumbeldore(4, 2, **wrong)
    with pytest.raises(SettingsError, match="no schedule"):
        _ = StochasticBeamSearch(4, 2, nucleus="auto").nucleus_schedule
    with pytest.raises(SettingsError, match="`evaluations`"):
        Adaptive(5, evaluations=0)


def test_a_limit_of_evaluations_ends_after_the_round_that_reaches_it() -> None:
    state = random_trees(10, 4, 4, generator=generator(7), leaf=0.0, forced=0.0, keep=1.0)
    limited = Adaptive(200, evaluations=20)(TreeProblem(), TablePolicy(), state, generator=generator(8))
    free = Adaptive(200)(TreeProblem(), TablePolicy(), state, generator=generator(8))
    assert (limited.diagnostics.evaluations >= 20).all()
    assert (limited.diagnostics.evaluations < free.diagnostics.evaluations).all()
    assert (limited.filled.sum(1) < free.filled.sum(1)).all()


def test_the_first_answer_is_the_greedy_one() -> None:
    """Also on a problem with augmentations: it comes soon, whatever the budget."""
    state = random_trees(10, 3, 4, generator=generator(9), leaf=0.0)
    for problem in (TreeProblem(), ManyFacedTree()):
        first = next(Adaptive(500).stream(problem, TablePolicy(), state, torch.arange(10)))
        greedy = Greedy()(problem, TablePolicy(), state, seeds=torch.arange(10))
        assert first.actions.shape[1] == 1
        assert torch.equal(first.best_objective, greedy.best_objective)
        assert torch.equal(first.diagnostics.evaluations, greedy.diagnostics.evaluations)


def test_more_evaluations_ask_for_more_augmentations_and_longer_solutions_for_fewer() -> None:
    counts = [Adaptive(evaluations=budget).augmentations_for(50) for budget in (10, 200, 1000, 100_000)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == 64
    assert Adaptive(evaluations=1000).augmentations_for(500) < Adaptive(evaluations=1000).augmentations_for(50)


def test_evaluations_alone_are_used_up_but_for_one_round_unless_sequences_cost_next_to_nothing() -> None:
    state = random_trees(10, 4, 5, generator=generator(10), leaf=0.0, forced=0.0, keep=1.0)
    found = Adaptive(evaluations=100)(TreeProblem(), TablePolicy(), state, generator=generator(11))
    spent, sequences = found.diagnostics.evaluations, found.filled.sum(1)
    assert (spent <= 100 + 5 * 32).all()
    assert ((spent >= 100) | (sequences >= 8 * 100 // 5)).all()
    assert (spent >= 100).any()


def test_a_variant_with_nothing_left_does_not_end_the_search() -> None:
    state = random_trees(5, 2, 3, generator=generator(12), keep=1.0, forced=0.0, leaf=0.0)
    found = Adaptive(400)(ManyFacedTree(), TablePolicy(), state, generator=generator(13))
    assert (found.filled.sum(1) > leaf_counts(state)[:, 0]).all()
    assert (found.diagnostics.remaining_mass < 1e-9).all()


def test_effort_is_measured_in_greedy_solutions() -> None:
    state = random_trees(10, 4, 4, generator=generator(14), leaf=0.0, forced=0.0, keep=1.0)
    made = [
        Adaptive(effort=effort)(TreeProblem(), TablePolicy(), state, generator=generator(15)).diagnostics.evaluations
        for effort in (1, 5, 1000)
    ]
    assert (made[0] < made[1]).all()
    assert (made[1] < made[2]).all()
    assert (made[1] >= 5 * 4).all()
    assert (
        Adaptive(effort=20).augmentations_for(50)
        == Adaptive(evaluations=1000).augmentations_for(50)
        == Adaptive(effort=20).augmentations_for(100)
    )
    with pytest.raises(SettingsError, match="`effort` must be at least 1"):
        Adaptive(effort=0)
