"""The orienteering problem: the rules, its random instances, and what augmentations and prefixes keep."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from gumbeldore import check_problem
from gumbeldore.errors import SettingsError
from gumbeldore.problem import replay
from gumbeldore.problems import OP
from gumbeldore.problems.op.baselines import RULES
from gumbeldore.problems.op.instances import STANDARD, OPGenerator, verify
from gumbeldore.problems.op.prizes import usual_budget
from gumbeldore.problems.op.problem import turned

SQUARE = torch.tensor([[[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]])


def walks(problem, count, seed=0, whole=True):
    """Random allowed tours; without `whole` they end anywhere."""
    generator = torch.Generator().manual_seed(seed)
    state = first = problem.generate(count, generator=generator)
    taken = []
    while not bool(problem.done(state).all()):
        mask = problem.mask(state).double()
        if whole:
            mask[:, 0] = (mask[:, 1:].sum(1) == 0).double()
        action = torch.multinomial(mask, 1, generator=generator).squeeze(1)
        taken.append(action.where(~problem.done(state), -1))
        state = problem.step(state, action)
    return first, torch.stack(taken, 1), state


def arrays(state, row):
    return {name: getattr(state, name)[row].numpy() for name in ("nodes", "prizes", "budget")}


def best_of_all(instance):
    """By every sequence of nodes."""
    count, most = len(instance["prizes"]) - 1, 0.0
    for stops in range(count + 1):
        for tour in permutations(range(1, count + 1), stops):
            verdict = verify(instance, [*tour, 0])
            most = max(most, verdict.objective)
    return most


def test_a_tour_may_go_on_only_where_the_depot_can_still_be_reached():
    problem = OP(3)
    state = problem.instances(SQUARE, torch.ones(1, 4), 3.5)
    assert problem.mask(state).tolist() == [[True, True, True, True]]
    state = problem.step(state, torch.tensor([2]))
    assert problem.mask(state).tolist() == [[True, True, False, True]]  # 1.41 + 1 + 1 = 3.41
    state = problem.step(state, torch.tensor([3]))
    assert problem.mask(state).tolist() == [[True, False, False, False]]
    state = problem.step(state, torch.tensor([0]))
    assert problem.done(state).item()
    assert problem.objective(state).item() == 3  # the depot's prize is collected, too
    assert state.length.item() == pytest.approx(2 + 2**0.5)


def test_a_tour_that_just_fits_is_allowed():
    state = OP().instances(SQUARE, torch.ones(1, 4), 4.0)
    end = replay(OP(), state, torch.tensor([[1, 2, 3, 0]]), torch.tensor([3]))
    assert OP().mask(end).tolist() == [[True, False, False, False]]
    assert OP().mask(replay(OP(), state, torch.tensor([[1, 2]]), torch.tensor([2])))[0, 3].item()


@pytest.mark.parametrize("problem", [OP(8), OP(6, "uniform", 1.0), OP(5, "constant", 0.3)])
def test_it_keeps_the_contract(problem):
    check_problem(problem)


@pytest.mark.parametrize("problem", [OP(20), OP(12, "uniform", 0.7), OP(9, "constant", 5.0)])
@pytest.mark.parametrize("whole", [True, False])
def test_random_tours_are_worth_what_the_verifier_says(problem, whole):
    state, actions, end = walks(problem, 300, whole=whole)
    for row, sequence in enumerate(actions.tolist()):
        verdict = verify(arrays(state, row), [action for action in sequence if action >= 0])
        assert verdict.feasible, verdict.reason
        assert verdict.objective == pytest.approx(problem.objective(end)[row].item(), abs=1e-9)


def test_a_prefix_is_what_a_replay_comes_to():
    problem = OP(12)
    state, actions, _ = walks(problem, 30)
    steps = torch.arange(30) % (actions > 0).sum(1)
    quick, slow = problem.prefix(state, actions, steps), replay(problem, state, actions, steps)
    for name, tensor in quick.tensors().items():
        torch.testing.assert_close(tensor, getattr(slow, name), rtol=0, atol=1e-12)


def test_examples_say_how_a_tour_goes_on():
    problem = OP(12)
    state, actions, _ = walks(problem, 200)
    examples = problem.examples(state, actions, generator=torch.Generator().manual_seed(0))
    assert bool(problem.mask(examples.state).gather(1, examples.action[:, None]).all())
    assert bool((examples.action > 0).sum() >= 199)
    forward = actions[:, 0] == examples.action
    assert 0 < int(forward.sum()) < 200


def test_no_example_ends_a_tour_while_a_node_is_within_reach():
    problem = OP(12)
    state, actions, _ = walks(problem, 200, whole=False)
    examples = problem.examples_after(state, actions, (actions > 0).sum(1), generator=torch.Generator().manual_seed(0))
    left = examples.state.choosable.any(1)
    assert 0 < int(left.sum()) < 200
    assert torch.equal(examples.action > 0, left)


def test_a_tour_the_other_way_round_is_worth_the_same():
    problem = OP(12)
    state, actions, end = walks(problem, 50)
    back = turned(actions, torch.arange(50) % 2 == 0)
    assert torch.equal(back[1::2], actions[1::2])
    assert not torch.equal(back, actions)
    for found in (back, problem.reencoded(state, actions, seeds=torch.arange(50)).actions):
        again = replay(problem, state, found, (found >= 0).sum(1))
        assert bool(problem.done(again).all())
        torch.testing.assert_close(problem.objective(again), problem.objective(end))


def test_augmentations_have_the_same_tours():
    problem = OP(8)
    state, actions, end = walks(problem, 20)
    forms = problem.augmentations(state, 8, seeds=torch.arange(20))
    assert forms.count == 8
    assert torch.equal(forms.state.nodes[::8], state.nodes)
    same = replay(problem, forms.state, actions.repeat_interleave(8, 0), (actions >= 0).sum(1).repeat_interleave(8))
    torch.testing.assert_close(same.length, end.length.repeat_interleave(8))


def test_listed_distances_count_and_not_places():
    ways = torch.tensor([[[0, 5, 9], [5, 0, 9], [9, 9, 0]]])
    state = OP().instances(torch.zeros(1, 3, 2), torch.tensor([[0.0, 1.0, 7.0]]), 22, ways)
    assert OP().mask(state).tolist() == [[True, True, True]]
    assert OP().mask(OP().step(state, torch.tensor([1]))).tolist() == [[True, False, False]]
    instance = {"nodes": np.zeros((3, 2)), "prizes": [0, 1, 7], "budget": 22, "distances": ways[0].numpy()}
    assert verify(instance, [2, 0]).objective == 7
    assert "23 long, more than the budget 22" in verify(instance, [1, 2, 0]).reason


@pytest.mark.parametrize(
    ("stops", "reason"),
    [
        ([], "does not end at the depot"),
        ([1, 2], "does not end at the depot"),
        ([1, 1, 0], "node 1 is visited again at position 1"),
        ([0, 1, 0], "node 0 at position 0 is no customer"),
        ([4, 0], "node 4 at position 0 is no customer: they are 1 .. 3"),
        ([1, 2, 3, 0], "the tour is 4 long, more than the budget 3.9"),
    ],
)
def test_what_is_no_tour_is_infeasible(stops, reason):
    verdict = verify({"nodes": SQUARE[0].numpy(), "prizes": np.ones(4), "budget": np.array(3.9)}, stops)
    assert not verdict.feasible
    assert reason in verdict.reason


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gives_a_tour(rule):
    for prizes in ("constant", "uniform", "distance"):
        given = OPGenerator(12, prizes, None, 10).generate()
        for row in range(10):
            verdict = verify(given.instance(row), RULES[rule][1](given.instance(row)))
            assert verdict.feasible, verdict.reason
            assert verdict.objective > 0


def test_rules_are_no_better_than_the_best_tour():
    given = OPGenerator(5, "uniform", 1.5, 4).generate()
    for row in range(4):
        most = best_of_all(given.instance(row))
        found = [verify(given.instance(row), rule(given.instance(row))).objective for _, rule in RULES.values()]
        assert max(found) <= most + 1e-9
        assert max(found) >= 0.7 * most


def test_instances_are_those_of_kool_et_al():
    """As their public code draws them with numpy's seed 1234."""
    given = OPGenerator(20, "distance", None, 3, 1234).generate()
    random = np.random.RandomState(1234)
    depots, places = random.uniform(size=(3, 2)), random.uniform(size=(3, 20, 2))
    assert np.array_equal(given.arrays["nodes"][:, 0], depots)
    assert np.array_equal(given.arrays["nodes"][:, 1:], places)
    away = np.linalg.norm(depots[:, None] - places, axis=-1)
    assert np.array_equal(given.arrays["prizes"][:, 1:], (1 + (away / away.max(1, keepdims=True) * 99).astype(int)) / 100)
    drawn = OPGenerator(20, "uniform", None, 3, 1234).generate().arrays["prizes"][:, 1:]
    assert np.array_equal(drawn, (1 + random.randint(0, 100, (3, 20))) / 100)
    assert [usual_budget(count) for count in (20, 50, 100)] == [2, 3, 4]
    assert STANDARD["op20"] == OPGenerator(20, "distance", None, 10_000, 1234)
    assert len(STANDARD) == 9


@pytest.mark.parametrize(
    ("prizes", "budget", "message"),
    [
        ([[0.0, -1.0]], 1.0, "`prizes` must be at least 0, got -1"),
        ([[0.0, float("nan")]], 1.0, "`prizes` must be finite"),
        ([[0.0, 1.0]], -1.0, "`budget` must be at least 0, got -1"),
        ([[0.0, 1.0, 1.0]], 1.0, "`prizes` must have the shape"),
    ],
)
def test_impossible_instances_are_refused(prizes, budget, message, unchecked):
    with pytest.raises(SettingsError, match=message):
        OP().instances(torch.zeros(1, 2, 2), torch.tensor(prizes), budget)


@pytest.mark.parametrize("settings", [{"prizes": "rich"}, {"budget": 0.0}, {"customers": 0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(SettingsError, match=f"`{next(iter(settings))}` must be"):
        OP(**settings)
