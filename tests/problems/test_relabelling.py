"""Tests of what a policy learns from its own states: polish that keeps the first actions, and examples after them."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations, product

import pytest
import torch
from torch import Tensor

from gumbeldore import Gumbeldore, TrainingSettings, self_improve
from gumbeldore.errors import SettingsError
from gumbeldore.kits.mixture import AnyOf
from gumbeldore.local_search import compiling
from gumbeldore.policies import CVRPPolicy, JSSPPolicy, TSPPolicy
from gumbeldore.problem import Problem, replay
from gumbeldore.problems import CVRP, JSSP, TSP
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.relabelling import relabelled

pytestmark = pytest.mark.skipif(not compiling.available(), reason="the local search is not compiled")

PROBLEMS: dict[str, Problem] = {
    "tsp": TSP(9),
    "cvrp": CVRP(8, 20),
    "jssp": JSSP(4, 3),
    "mixture": AnyOf((JSSP(3, 3), JSSP(4, 3))),
}
NETWORKS = {
    "tsp": lambda: TSPPolicy(d=16, layers=1, heads=2, ff=16),
    "cvrp": lambda: CVRPPolicy(d=16, layers=1, heads=2, ff=16),
    "jssp": lambda: JSSPPolicy(d=16, pairs=1, heads=2, ff=16, successor_weight=0.5),
    "mixture": lambda: JSSPPolicy(d=16, pairs=1, heads=2, ff=16, successor_weight=0.5),
}


class Uniform:
    """A policy that knows nothing."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def prepare(self, state):
        return None

    def __call__(self, state, context):
        return torch.zeros_like(self.problem.mask(state), dtype=torch.float32)


def solved(problem: Problem, count: int, seed: int = 0) -> tuple[object, Tensor]:
    """Instances with a random solution each."""
    state = problem.generate(count, generator=torch.Generator().manual_seed(seed))
    solutions = WithReplacement(1)(problem, Uniform(problem), state, generator=torch.Generator().manual_seed(seed))
    return state, solutions.best_actions


def values(problem: Problem, state, actions: Tensor) -> Tensor:
    """Objectives by the problem's own steps, each of which must be allowed."""
    for depth in range(actions.shape[1]):
        assert bool(problem.mask(state).gather(1, actions[:, depth, None]).all())
        state = problem.step(state, actions[:, depth])
    assert bool(problem.done(state).all())
    return problem.objective(state)


@pytest.mark.parametrize("name", PROBLEMS)
def test_polish_keeps_the_first_actions_and_never_makes_the_rest_worse(name: str) -> None:
    problem = PROBLEMS[name]
    state, actions = solved(problem, 12)
    improved = 0
    for kept in range(actions.shape[1] + 1):
        better = problem.local_search(state, actions, effort=5, seeds=torch.arange(12), kept=kept)
        assert torch.equal(better[:, :kept], actions[:, :kept])
        before, after = values(problem, state, actions), values(problem, state, better)
        assert bool((after >= before - 1e-6).all())
        improved += int((after > before + 1e-6).sum())
    assert improved > 20


def best_after(problem: Problem, state, actions: Tensor, kept: int, rests: Tensor) -> Tensor:
    """The best objective of each row over all of the given ways to go on that are allowed."""
    best = []
    for row in range(state.row_count):
        here = replay(problem, state, actions, torch.full((len(actions),), kept)).rows(torch.full((len(rests[row]),), row))
        allowed = torch.ones(len(rests[row]), dtype=torch.bool)
        for depth in range(rests[row].shape[1]):
            allowed &= problem.mask(here).gather(1, rests[row][:, depth, None]).squeeze(1)
            here = problem.step(here, rests[row][:, depth])
        best.append(problem.objective(here)[allowed].max())
    return torch.stack(best)


