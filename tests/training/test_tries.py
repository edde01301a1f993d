"""Several actions of a state, and what each of them costs."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from routing import random_actions, seeded
from torch import Tensor

from gumbeldore import Gumbeldore, TrainingSettings, self_improve
from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.policies import CVRPPolicy, JSSPPolicy, TSPPolicy
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, replay
from gumbeldore.problems import CVRP, JSSP, TSP, local_search
from gumbeldore.problems.mixture import AnyOf
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.loss import Loss
from gumbeldore.training.recoveries import objectives, ways_on
from gumbeldore.training.tries import TEMPERATURE, UNLIKELY, Tries, liked, tried

pytestmark = pytest.mark.skipif(not local_search.available(), reason="the local search is not compiled")

SIZE = {"d": 16, "heads": 2, "ff": 16}
CASES = {
    "tsp": (TSP(8), lambda: TSPPolicy(layers=1, **SIZE)),
    "cvrp": (CVRP(8, 20), lambda: CVRPPolicy(layers=1, **SIZE)),
    "jssp": (JSSP(4, 3), lambda: JSSPPolicy(pairs=1, **SIZE)),
    "mixture": (AnyOf((TSP(7), TSP(8))), lambda: TSPPolicy(layers=1, **SIZE)),
}


def made(name: str) -> tuple[Problem, Network]:
    torch.manual_seed(0)
    problem, network = CASES[name]
    return problem, network()


@pytest.mark.parametrize("name", CASES)
def test_an_action_is_brought_forward_and_the_solution_stays_one(name: str) -> None:
    problem, _ = made(name)
    state = problem.generate(40, generator=seeded(0))
    actions = random_actions(problem, state, seeded(1))
    for kept in range(1, actions.shape[1] - 1):
        there = replay(problem, state, actions, torch.full((40,), kept))
        mask = problem.mask(there)
        other = torch.rand(mask.shape, generator=seeded(kept)).masked_fill(~mask, -1).argmax(1)
        found = problem.brought_forward(state, actions, kept, other)
        assert torch.equal(found[:, :kept], actions[:, :kept])
        assert torch.equal(found[:, kept], other)
        end = state
        for action in found.unbind(1):
            assert bool(problem.mask(end).gather(1, action[:, None]).all())
            end = problem.step(end, action)
        assert bool(problem.done(end).all())
        same = problem.brought_forward(state, actions, kept, actions[:, kept])
        assert torch.equal(same, actions)


def test_a_customer_that_is_brought_forward_leaves_its_subtour_and_no_vehicle_too_full() -> None:
    """Subtours 0 1 | 2 3 4 of demands 4 4 | 5 2 2, capacity 9."""
    problem = CVRP(5, 9)
    state = problem.instances(torch.rand(1, 6, 2), torch.tensor([[0, 4, 4, 5, 2, 2]]), 9)
    actions = torch.tensor([[1, 2, 5, 6, 8]])
    brought = {
        int(action): problem.brought_forward(state, actions, 1, torch.tensor([action]))[0].tolist() for action in (4, 5, 8)
    }
    assert brought[4] == [1, 4, 3, 7, 8]  # 0 2 | 1 | 3 4: there is no room for 1, and 3 begins the subtour that 2 has left
    assert brought[5] == [1, 5, 2, 7, 8]  # 0 | 2 1 | 3 4
    assert brought[8] == [1, 8, 3, 5, 6]  # 0 4 | 1 | 2 3


def states_of(
    problem: Problem, policy: Network, rows: int, steps: list[int], count: int
) -> tuple[object, Tensor, list[Tensor], Tries]:
    state = problem.generate(rows, generator=seeded(0))
    actions, seeds = random_actions(problem, state, seeded(1)), torch.arange(rows)
    ways = ways_on(problem, state, actions, steps, effort=20, seeds=seeds)
    return state, actions, ways, tried(problem, policy, state, actions, steps, ways, count=count, effort=20, seeds=seeds)


def test_regrets_are_those_of_all_tours_there_are() -> None:
    problem, policy = made("tsp")
    state, actions, _, tries = states_of(problem, policy, 12, [2, 3], 8)
    for index, kept in enumerate((2, 3)):
        for row in range(12):
            own = state.rows(torch.tensor([row]))
            rest = actions[row, kept:].tolist()
            tours = torch.tensor([actions[row, :kept].tolist() + list(order) for order in permutations(rest)])
            lengths = -objectives(problem, own.rows(torch.zeros(len(tours), dtype=torch.long)), tours)
            least = {city: lengths[tours[:, kept] == city].min().item() for city in rest}
            best, place = min(least.values()), index * 12 + row
            known = dict(zip(tries.action[place].tolist(), tries.regret[place].tolist(), strict=True))
            found = {action: regret for action, regret in known.items() if regret < float("inf")}
            assert set(found) == set(rest)
            for city, regret in found.items():
                assert regret == pytest.approx((least[city] - best) / (best / 7), abs=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_the_likeliest_actions_are_tried_and_that_of_the_best_way(name: str) -> None:
    problem, policy = made(name)
    state, actions, ways, tries = states_of(problem, policy, 16, [2, 4], 3)
    for index, kept in enumerate((2, 4)):
        log_prob = liked(problem, policy, replay(problem, state, actions, torch.full((16,), kept)))
        for row in range(16):
            found, regret = tries.action[index * 16 + row].tolist(), tries.regret[index * 16 + row]
            label = int(ways[index][row, kept])
            assert found[0] == label
            others = [action for action in log_prob[row].argsort(descending=True).tolist() if action != label]
            likely = [action for action in others if log_prob[row, action] > UNLIKELY][:2]
            assert {a for a, r in zip(found[1:], regret[1:], strict=True) if r < float("inf")} == set(likely)
            assert float(regret.min()) == 0


def test_what_is_learnt_of_a_solution_follows_the_order_of_subtours() -> None:
    """The label begins with the farthest end, whichever subtour the local search has left first; its regret is the solution's."""
    problem = CVRP(8, 20, order="farthest")
    state = problem.generate(20, generator=seeded(0))
    actions, steps = random_actions(problem, state, seeded(1)), torch.full((20,), 2)
    data: Dataset = Dataset()
    data.add(state, actions, steps, Tries(actions[:, 2:4].clone(), torch.tensor([[0.0, 1.0]]).expand(20, -1)))
    examples = data.groups[0].examples(problem, torch.arange(20), seeded(2))
    assert examples.choices is not None
    assert torch.equal(examples.choices[:, 0], examples.action)
    assert not torch.equal(examples.action, actions[:, 2])
    assert torch.equal(data.groups[0].solution_choices[:, 0], actions[:, 2])


