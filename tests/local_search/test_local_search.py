"""Tests of the local search that polishes routes."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from torch import Tensor

from gumbeldore import TrainingSettings, WithReplacement, self_improve
from gumbeldore.errors import SettingsError
from gumbeldore.local_search import compiling
from gumbeldore.policies import TSPPolicy
from gumbeldore.problem import Problem, replay
from gumbeldore.problems import CVRP, TSP, Gomoku

needs_compiler = pytest.mark.skipif(not compiling.available(), reason="the local search is not compiled")


def costs(problem: Problem, state, actions: Tensor) -> Tensor:
    """Lengths by the problem's own steps, each of which must be allowed."""
    for depth in range(actions.shape[1]):
        assert bool(problem.mask(state).gather(1, actions[:, depth, None]).all())
        state = problem.step(state, actions[:, depth])
    assert bool(problem.done(state).all())
    return -problem.objective(state)


def random_tours(cities: int, count: int, seed: int = 0) -> tuple[TSP, object, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    problem = TSP(cities)
    tours = torch.stack([1 + torch.randperm(cities - 1, generator=generator) for _ in range(count)])
    return problem, problem.generate(count, generator=generator), tours


def one_by_one(customers: int, capacity: int, count: int, seed: int = 0) -> tuple[CVRP, object, Tensor]:
    """Every customer on a route of its own."""
    problem = CVRP(customers, capacity)
    state = problem.generate(count, generator=torch.Generator().manual_seed(seed))
    return problem, state, (2 * torch.arange(customers) + 1).expand(count, -1)


@needs_compiler
@pytest.mark.parametrize("cities", [3, 4, 5, 7, 8, 9, 30, 120])
def test_polished_tours_are_complete_and_never_longer(cities: int) -> None:
    problem, state, tours = random_tours(cities, 6)
    better = problem.local_search(state, tours, effort=2, seeds=torch.arange(6))
    before, after = costs(problem, state, tours), costs(problem, state, better)
    assert bool((after <= before + 1e-6).all())
    assert cities <= 4 or float(after.mean()) < float(before.mean())


@needs_compiler
def test_tours_of_eight_cities_become_optimal() -> None:
    problem, state, tours = random_tours(8, 20)
    every = torch.tensor(list(permutations(range(1, 8))))
    polished = costs(problem, state, problem.local_search(state, tours, effort=20, seeds=torch.arange(20)))
    for row in range(20):
        one = state.rows(torch.full((len(every),), row)).compact()
        assert polished[row].item() == pytest.approx(costs(problem, one, every).min().item(), abs=1e-5)


@needs_compiler
@pytest.mark.parametrize(("customers", "capacity"), [(1, 9), (2, 9), (3, 20), (12, 15), (60, 40), (30, 1000)])
def test_polished_routes_keep_capacities_and_are_never_longer(customers: int, capacity: int) -> None:
    problem, state, actions = one_by_one(customers, capacity, 5)
    better = problem.local_search(state, actions, effort=20, seeds=torch.arange(5))
    before, after = costs(problem, state, actions), costs(problem, state, better)
    assert bool((after <= before + 1e-6).all())
    assert customers <= 3 or float(after.mean()) < 0.9 * float(before.mean())
    assert bool((better[:, 0] % 2 == 1).all())


@needs_compiler
def test_routes_of_five_customers_become_optimal() -> None:
    problem, state, actions = one_by_one(5, 12, 6)
    polished = costs(problem, state, problem.local_search(state, actions, effort=60, seeds=torch.arange(6)))
    for row in range(6):
        one, least = state.rows(torch.tensor([row])).compact(), float("inf")
        for order in permutations(range(5)):
            states = one
            for customer in order:  # all ways to serve them in this order, branch by branch
                both = states.rows(torch.arange(states.row_count).repeat_interleave(2))
                action = torch.tensor([2 * customer, 2 * customer + 1]).repeat(states.row_count)
                allowed = problem.mask(both).gather(1, action[:, None]).squeeze(1)
                states = problem.step(both.rows(allowed.nonzero().squeeze(1)), action[allowed])
            least = min(least, -problem.objective(states).max().item())
        assert polished[row].item() == pytest.approx(least, abs=1e-5)


@needs_compiler
def test_an_instance_is_polished_the_same_alone_and_in_a_batch() -> None:
    for problem, state, actions in (random_tours(40, 4), one_by_one(30, 40, 4)):
        seeds = torch.tensor([5, 6, 7, 8])
        together = problem.local_search(state, actions, effort=3, seeds=seeds)
        alone = problem.local_search(state.rows(torch.tensor([2])).compact(), actions[2:3], effort=3, seeds=seeds[2:3])
        assert torch.equal(together[2:3], alone)
        other = problem.local_search(state, actions, effort=3, seeds=seeds + 100)
        assert not torch.equal(together, other)


@needs_compiler
def test_more_effort_gives_shorter_tours() -> None:
    problem, state, tours = random_tours(100, 30)
    means = [
        costs(problem, state, problem.local_search(state, tours, effort=e, seeds=torch.arange(30))).mean().item()
        for e in (0, 1, 5)
    ]
    assert means[0] > 1.02 * means[1] > 1.02 * means[2] - 0.1
    assert means[2] < 7.95  # random instances of 100 cities: optimal tours are about 7.76 long


@needs_compiler
def test_training_learns_from_polished_solutions() -> None:
    problem = TSP(12)
    validation = problem.generate(4, generator=torch.Generator().manual_seed(1))
    settings = TrainingSettings(epochs=1, instances=24, batches=1, batch_size=8, local_search=5)
    (polished,) = self_improve(problem, TSPPolicy(16, 1, 2, 32), WithReplacement(1), validation=validation, settings=settings)
    state = problem.generate(24, generator=torch.Generator().manual_seed(0))
    (group,) = polished.checkpoint()["dataset"] or [None]
    assert polished.sampled is not None
    if group is not None:  # the policy did not improve, so its dataset was kept
        kept = problem.instances(group["coordinates"])
        assert polished.sampled == pytest.approx(-costs(problem, kept, group["actions"]).mean().item(), rel=1e-6)
        again = problem.local_search(kept, group["actions"], effort=5, seeds=torch.arange(24))
        assert costs(problem, kept, again).mean().item() == pytest.approx(-polished.sampled, rel=0.005)
    assert -polished.sampled < 4.0 < -_untrained(problem, state)


def _untrained(problem: TSP, state) -> float:
    actions = torch.stack([1 + torch.randperm(11, generator=torch.Generator().manual_seed(i)) for i in range(24)])
    end = replay(problem, state, actions, torch.full((24,), 11))
    return problem.objective(end).mean().item()


def test_a_problem_without_a_local_search_says_so() -> None:
    problem = Gomoku()
    state = problem.generate(1, generator=torch.Generator().manual_seed(0))
    with pytest.raises(SettingsError, match="`local_search` must be 0 for Gomoku: it has no local search"):
        problem.local_search(state, torch.zeros(1, 9, dtype=torch.long), effort=1, seeds=torch.zeros(1, dtype=torch.long))


def test_negative_attempts_are_refused() -> None:
    with pytest.raises(SettingsError, match="`local_search` must be at least 0"):
        TrainingSettings(local_search=-1)
