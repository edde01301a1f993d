"""Flexible job shops: the rules, the generators, and the classical job shop as the special case."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flexible_shops import random_actions

from gumbeldore import check_problem
from gumbeldore.errors import SettingsError
from gumbeldore.problem import replay
from gumbeldore.problems import FJSP, JSSP
from gumbeldore.problems.fjsp.active import active_pairs
from gumbeldore.problems.fjsp.distributions import spread
from gumbeldore.problems.fjsp.instances import STANDARD, FJSPGenerator
from gumbeldore.problems.fjsp.problem import assignments
from gumbeldore.problems.fjsp.verify import verify_fjsp

PINNED = {"sd1-10x5": [[17, 18, -1, -1, 18], [-1, 12, -1, -1, -1]], "sd2-15x10": [1, 99, 95, 54, 36, 43, 98, 66, 25, 87]}
HAND = torch.tensor([[[[2, 3], [-1, 4]], [[5, 1], [-1, -1]]]])  # job 0: two operations, job 1: one


def generated(problem, count=20, seed=0):
    return problem.generate(count, generator=torch.Generator().manual_seed(seed))


def classical(state):
    """The times of job shops as those of flexible ones."""
    times = torch.full((*state.times.shape, state.operations), -1)
    return times.scatter(3, state.machines[..., None], state.times[..., None])


def test_operations_start_when_their_job_and_machine_are_available():
    problem, state = FJSP(), FJSP().instances(HAND)
    assert problem.mask(state).tolist() == [[True, True, True, True]]
    state = problem.step(state, torch.tensor([0]))  # job 0 on machine 0 until 2
    state = problem.step(state, torch.tensor([3]))  # job 1 on machine 1 until 1
    assert problem.mask(state).tolist() == [[False, True, False, False]]
    state = problem.step(state, torch.tensor([1]))
    assert bool(problem.done(state))
    assert problem.objective(state).item() == -6
    assert problem.step(state, torch.tensor([0])).available.tolist() == state.available.tolist()


@pytest.mark.parametrize("problem", [FJSP(3, 2), FJSP(4, 3, "sd2")])
def test_it_keeps_the_contract(problem):
    check_problem(problem)


def test_the_classical_job_shop_is_the_special_case():
    plain = JSSP(5, 4)
    state = generated(plain)
    flexible = FJSP().instances(classical(state))
    jobs = random_actions(plain, state, torch.Generator().manual_seed(1))
    machines = [state.machines[row][job, step].item() for row in range(20) for job, step in steps(jobs[row].tolist())]
    actions = jobs * 4 + torch.tensor(machines).view_as(jobs)
    makespan = plain.objective(replay(plain, state, jobs, torch.full((20,), 20)))
    assert torch.equal(FJSP().objective(replay(FJSP(), flexible, actions, torch.full((20,), 20))), makespan)


def steps(jobs):
    return [(job, jobs[:place].count(job)) for place, job in enumerate(jobs)]


def test_jobs_may_skip_and_revisit_machines():
    state = FJSP().instances(torch.tensor([[[[3, -1], [4, -1]], [[-1, 2], [-1, -1]]]]))
    state = replay(FJSP(), state, torch.tensor([[0, 0, 3]]), torch.tensor([3]))
    assert FJSP().objective(state).item() == -7


@pytest.mark.parametrize("problem", [FJSP(6, 4), FJSP(4, 3, "sd2")])
def test_random_solutions_are_feasible_and_worth_what_the_verifier_says(problem):
    state = generated(problem, 400)
    actions = random_actions(problem, state, torch.Generator().manual_seed(2))
    objective = problem.objective(replay(problem, state, actions, (actions >= 0).sum(1)))
    for row, sequence in enumerate(actions.tolist()):
        verdict = verify_fjsp(state.times[row].numpy(), [action for action in sequence if action >= 0])
        assert verdict.feasible, verdict.reason
        assert verdict.objective == objective[row]


def test_a_prefix_is_what_replay_gives():
    problem = FJSP(5, 4)
    state = generated(problem)
    actions = random_actions(problem, state, torch.Generator().manual_seed(3))
    cut = torch.arange(20) % (actions >= 0).sum(1)
    ours, theirs = problem.prefix(state, actions, cut), replay(problem, state, actions, cut)
    assert torch.equal(ours.scheduled, theirs.scheduled)
    assert torch.equal(ours.available, theirs.available)


def test_a_reversed_shop_has_the_same_schedules():
    problem = FJSP(5, 4)
    state = generated(problem)
    forms = problem.augmentations(state, 8, seeds=torch.arange(20))
    assert forms.count == 2
    actions = random_actions(problem, forms.state, torch.Generator().manual_seed(4))
    value = problem.objective(replay(problem, forms.state, actions, (actions >= 0).sum(1)))
    back = problem.inverse_transform(forms.state, forms.tag, actions)
    rows = torch.arange(20).repeat_interleave(2)
    assert bool((problem.objective(replay(problem, state.rows(rows), back, (back >= 0).sum(1))) >= value).all())


def test_reencoded_schedules_are_no_longer():
    problem = FJSP(5, 4)
    state = generated(problem)
    actions = random_actions(problem, state, torch.Generator().manual_seed(5))
    again = problem.reencoded(state, actions, seeds=torch.arange(20))
    before = problem.objective(replay(problem, state, actions, (actions >= 0).sum(1)))
    after = problem.objective(replay(problem, again.state, again.actions, (again.actions >= 0).sum(1)))
    assert bool((after >= before).all())
    assert set(again.tag.tolist()) == {0, 1}


def best(problem, state, allowed):
    """The best objective that any sequence of allowed actions reaches."""
    if bool(problem.done(state)):
        return problem.objective(state).item()
    actions = allowed(state).flatten(1).nonzero()[:, 1]
    return max(best(problem, problem.step(state, action[None]), allowed) for action in actions)


def test_an_optimal_schedule_is_among_the_active_ones():
    problem = FJSP(3, 2, "sd2")
    for seed in range(12):
        state = generated(problem, 1, seed)
        everything, active = (best(problem, state, allowed) for allowed in (problem.mask, active_pairs))
        assert active == everything


def test_a_finished_row_has_nothing_active():
    problem = FJSP(2, 2)
    state = generated(problem, 3)
    actions = random_actions(problem, state, torch.Generator().manual_seed(6))
    assert not bool(active_pairs(replay(problem, state, actions, (actions >= 0).sum(1))).any())


def test_the_machine_of_each_operation_is_told():
    state = FJSP().instances(HAND)
    assert assignments(state, torch.tensor([[0, 3, 1]])).tolist() == [[0, 1, 1, -1]]
    assert assignments(state, torch.tensor([[1, 2, 1]])).tolist() == [[1, 1, 0, -1]]


def test_sd1_is_what_its_authors_say():
    times = FJSPGenerator(10, 5, "sd1", 200).generate().arrays["times"]
    able = times >= 0
    counts, alternatives = able.any(3).sum(2), able.sum(3)[able.any(3)]
    assert sorted(np.unique(counts)) == [4, 5, 6]
    assert sorted(np.unique(alternatives)) == [1, 2, 3, 4, 5]
    assert abs(alternatives.mean() - 3) < 0.05
    assert times[able].min() == 1
    assert times.max() == 20
    low, high = np.where(able, times, 99).min(3), times.max(3)
    assert bool((low >= np.floor(0.6 * high) - 1)[able.any(3)].all())  # times of an operation differ by their fifth of the mean


def test_sd2_is_what_its_authors_say():
    times = FJSPGenerator(10, 5, "sd2", 200).generate().arrays["times"]
    assert times.shape == (200, 10, 5, 5)
    assert bool((times >= 0).any(3).all())
    assert (times[times >= 0].min(), times.max()) == (1, 99)


def test_the_operations_of_a_job_lie_around_the_number_of_machines():
    assert [spread(machines) for machines in (1, 5, 10, 15, 20)] == [(1, 1), (4, 6), (8, 12), (12, 18), (16, 24)]


def test_sets_of_the_usual_sizes_stay_as_they_are():
    assert STANDARD["sd1-10x5"].generate().arrays["times"][0, 0, :2].tolist() == PINNED["sd1-10x5"]
    assert STANDARD["sd2-15x10"].generate().arrays["times"][3, 2, 1].tolist() == PINNED["sd2-15x10"]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([[[[1.0, -2.0]]]], "operation 0 of job 0 of instance 0 takes -2 on machine 1"),
        ([[[[1.0, float("nan")]]]], "takes nan on machine 1"),
        ([[[[-1, -1]], [[1, 1]]]], "one of job 0 of instance 0 has none"),
        ([[[[1, 1], [-1, -1], [2, 2]]]], "one of job 0 of instance 0 has none"),
    ],
)
def test_impossible_instances_are_refused(times, message, unchecked):
    with pytest.raises(SettingsError, match=message):
        FJSP().instances(torch.tensor(times))


def test_sizes_below_one_are_refused():
    with pytest.raises(SettingsError, match="`jobs` must be at least 1, got 0"):
        FJSP(0, 3)
