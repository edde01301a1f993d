"""An answer belongs to an instance and its seed: whatever else is in the batch, and however much memory there is."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest
import torch
from answers import generator
from exact import ExactPolicy

from gumbeldore.problems import CVRP, JSSP, TSP, Gomoku
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.memory import beam_bytes
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.stepping import StepAndReconsider
from gumbeldore.solutions import Solutions

PROBLEMS = {"tsp": TSP(7), "tsp, nearest": TSP(8, nearest=3), "cvrp": CVRP(6, 12), "jssp": JSSP(4, 3), "gomoku": Gomoku(5)}
SAMPLERS = [
    Greedy(),
    BeamSearch(3),
    BeamSearch(2, augmentations=4),
    StochasticBeamSearch(4, 3, nucleus=(0.8, 1.0)),
    Gumbeldore(4, 3, augmentations=5),
    Gumbeldore(3, 3, sigma="auto", nucleus="auto", augmentations=3),
    TheoryGumbeldore(4, 2),
    WithReplacement(6, nucleus=0.9, augmentations=3),
    StepAndReconsider(3, 3),
    StepAndReconsider(3, 2, nucleus="auto", sigma="auto", augmentations=3),
    Adaptive(24),
    Adaptive(evaluations=50),
    Adaptive(effort=12),
]
INSTANCES, TRIALS = 3, 2


def name_of(sampler: Sampler) -> str:
    changed = [f"{f.name}={getattr(sampler, f.name)}" for f in fields(sampler) if getattr(sampler, f.name) != f.default]  # type: ignore[arg-type]
    return f"{type(sampler).__name__}({', '.join(changed)})"


def answers(solutions: Solutions) -> list[tuple[list[tuple[tuple[int, ...], float]], int]]:
    """Of each instance: its sequences and their objectives in order, and the states that were evaluated for them."""
    numbers = solutions.diagnostics
    needed = (numbers.evaluations - numbers.evaluations_repeated).tolist()
    found = []
    for actions, objective, filled in zip(solutions.actions, solutions.objective, solutions.filled, strict=True):
        sequences = [tuple(a for a in row if a >= 0) for row in actions[filled].tolist()]
        found.append(list(zip(sequences, objective[filled].tolist(), strict=True)))
    return list(zip(found, needed, strict=True))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=name_of)
@pytest.mark.parametrize("name", PROBLEMS)
def test_an_answer_does_not_depend_on_the_batch_nor_on_memory(name: str, sampler: Sampler) -> None:
    problem, draw = PROBLEMS[name], random.Random(f"{name} {name_of(sampler)}")
    state, seeds = problem.generate(INSTANCES, generator=generator(3)), torch.arange(5, 5 + INSTANCES)
    policy = ExactPolicy(problem)
    alone = [
        answers(sampler(problem, policy, state.rows(slice(i, i + 1)), seeds=seeds[i : i + 1]))[0] for i in range(INSTANCES)
    ]
    for _ in range(TRIALS):
        rows = draw.choices(range(INSTANCES), k=draw.randint(2, 4))
        small = replace(sampler, memory=int(2 ** draw.uniform(8, 24)))  # type: ignore[type-var]
        policy = ExactPolicy(problem, row_bytes_each=draw.choice((1, 1 << 10, 1 << 20)))
        together = answers(small(problem, policy, state.rows(torch.tensor(rows)), seeds=seeds[rows]))
        for place, row in enumerate(rows):
            assert together[place] == alone[row], (rows, small.memory)


def assert_same_alone(problem, sampler: Adaptive, policy: ExactPolicy, state, seeds: torch.Tensor, rows: list[int]) -> None:
    together = answers(sampler(problem, policy, state, seeds=seeds))
    for row in rows:
        alone = sampler(problem, policy, state.rows(slice(row, row + 1)).compact(), seeds=seeds[row : row + 1])
        assert answers(alone)[0] == together[row], row


@pytest.mark.parametrize(("jobs", "machines", "scale", "together"), [(4, 3, 1.0, 6), (10, 6, 4.0, 3)])
def test_a_job_shop_gets_the_same_answer_alone_as_among_others(jobs: int, machines: int, scale: float, together: int) -> None:
    """Of 24 once two had another makespan alone, -706 for -721, because solutions of instances without news were sorted again.

    The first of the small ones takes other evaluations if they are.
    """
    problem, sampler = JSSP(jobs, machines), Adaptive(effort=256)
    state = problem.generate(24, generator=generator(0)).rows(slice(0, together)).compact()
    assert_same_alone(problem, sampler, ExactPolicy(problem, scale), state, torch.arange(together), [0])


ROUTES = CVRP(7, 12)


def borders() -> list[int]:
    """Memory at which an instance alone, and five together, begin to fit: with what they work on, and without it."""
    problem, sampler = ROUTES, Adaptive(evaluations=60)
    state = problem.generate(1, generator=generator(1))
    horizon, actions = problem.horizon(state), problem.mask(state).shape[1]
    budget = sampler.budget(horizon)
    whole, work = budget.instance_bytes(actions, horizon), beam_bytes(budget.width, actions)
    return [2 * (whole - work), 2 * whole - 2, 10 * (whole - work)]


@pytest.mark.parametrize("memory", [336346, *borders()])
def test_routes_get_the_same_answer_alone_as_among_five_whatever_fits_into_memory(memory: int) -> None:
    """Once an instance got 9 sequences in the batch and 18 alone, because evaluations that were not kept counted as work."""
    state = ROUTES.generate(5, generator=generator(1))
    sampler = Adaptive(evaluations=60, memory=memory)
    assert_same_alone(ROUTES, sampler, ExactPolicy(ROUTES), state, torch.arange(5), [0, 2, 4])