@pytest.mark.parametrize("kept", [2, 4, 6])
def test_the_rest_of_a_short_tour_becomes_optimal(kept: int) -> None:
    problem = TSP(9)
    state, actions = solved(problem, 10)
    rests = torch.stack([torch.tensor(list(permutations(row[kept:].tolist()))) for row in actions])
    better = problem.local_search(state, actions, effort=40, seeds=torch.arange(10), kept=kept)
    assert values(problem, state, better) == pytest.approx(best_after(problem, state, actions, kept, rests), abs=1e-5)


@pytest.mark.parametrize("kept", [3, 4])
def test_the_rest_of_short_routes_becomes_optimal(kept: int) -> None:
    """Also from where a vehicle stands, with what it has left."""
    problem = CVRP(7, 20)
    state, actions = solved(problem, 10, seed=3)

    def every(row: Tensor) -> Tensor:
        customers = (row[kept:] // 2).tolist()
        ways = product(permutations(customers), product((0, 1), repeat=len(customers)))
        return torch.tensor([[2 * c + v for c, v in zip(order, via, strict=True)] for order, via in ways])

    better = problem.local_search(state, actions, effort=200, seeds=torch.arange(10), kept=kept)
    found = values(problem, state, better)
    assert found == pytest.approx(
        best_after(problem, state, actions, kept, torch.stack([every(row) for row in actions])), abs=1e-5
    )


def test_the_rest_of_a_small_schedule_becomes_optimal() -> None:
    problem, kept = JSSP(3, 3), 3
    state, actions = solved(problem, 10)
    for row in range(10):
        rests = torch.tensor(sorted(set(permutations(actions[row, kept:].tolist()))))[None]
        one = state.rows(torch.tensor([row])).compact()
        better = problem.local_search(one, actions[row : row + 1], effort=100, seeds=torch.tensor([row]), kept=kept)
        best = best_after(problem, one, actions[row : row + 1], kept, rests)
        assert values(problem, one, better).tolist() == best.tolist()


def extent(state) -> Tensor:
    """A distance within each instance, by which a change of scale is seen; 1 where there are none."""
    points = getattr(state, "coordinates", getattr(state, "nodes", None))
    return torch.ones(state.row_count) if points is None else (points[:, 0] - points[:, 1]).norm(dim=1)


@pytest.mark.parametrize("name", PROBLEMS)
def test_examples_after_so_many_steps_are_the_states_after_them(name: str) -> None:
    """Up to isometries and scale: masks, and what is left to do, are those of the replayed state."""
    problem = PROBLEMS[name]
    state, actions = solved(problem, 12)
    steps = torch.arange(12) % (actions.shape[1] - 1)
    examples = problem.examples_after(state, actions, steps, generator=torch.Generator().manual_seed(1))
    there = replay(problem, state, actions, steps)
    assert torch.equal(problem.mask(examples.state), problem.mask(there))
    direct = torch.ones(12, dtype=torch.bool) if name != "cvrp" else actions.gather(1, steps[:, None]).squeeze(1) % 2 == 0
    assert torch.equal(examples.action[direct], actions.gather(1, steps[:, None]).squeeze(1)[direct])
    assert bool(problem.mask(there).gather(1, examples.action[:, None]).all())
    rest, same, here = actions, examples.state, there
    for depth in range(actions.shape[1]):
        moving = steps + depth < actions.shape[1]
        action = rest.gather(1, (steps + depth).clamp(max=actions.shape[1] - 1)[:, None]).squeeze(1)
        same = problem.step(same, action).where(moving, same)
        here = problem.step(here, action).where(moving, here)
    gained = problem.objective(same) - problem.objective(examples.state)
    scale = extent(examples.state) / extent(there)
    assert gained == pytest.approx(scale * (problem.objective(here) - problem.objective(there)), abs=1e-5)


def test_the_prefix_of_routes_is_the_state_after_so_many_steps() -> None:
    problem = CVRP(9, (12, 30))
    state, actions = solved(problem, 50)
    steps = torch.arange(50) % 10
    quick, slow = problem.prefix(state, actions, steps), replay(problem, state, actions, steps)
    for name, tensor in slow.tensors().items():
        assert name == "length" or torch.equal(tensor, getattr(quick, name)), name
    assert not quick.length.any()


def test_the_next_route_is_the_fullest_from_either_end() -> None:
    """Routes 0 1 | 2 3 | 4 5 with loads 5, 9 and 7: after the first one, the second one is next."""
    actions = torch.tensor([[1, 2, 5, 6, 9, 10]]).expand(40, -1)
    demands = torch.tensor([0, 2, 3, 4, 5, 3, 4]).expand(1, -1)
    state = CVRP(6, 9).instances(torch.rand(1, 7, 2), demands, 9).rows(torch.zeros(40, dtype=torch.long))
    found = [
        set(CVRP(6, 9).examples_after(state, actions, torch.full((40,), steps), generator=torch.Generator()).action.tolist())
        for steps in range(6)
    ]
    assert found == [{5, 7}, {2}, {5, 7}, {6}, {9, 11}, {10}]


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_training_recovers_and_resumes_bit_for_bit(name: str) -> None:
    problem = PROBLEMS[name]
    settings = TrainingSettings(epochs=2, instances=6, batches=4, batch_size=8, learning_rate=1e-3, local_search=2, relabel=3)
    validation = problem.generate(4, generator=torch.Generator().manual_seed(9))

    def run(resume=None):
        torch.manual_seed(0)
        policy = NETWORKS[name]()
        sampler = Gumbeldore(2, 1)
        return [
            deepcopy(epoch.checkpoint())
            for epoch in self_improve(problem, policy, sampler, validation=validation, settings=settings, resume=resume)
        ]

    first, second = run()
    recovered = [group for group in first["dataset"] + second["dataset"] if "steps" in group]
    assert all(int(group["steps"].min()) >= 1 for group in recovered)
    (again,) = run(resume=first)
    assert all(torch.equal(second["policy"][key], again["policy"][key]) for key in second["policy"])


@pytest.mark.parametrize("name", PROBLEMS)
def test_ways_to_go_on_from_one_solution_learn_from_each_other(name: str) -> None:
    """A way on after more steps is one after fewer, so the latter is never worse; where it goes as the policy did, both are as good."""
    problem = PROBLEMS[name]
    state, actions = solved(problem, 30)
    steps = list(range(1, actions.shape[1] - 1))
    found = relabelled(problem, state, actions, steps, effort=1, seeds=torch.arange(30))
    value = [values(problem, state, solution) for solution in found]
    agreed = 0
    for index, kept in enumerate(steps):
        assert torch.equal(found[index][:, :kept], actions[:, :kept])
        assert bool((value[index] >= values(problem, state, actions) - 1e-6).all())
        if index:
            assert bool((value[index - 1] >= value[index] - 1e-6).all())
            same = (found[index - 1][:, :kept] == actions[:, :kept]).all(1)
            assert value[index][same].tolist() == pytest.approx(value[index - 1][same].tolist(), abs=1e-6)
            agreed += int(same.sum())
    assert agreed > 10


def test_a_dataset_keeps_whole_and_relabelled_solutions_apart() -> None:
    problem = TSP(9)
    state, actions = solved(problem, 4)
    dataset: Dataset = Dataset()
    dataset.add(state, actions)
    dataset.add(state, actions, torch.full((4,), 3))
    dataset.add(state, actions, torch.full((4,), 6))
    assert (len(dataset), [len(group.actions) for group in dataset.groups]) == (4, [4, 8])
    again = Dataset.from_plain(dataset.to_plain(), type(state), "cpu")
    generators = [torch.Generator().manual_seed(2) for _ in range(2)]
    drawn = [[d.sample(problem, 5, g) for _ in range(40)] for d, g in zip((dataset, again), generators, strict=True)]
    left = [[int((~example.state.visited[0]).sum()) for example in examples] for examples in drawn]
    assert left[0] == left[1]
    assert sum(count in (2, 5) for count in left[0]) >= 20


def test_relabelling_without_local_search_is_refused() -> None:
    with pytest.raises(SettingsError, match="`relabel` needs `local_search`"):
        TrainingSettings(relabel=2)
