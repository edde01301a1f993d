"""Tests of the tabu search that polishes schedules."""

from __future__ import annotations

import itertools

import pytest
import torch

from gumbeldore.errors import SettingsError
from gumbeldore.kits.mixture import AnyOf
from gumbeldore.local_search import compiling
from gumbeldore.problem import replay
from gumbeldore.problems import JSSP
from gumbeldore.problems.jssp.problem import JSSPState
from gumbeldore.problems.jssp.verify import verify_jssp

pytestmark = pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")


def random_schedules(count: int, jobs: int, machines: int, seed: int = 0) -> tuple[JSSP, JSSPState, torch.Tensor]:
    problem, generator = JSSP(jobs, machines), torch.Generator().manual_seed(seed)
    state = problem.generate(count, generator=generator)
    return (
        problem,
        state,
        torch.arange(jobs).repeat(machines)[torch.rand(count, jobs * machines, generator=generator).argsort(1)],
    )


def makespans(problem: JSSP, state: JSSPState, actions: torch.Tensor) -> torch.Tensor:
    return -problem.objective(replay(problem, state, actions, torch.full((len(actions),), actions.shape[1])))


@pytest.mark.parametrize(("jobs", "machines"), [(1, 1), (1, 4), (5, 1), (2, 2), (6, 4), (12, 3), (3, 9)])
def test_polished_schedules_are_feasible_and_never_longer(jobs: int, machines: int) -> None:
    problem, state, actions = random_schedules(6, jobs, machines)
    better = problem.local_search(state, actions, effort=10, seeds=torch.arange(6))
    values = makespans(problem, state, better)
    assert (values <= makespans(problem, state, actions)).all()
    for row in range(6):
        verdict = verify_jssp(state.times[row].tolist(), state.machines[row].tolist(), better[row].tolist())
        assert verdict.feasible, verdict.reason
        assert -verdict.objective == values[row].item()


def test_operations_that_take_no_time_do_no_harm() -> None:
    """An operation of no time may be bound to another one at no distance, so moves must be checked for cycles more strictly."""
    problem, state, actions = random_schedules(60, 6, 5, seed=4)
    state = problem.instances(state.times % 3, state.machines)
    better = problem.local_search(state, actions, effort=5, seeds=torch.arange(60))
    assert (makespans(problem, state, better) <= makespans(problem, state, actions)).all()


def test_small_shops_are_solved_to_optimality() -> None:
    problem, state, actions = random_schedules(12, 3, 2, seed=1)
    polished = makespans(problem, state, problem.local_search(state, actions, effort=100, seeds=torch.arange(12)))
    every = torch.tensor(sorted(set(itertools.permutations([0, 0, 1, 1, 2, 2]))))
    for row in range(12):
        one = state.rows(torch.full((len(every),), row)).compact()
        assert polished[row].item() == makespans(problem, one, every).min().item()


def test_more_effort_gives_shorter_schedules() -> None:
    problem, state, actions = random_schedules(20, 8, 8, seed=2)
    means = [
        makespans(problem, state, problem.local_search(state, actions, effort=e, seeds=torch.arange(20))).mean()
        for e in (0, 1, 20)
    ]
    assert means[0] > 1.1 * means[1] > 1.02 * 1.1 * means[2]


def test_a_shop_is_polished_the_same_alone_in_a_batch_and_in_a_mixture() -> None:
    problem, state, actions = random_schedules(4, 7, 6, seed=4)
    together = problem.local_search(state, actions, effort=5, seeds=torch.arange(4))
    alone = problem.local_search(state.rows(torch.tensor([2])).compact(), actions[2:3], effort=5, seeds=torch.tensor([2]))
    assert torch.equal(together[2:3], alone)
    assert torch.equal(AnyOf((problem, JSSP(3, 3))).local_search(state, actions, effort=5, seeds=torch.arange(4)), together)


def test_times_that_are_no_integers_are_fine() -> None:
    problem, state, actions = random_schedules(3, 5, 4, seed=5)
    scaled = problem.instances(state.times.double() / 7, state.machines)
    better = problem.local_search(scaled, actions, effort=20, seeds=torch.arange(3))
    torch.testing.assert_close(
        makespans(problem, scaled, better),
        makespans(problem, state, problem.local_search(state, actions, effort=20, seeds=torch.arange(3))) / 7,
        rtol=0.05,
        atol=0,
    )


def test_partial_schedules_are_refused() -> None:
    problem, state, actions = random_schedules(2, 3, 3)
    begun = problem.step(state, actions[:, 0])
    with pytest.raises(SettingsError, match="complete schedules"):
        problem.local_search(begun, actions[:, 1:], effort=1, seeds=torch.arange(2))
