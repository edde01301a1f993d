"""What a search says that it has cost is what the policy has seen, and no round begins when its limit is used up."""

from __future__ import annotations

import pytest
import torch
from answers import generator
from exact import ExactPolicy

from gumbeldore.problems import CVRP, JSSP, TSP, Gomoku
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.following import Following
from gumbeldore.search.memory import MemoryBudget
from gumbeldore.search.phases import Exploration, Schedule, Work
from gumbeldore.search.reconstruction import Ledger
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.stepping import StepAndReconsider
from gumbeldore.search.task import Task

PROBLEMS = {"tsp": TSP(8), "cvrp": CVRP(6, 12), "jssp": JSSP(4, 3), "gomoku": Gomoku(5)}
SAMPLERS = [
    Greedy(),
    BeamSearch(4, augmentations=3),
    StochasticBeamSearch(4, 3),
    Gumbeldore(4, 3, augmentations=4),
    TheoryGumbeldore(4, 2, memory=1),
    WithReplacement(6, augmentations=2),
    StepAndReconsider(4, 3, augmentations=3),
    Adaptive(24),
    Adaptive(effort=12),
    Adaptive(evaluations=50, memory=1),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
@pytest.mark.parametrize("name", PROBLEMS)
def test_counted_evaluations_are_the_rows_that_the_policy_saw(name: str, sampler) -> None:
    problem = PROBLEMS[name]
    policy = ExactPolicy(problem)
    found = sampler(problem, policy, problem.generate(4, generator=generator(2)), seeds=torch.arange(4))
    assert sum(policy.rows) == int(found.diagnostics.evaluations.sum())
    assert (found.diagnostics.evaluations_repeated <= found.diagnostics.evaluations).all()


@pytest.mark.parametrize("limit", [9, 144])
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_round_begins_when_the_evaluations_are_used_up(name: str, limit: int) -> None:
    problem = PROBLEMS[name]
    state = problem.generate(3, generator=generator(4))
    for row in range(3):
        stream = Adaptive(evaluations=limit).stream(
            problem, ExactPolicy(problem), state.rows(slice(row, row + 1)), torch.tensor([row])
        )
        spent = [int(found.diagnostics.evaluations) for found in stream]
        before_the_last = [made for made in spent if made < spent[-1]]
        assert all(made < limit for made in before_the_last)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_round_begins_when_the_sequences_are_used_up(name: str) -> None:
    problem, widest = PROBLEMS[name], 16
    found = Adaptive(40)(problem, ExactPolicy(problem), problem.generate(4, generator=generator(4)), seeds=torch.arange(4))
    assert (found.filled.sum(1) < 40 + widest).all()
    for row in range(4):
        stream = Adaptive(40).stream(
            problem,
            ExactPolicy(problem),
            problem.generate(4, generator=generator(4)).rows(slice(row, row + 1)),
            torch.tensor([row]),
        )
        counts = [int(part.filled.sum()) for part in stream]
        assert all(count < 40 for count in counts if count < counts[-1])


def test_a_search_stops_when_reconstruction_has_used_up_what_both_may_spend() -> None:
    problem = TSP(6)
    state = problem.generate(3, generator=generator(5))
    task = Task(problem, ExactPolicy(problem), state, torch.arange(3))
    search = MemoryBudget(16, 8, 1 << 24).search(task, transpositions=True)
    spent = Ledger.empty(state.instance)
    work = Work(problem.horizon(state), 8, 100)
    total = Work(problem.horizon(state), 20, 120)
    on = Exploration(Following(search, task.seeds, 1.0, sigma=0.0), 1, Schedule(), work, total, spent)
    assert on.active().all()
    spent.evaluations = torch.tensor([119, 120, 0])
    spent.sequences = torch.tensor([0, 0, 20])
    assert on.active().tolist() == [True, False, False]
    with torch.inference_mode():
        on.following.beam(2, 1)  # two sequences, and the evaluations for them
    spent.sequences = torch.tensor([17, 18, 0])
    spent.evaluations = torch.tensor([0, 0, 120 - int(search.evaluator.made[2])])
    assert on.active().tolist() == [True, False, False]
