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
