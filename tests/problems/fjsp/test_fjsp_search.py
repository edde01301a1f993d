"""Tabu search for flexible job shops."""

from __future__ import annotations

import pytest
import torch
from flexible_shops import PUBLISHED, random_actions

from gumbeldore.local_search import compiling
from gumbeldore.problem import replay
from gumbeldore.problems import FJSP
from gumbeldore.problems.fjsp.active import active_pairs
from gumbeldore.problems.fjsp.files import parse_flexible
from gumbeldore.problems.fjsp.improving import local_search
from gumbeldore.problems.fjsp.verify import verify_fjsp

pytestmark = pytest.mark.skipif(not compiling.available(), reason="the local search is not compiled")


def started(problem, count=20, seed=0):
    state = problem.generate(count, generator=torch.Generator().manual_seed(seed))
    actions = random_actions(problem, state, torch.Generator().manual_seed(seed + 1))
    return state, actions


def value(problem, state, actions):
    """The objectives, by steps each of which must be allowed."""
    length = (actions >= 0).sum(1)
    for depth, action in enumerate(actions.clamp(min=0).unbind(1)):
        going = depth < length
        assert bool((problem.mask(state).gather(1, action[:, None]).squeeze(1) | ~going).all())
        state = problem.step(state, action)
    assert bool(problem.done(state).all())
    return problem.objective(state)


@pytest.mark.parametrize("problem", [FJSP(8, 4), FJSP(5, 5, "sd2"), FJSP(3, 1)])
def test_schedules_become_no_longer_and_stay_feasible(problem):
    state, actions = started(problem)
    found = problem.local_search(state, actions, effort=10, seeds=torch.arange(20))
    before, after = (value(problem, state, each) for each in (actions, found))
    assert bool((after >= before).all())
    assert problem.machines == 1 or after.mean() > 0.8 * before.mean()


def test_the_first_actions_stay():
    problem = FJSP(6, 4)
    state, actions = started(problem)
    for kept in (1, 7, 18, actions.shape[1]):
        found = problem.local_search(state, actions, effort=10, seeds=torch.arange(20), kept=kept)
        assert torch.equal(found[:, :kept], actions[:, :kept])
        assert bool((value(problem, state, found) >= value(problem, state, actions)).all())


def test_its_schedules_are_active():
    problem = FJSP(6, 4, "sd2")
    state, actions = started(problem)
    found = problem.local_search(state, actions, effort=5, seeds=torch.arange(20))
    for action in found.unbind(1):
        allowed = active_pairs(state).flatten(1).gather(1, action.clamp(min=0)[:, None]).squeeze(1)
        assert bool((allowed | (action < 0)).all())
        state = problem.step(state, action.clamp(min=0))


def test_the_same_seed_gives_the_same_schedule_in_any_batch():
    problem = FJSP(6, 4)
    state, actions = started(problem)
    seeds = torch.arange(20)
    found = problem.local_search(state, actions, effort=10, seeds=seeds)
    alone = problem.local_search(state.rows(slice(7, 8)), actions[7:8], effort=10, seeds=seeds[7:8])
    assert torch.equal(found[7:8], alone)
    assert not torch.equal(found, problem.local_search(state, actions, effort=10, seeds=seeds + 100))


def test_small_shops_are_solved_to_optimality():
    """Against all schedules."""
    problem = FJSP(3, 2, "sd2")
    state, actions = started(problem, 12)
    found = problem.objective(
        replay(problem, state, problem.local_search(state, actions, effort=100, seeds=torch.arange(12)), torch.full((12,), 6))
    )
    for row in range(12):
        assert found[row] == best(problem, state.rows(slice(row, row + 1)))


def best(problem, state):
    if bool(problem.done(state)):
        return problem.objective(state).item()
    return max(best(problem, problem.step(state, action[None])) for action in active_pairs(state).flatten(1).nonzero()[:, 1])


def test_operations_that_take_no_time_do_not_wait_for_each_other_in_a_circle():
    problem = FJSP(6, 3, "sd2")
    state, actions = started(problem)
    times = state.times.where((state.times < 0) | (state.times > 50), 0)
    state = problem.instances(times)
    found = problem.local_search(state, actions, effort=50, seeds=torch.arange(20))
    assert bool((value(problem, state, found) >= value(problem, state, actions)).all())


def test_an_instance_of_a_file_is_improved_for_as_long_as_somebody_likes():
    (given,) = parse_flexible(PUBLISHED["fattahi3"][0], "a")
    worst = [0, 0, 2, 3, 4, 5]
    search = local_search(given, 0, worst)
    assert search.actions == worst
    search.run(work=200)
    assert verify_fjsp(given.arrays["times"], search.actions).objective == -221
    assert verify_fjsp(given.arrays["times"], local_search(given, 0, None).actions).feasible