def test_a_problem_that_does_not_bring_an_action_forward_is_told_so() -> None:
    class Careless(TSP):
        def brought_forward(self, state, actions, kept, action):
            return actions

    _, policy = made("tsp")
    with pytest.raises(
        ContractError, match=r"`Careless\.brought_forward` must return solutions with the given action after 2 others"
    ):
        states_of(Careless(8), policy, 4, [2], 4)


def test_what_costs_more_has_a_smaller_share_of_the_target() -> None:
    problem, policy = made("tsp")
    state = problem.generate(3, generator=seeded(0))
    actions = random_actions(problem, state, seeded(1))
    steps, inf = torch.full((3,), 3), float("inf")
    choices = torch.stack([actions[:, 3], actions[:, 4]], 1)
    data: Dataset = Dataset()
    data.add(state, actions, steps, Tries(choices, torch.tensor([[0, 0], [0, TEMPERATURE], [0, inf]])))
    examples = data.groups[0].examples(problem, torch.arange(3), seeded(2))
    assert examples.shares is not None
    e = 2.718281828
    assert examples.shares.flatten().tolist() == pytest.approx([0.5, 0.5, e / (1 + e), 1 / (1 + e), 1, 0])
    log_prob = liked(problem, policy, examples.state)
    expected = -(examples.shares * log_prob.gather(1, choices)).sum(1)
    wanted, shown = Loss()(problem, policy, examples)
    assert torch.allclose(wanted, expected, atol=1e-5)
    assert torch.equal(wanted, shown)
    alone, _ = Loss()(problem, policy, replace(examples, choices=None, shares=None))
    assert alone[2].item() == pytest.approx(wanted[2].item(), abs=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_a_training_with_tries_resumes_bit_for_bit_and_depends_on_no_workers(name: str) -> None:
    problem, _ = made(name)
    settings = TrainingSettings(
        epochs=3, instances=6, batches=3, batch_size=8, part_size=4, polish=2, recoveries=3, tries=3, window=2, sampling_batch=3
    )
    validation = problem.generate(4, generator=seeded(5))

    def losses(resume: dict | None = None, workers: int = 0) -> tuple[list[float], list[dict]]:
        _, policy = made(name)
        run = self_improve(
            problem, policy, Gumbeldore(2, 2), validation=validation, settings=settings, resume=resume, workers=workers
        )
        epochs = [(epoch.loss, deepcopy(epoch.checkpoint())) for epoch in run]
        return [loss for loss, _ in epochs], [saved for _, saved in epochs]

    whole, saved = losses()
    assert any("solution_regrets" in group for group in saved[0]["dataset"])
    assert losses(resume=saved[1])[0] == whole[2:]
    if name == "tsp":
        assert losses(workers=2)[0] == pytest.approx(whole, abs=1e-6)


def test_tries_need_recoveries_and_two_actions() -> None:
    with pytest.raises(SettingsError, match="`tries` needs `recoveries`"):
        TrainingSettings(tries=3)
    with pytest.raises(SettingsError, match=r"`tries` must be at least 2, or 0 \(off\), got 1"):
        TrainingSettings(polish=1, recoveries=1, tries=1)
