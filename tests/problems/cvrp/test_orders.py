"""Which subtour comes next in training examples."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from routing import random_actions, seeded
from scipy.stats import chisquare

from gumbeldore.errors import SettingsError
from gumbeldore.problem import replay
from gumbeldore.problems import CVRP, CVRPState

ACTIONS = torch.tensor([[1, 2, 5, 6, 9, 10]])
"""Subtours 0 1 | 2 3 | 4 5."""


def in_line(rows: int = 1) -> CVRPState:
    """The depot at the left, the customers at distances 1, 2, 6, 3, 4, 5 from it."""
    nodes = torch.tensor([[0.0, 1, 2, 6, 3, 4, 5]])[..., None] * torch.tensor([0.1, 0.0])
    state = CVRP(6, 9).instances(nodes, torch.tensor([[0, 2, 3, 4, 5, 3, 4]]), 9)
    return state.rows(torch.zeros(rows, dtype=torch.long))


def test_examples_of_both_orders_are_solutions_of_the_same_length() -> None:
    generator = seeded(3)
    for order in ("fullest", "given"):
        problem = CVRP(12, (12, 30), order=order)
        state = problem.generate(40, generator=generator)
        actions = random_actions(problem, state, generator)
        for examples in (
            problem.examples(state, actions, generator=generator),
            problem.examples_after(state, actions, torch.arange(40) % 11, generator=generator),
        ):
            assert bool(problem.mask(examples.state).gather(1, examples.action[:, None]).all())


def test_a_solution_may_be_learnt_as_it_is_given() -> None:
    """0 1 | 2 3 | 4 5: from step to step, and in stretches that end at a return."""
    given = CVRP(6, 9, order="given")
    found = [
        int(given.examples_after(in_line(), ACTIONS, torch.tensor([steps]), generator=seeded(0)).action) for steps in range(6)
    ]
    assert found == ACTIONS[0].tolist()
    seen = set()
    for seed in range(60):
        examples = given.examples(in_line(8), ACTIONS.expand(8, -1), generator=seeded(seed))
        seen |= set(zip(examples.state.current.tolist(), examples.action.tolist(), strict=True))
    assert seen == {(0, 1), (1, 2), (2, 5), (0, 5), (3, 6), (4, 9)}


def test_the_order_does_not_change_what_is_generated_or_solved() -> None:
    one, other = CVRP(9, 20), CVRP(9, 20, order="given")
    first, second = one.generate(5, generator=seeded(0)), other.generate(5, generator=seeded(0))
    actions = random_actions(one, first, seeded(1))
    ends = [replay(problem, state, actions, torch.full((5,), 9)) for problem, state in ((one, first), (other, second))]
    assert torch.equal(one.objective(ends[0]), other.objective(ends[1]))


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(SettingsError, match="`order` must be one of fullest, given, got 'nearest'"):
        CVRP(order="nearest")


def test_capacities_of_several_ranges_are_equally_likely_by_range() -> None:
    found = Counter(CVRP(1, (30, 31, 40)).generate(12_000, generator=seeded(0)).capacity.tolist())
    assert set(found) == set(range(30, 41))
    expected = [3000, 3600] + [600] * 9  # 31 is in both ranges
    assert chisquare([found[capacity] for capacity in range(30, 41)], expected).pvalue > 1e-4
    with pytest.raises(SettingsError, match=r"with low <= high, got \(30, 60, 50\)"):
        CVRP(capacity=(30, 60, 50))
    with pytest.raises(SettingsError, match="got none"):
        CVRP(capacity=())
