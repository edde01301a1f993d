"""How an adaptive search splits its work, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from answers import generator
from exact import ExactPolicy

from gumbeldore.problems import TSP
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.following import Following
from gumbeldore.search.memory import MemoryBudget
from gumbeldore.search.phases import AugmentationsPhase, Exploration, ReconstructionPhase, Schedule, SteppingPhase, Work
from gumbeldore.search.reconstruction import Ledger, Reconstruction
from gumbeldore.search.samplers import Greedy
from gumbeldore.search.task import Task

NONE = math.inf


def test_work_is_measured_in_greedy_solutions_by_whatever_is_used_up_first() -> None:
    assert Work(10, 50, NONE).solutions == 20
    assert Work(10, None, 300.0).solutions == 30
    assert Work(10, 50, 300.0).solutions == 20
    assert Work(0, None, 5.0).solutions == 5


@pytest.mark.parametrize(
    ("sampler", "share", "work"),
    [
        (Adaptive(), 1.0, Work(10, 128, NONE)),
        (Adaptive(40), 0.5, Work(10, 20, NONE)),
        (Adaptive(effort=9), 1.0, Work(10, None, 90)),
        (Adaptive(effort=9), 0.4, Work(10, None, 40)),
        (Adaptive(evaluations=70, effort=8), 1.0, Work(10, None, 70)),
        (Adaptive(evaluations=90, effort=8), 1.0, Work(10, None, 80)),
        (Adaptive(evaluations=1), 0.1, Work(10, None, 1)),
        (Adaptive(3, 200), 0.5, Work(10, 2, 100)),
    ],
)
def test_limits_of_a_sampler_are_work(sampler: Adaptive, share: float, work: Work) -> None:
    assert sampler.work(10, share) == work


def test_three_quarters_of_the_work_pay_for_augmentations() -> None:
    phase = AugmentationsPhase()
    assert [phase.count(Work(10, None, 10.0 * n)) for n in (1, 2, 29, 124, 1000)] == [1, 1, 15, 64, 64]


def test_a_round_is_as_wide_as_greedy_solutions_could_be_made() -> None:
    phase = SteppingPhase()
    assert [phase.width(Work(10, None, 10.0 * n), 99) for n in (5, 8, 20, 32, 100)] == [8, 8, 20, 32, 32]
    assert phase.width(Work(10, None, 200.0), 6) == 6


def test_sequences_suffice_to_use_up_the_evaluations() -> None:
    assert Schedule().most(Work(10, None, 300.0)) == 32 + 8 * 30
    assert Schedule().most(Work(10, 7, 300.0)) == 7


def test_reconstruction_gets_what_the_search_leaves() -> None:
    phase = ReconstructionPhase()
    assert [phase.chains(Work(10, None, 240.0 * n)) for n in (0.5, 1, 3, 16, 20)] == [1, 1, 3, 16, 16]
    assert [phase.explored(n) for n in (1, 16, 100, 1e9)] == [0.8, 0.5, 0.2, 0.15]
    spent = torch.tensor([10.0, 12.0, 20.0, 40.0])
    assert phase.due(spent).tolist() == pytest.approx([0, 36, 100, 40 / 0.15])


def test_reconstruction_ends_with_the_limit_and_with_what_can_be_found() -> None:
    problem = TSP(8)
    state, phase = problem.generate(2, generator=generator(1)), ReconstructionPhase()
    task = Task(problem, ExactPolicy(problem), state, torch.arange(2))
    greedy = Greedy()(problem, task.policy, state, seeds=task.seeds)
    for work, most in ((Work(7, None, 60.0), 1000), (Work(7, 12, NONE), 1000), (Work(7, None, 1e9), 5)):
        building = Reconstruction(task, 1, 1 << 28, greedy)
        passes = [
            (building.found.diagnostics.evaluations.tolist(), (1 + building.spent.sequences).tolist())
            for _ in phase.rounds(building, work, most, alone=True)
        ]
        limit = work.sequences or phase.repeats * most
        for index, (made, drawn) in enumerate(passes):
            over = [m >= work.evaluations or d >= limit for m, d in zip(made, drawn, strict=True)]
            assert all(over) == (index == len(passes) - 1)
        assert len(passes) > 1
    building = Reconstruction(task, 1, 1 << 28, greedy)
    assert list(phase.rounds(building, Work(7, None, 1e9), 1000)) == []  # nothing is due as yet


def test_whole_sequences_must_be_affordable() -> None:
    problem = TSP(6)
    task = Task(problem, ExactPolicy(problem), problem.generate(2, generator=generator(5)), torch.arange(2))
    search = MemoryBudget(16, 8, 1 << 24).search(task, transpositions=True)
    for evaluations, affordable in ((16.0, True), (15.9, False)):  # 8 sequences of 5 actions, 0.4 of which are evaluated
        work, spent = Work(5, None, evaluations), Ledger.empty(task.state.instance)
        on = Exploration(Following(search, task.seeds, 1.0, sigma=0.0), 1, Schedule(), work, work, spent)
        assert on.affords(8).tolist() == [affordable] * 2
