"""What the job shop's network is told of time: lower bounds that hold, and features of them."""

from __future__ import annotations

import itertools

import pytest
import torch
from routing import random_actions, seeded

from gumbeldore.policies import JSSPPolicy
from gumbeldore.problem import replay
from gumbeldore.problems import JSSP, JSSPState
from gumbeldore.problems.jssp.bounds import ScheduleBounds, bound_features, earliest_start, lower_bounds
from gumbeldore.search.samplers import Greedy


def partial(jobs: int, machines: int, steps: int, count: int = 6, seed: int = 0) -> JSSPState:
    problem = JSSP(jobs, machines)
    state = problem.generate(count, generator=seeded(seed))
    actions = random_actions(problem, state, seeded(seed + 1))
    return replay(problem, state, actions, torch.full((count,), steps))


def completions(state: JSSPState) -> list[int]:
    """Makespans of all ways to complete a row."""
    problem = JSSP(state.jobs, state.operations)
    left = [job for job, done in enumerate(state.scheduled[0].tolist()) for _ in range(state.operations - done)]
    orders = torch.tensor(sorted(set(itertools.permutations(left))))
    rows = state.rows(torch.zeros(len(orders), dtype=torch.long))
    return (-problem.objective(replay(problem, rows, orders, torch.full((len(orders),), len(left))))).int().tolist()


@pytest.mark.parametrize("steps", [0, 2, 4, 5])
def test_no_completion_ends_before_the_bound(steps):
    state = partial(3, 2, steps, seed=steps)
    bounds, now = lower_bounds(state, torch.float64), earliest_start(state, state.next_starts()).squeeze(1)
    for row in range(state.row_count):
        best = min(completions(state.rows(torch.tensor([row]))))
        assert bounds.total[row].item() <= best - now[row].item()


def test_the_last_operation_is_bounded_by_what_it_takes():
    state = partial(3, 3, 8)
    bounds, now = lower_bounds(state, torch.float64), earliest_start(state, state.next_starts())
    job = state.unfinished.int().argmax(1)
    for row in range(state.row_count):
        done = JSSP(3, 3).step(state.rows(torch.tensor([row])), job[row : row + 1])
        assert bounds.path[row, job[row], 2].item() == done.job_available[0, job[row]].item() - now[row].item()


def test_bounds_are_those_of_a_plain_recursion():
    state = partial(4, 3, 5)
    bounds, now = lower_bounds(state, torch.float64), earliest_start(state, state.next_starts())
    for row, job in itertools.product(range(state.row_count), range(4)):
        machine_free = (state.machine_available[row] - now[row]).clamp(min=0)
        clock = float(state.job_available[row, job] - now[row])
        for step in range(int(state.scheduled[row, job]), 3):
            machine = state.machines[row, job, step]
            clock = max(clock, float(machine_free[machine]))
            assert bounds.begin[row, job, step].item() == clock
            assert bounds.free[row, job, step].item() == float(machine_free[machine])
            assert bounds.after[row, job, step].item() == float(state.times[row, job, step + 1 :].sum())
            clock += float(state.times[row, job, step])


def test_features_of_unscheduled_operations_lie_between_0_and_1():
    state = partial(20, 5, 30)
    left = torch.arange(5) >= state.scheduled[:, :, None]
    features = bound_features(state, torch.float32)[left]
    assert features.shape[1] == ScheduleBounds.width
    assert features.min() >= 0
    assert features.max() <= 1


def test_features_are_the_same_in_whole_and_in_real_numbers():
    state = partial(4, 3, 5)
    real = JSSP().instances(state.times.double(), state.machines)
    again = replay(JSSP(), real, random_actions(JSSP(4, 3), real, seeded(1)), torch.full((6,), 5))
    assert torch.equal(bound_features(state, torch.float32), bound_features(again, torch.float32))


def test_a_network_that_learnt_without_bounds_acts_the_same_when_it_is_given_them():
    torch.manual_seed(0)
    plain = JSSPPolicy(16, 1, 2, 32)
    with torch.no_grad():
        for block in plain.blocks:
            block.resweight.fill_(0.5)
    knowing = JSSPPolicy(16, 1, 2, 32, features=(ScheduleBounds(),))
    knowing.load_state_dict({**knowing.state_dict(), **plain.state_dict()})
    state = partial(4, 3, 5)
    assert torch.equal(plain(state), knowing(state))


def test_trained_bounds_are_used_in_searches_and_in_training_alike():
    torch.manual_seed(0)
    policy = JSSPPolicy(16, 1, 2, 32, features=(ScheduleBounds(),)).eval()
    assert policy.feature_embedding is not None
    torch.nn.init.normal_(policy.feature_embedding.weight)
    state = partial(4, 3, 5)
    with torch.no_grad():
        searched = policy(state, policy.prepare(state))
    assert torch.allclose(searched, policy(state), atol=1e-5)
    torch.nn.init.zeros_(policy.feature_embedding.weight)
    assert not torch.allclose(searched, policy(state), atol=1e-3)


def test_a_row_does_not_see_the_others():
    torch.manual_seed(0)
    policy = JSSPPolicy(16, 1, 2, 32, features=(ScheduleBounds(),)).eval()
    assert policy.feature_embedding is not None
    torch.nn.init.normal_(policy.feature_embedding.weight)
    problem, state = JSSP(4, 3), JSSP(4, 3).generate(5, generator=seeded(3))
    together = Greedy()(problem, policy, state, seeds=torch.zeros(5, dtype=torch.long))
    for row in range(5):
        alone = Greedy()(problem, policy, state.rows(torch.tensor([row])).compact(), seeds=torch.zeros(1, dtype=torch.long))
        assert torch.equal(alone.best_actions[0], together.best_actions[row])
