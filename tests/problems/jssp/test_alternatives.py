"""Actions of the job shop that lead to the same schedule."""

from __future__ import annotations

import pytest
import torch
from routing import random_actions, seeded

from gumbeldore.problems import JSSP
from gumbeldore.problems.jssp.verify import Interval, build_schedule


def moved_to_the_front(sequence: list[int], steps: int, job: int) -> list[int]:
    """The same sequence, but this job comes next after so many steps."""
    rest = sequence[steps:]
    rest.remove(job)
    return [*sequence[:steps], job, *rest]


def intervals(state, row: int, sequence: list[int]) -> set[Interval]:
    return set(build_schedule(state.times[row].tolist(), state.machines[row].tolist(), sequence))


@pytest.mark.parametrize(("jobs", "machines"), [(2, 2), (4, 3), (3, 5), (6, 1)])
def test_alternatives_are_exactly_the_jobs_that_may_come_next_without_another_schedule(jobs, machines):
    problem = JSSP(jobs, machines)
    state = problem.generate(8, generator=seeded(jobs))
    actions = random_actions(problem, state, seeded(1))
    for steps in range(jobs * machines):
        examples = problem.examples_after(state, actions, torch.full((8,), steps), generator=seeded(0))
        assert examples.alternatives is not None
        for row in range(8):
            sequence, unfinished = actions[row].tolist(), examples.state.unfinished[row].tolist()
            known = intervals(state, row, sequence)
            same = [
                unfinished[job] and intervals(state, row, moved_to_the_front(sequence, steps, job)) == known
                for job in range(jobs)
            ]
            assert examples.alternatives[row].tolist() == same


def test_the_target_is_among_the_alternatives():
    problem = JSSP(5, 4)
    state = problem.generate(50, generator=seeded(0))
    examples = problem.examples(state, random_actions(problem, state, seeded(1)), generator=seeded(2))
    assert examples.alternatives is not None
    assert bool(examples.alternatives.gather(1, examples.action[:, None]).all())
    assert examples.alternatives.sum() > 50


def test_examples_of_shops_under_way_name_no_alternatives():
    problem = JSSP(3, 2)
    state = problem.generate(4, generator=seeded(0))
    actions = random_actions(problem, state, seeded(1))
    begun = problem.step(state, actions[:, 0])
    examples = problem.examples(begun, actions[:, 1:], generator=seeded(2))
    assert examples.alternatives is None
