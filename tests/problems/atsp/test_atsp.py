"""The travelling salesman on a matrix: the problem, its symmetries, rules and experts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from gumbeldore import check_problem
from gumbeldore.errors import SettingsError
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search import compiling
from gumbeldore.local_search.assignment import assign
from gumbeldore.problem import replay
from gumbeldore.problems import ATSP
from gumbeldore.problems.atsp.baselines import BASELINES, greedy_edge, nearest_neighbour, patching
from gumbeldore.problems.atsp.instances import STANDARD, ATSPGenerator
from gumbeldore.problems.atsp.known import reference_lengths
from gumbeldore.problems.atsp.problem import closed
from gumbeldore.problems.tours import verify_by_matrix

needs_compiler = pytest.mark.skipif(not compiling.available(), reason="the local search is not compiled")


def tours(problem, count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    state = problem.generate(count, generator=generator)
    return state, 1 + torch.rand(count, problem.cities - 1, generator=generator).argsort(1)


def value(problem, state, actions):
    return problem.objective(replay(problem, state, actions, torch.full((len(actions),), actions.shape[1])))


def optimum(matrix):
    count = len(matrix)
    ways = np.array([[0, *rest] for rest in permutations(range(1, count))])
    return matrix[ways, np.roll(ways, -1, 1)].sum(1).min()


def length(matrix, actions):
    verdict = verify_by_matrix({"distances": matrix}, actions)
    assert verdict.feasible, verdict.reason
    return -verdict.objective


@pytest.mark.parametrize("problem", [ATSP(5), ATSP(6)])
def test_it_keeps_the_contract(problem):
    check_problem(problem)


@pytest.mark.parametrize("cities", [3, 8, 30])
def test_random_tours_are_worth_what_the_verifier_says(cities):
    problem = ATSP(cities)
    state, actions = tours(problem, 300)
    objective = value(problem, state, actions)
    for row, order in enumerate(actions.tolist()):
        assert -objective[row].item() == pytest.approx(length(state.distances[row].numpy(), order), abs=1e-12)


def test_the_best_of_all_tours_is_the_optimum_by_enumeration():
    problem = ATSP(6)
    state, _ = tours(problem, 3)
    every = torch.tensor(list(permutations(range(1, 6))))
    for row in range(3):
        found = value(problem, state.rows(torch.full((len(every),), row)), every)
        assert -found.max().item() == pytest.approx(optimum(state.distances[row].numpy()))


def test_no_detour_is_shorter_than_the_way():
    state, _ = tours(ATSP(12), 4)
    matrix = state.distances
    detours = matrix[:, :, :, None] + matrix[:, None]
    assert bool((matrix <= detours.amin(2) + 1e-12).all())
    assert bool((matrix.diagonal(dim1=1, dim2=2) == 0).all())
    assert not torch.equal(matrix, matrix.mT)
    assert torch.equal(closed(matrix), matrix)


def test_generated_sets_can_be_repeated_with_numpy():
    given = ATSPGenerator(5, 2, 7).generate().arrays["distances"]
    drawn = np.random.RandomState(7).uniform(size=(2, 5, 5))
    drawn[:, range(5), range(5)] = 0
    for _ in range(5):
        drawn = np.minimum(drawn, (drawn[:, :, :, None] + drawn[:, None]).min(2))
    assert np.allclose(given, drawn, atol=1e-15)
    assert len(STANDARD["atsp20"].generate()) == 1000


@needs_compiler
def test_reference_lengths_lie_above_the_bound_of_assignments_and_below_patched_tours():
    lengths, drawn = reference_lengths("atsp50"), STANDARD["atsp50"].generate().arrays["distances"][:40]
    found = assign(drawn)
    for length_known, matrix, prices, tour in zip(lengths, drawn, found.prices, found.tour, strict=False):
        assert prices.sum() - 1e-9 <= length_known <= matrix[tour, np.roll(tour, -1)].sum() + 1e-9
    assert (len(lengths), len(reference_lengths("atsp100"))) == (500, 128)


def test_tours_of_other_starts_and_of_the_transposed_matrix_are_tours_of_the_matrix():
    problem = ATSP(7)
    state, _ = tours(problem, 6)
    forms = problem.augmentations(state, 9, seeds=torch.arange(6))
    assert forms.count == 9
    assert set((forms.tag % 2).tolist()) == {0, 1}
    free = torch.rand(54, 7, generator=torch.Generator().manual_seed(1))
    free[torch.arange(54), forms.tag // 2] = -1
    actions = free.argsort(1)[:, 1:]
    back = problem.inverse_transform(forms.state, forms.tag, actions)
    rows = torch.arange(6).repeat_interleave(9)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(actions, back)
    original = problem.inverse_transform(state.rows(rows), forms.tag, actions)
    torch.testing.assert_close(value(problem, state.rows(rows), original), value(problem, forms.state, actions))


def test_a_reencoded_tour_is_worth_the_same():
    problem = ATSP(7)
    state, actions = tours(problem, 20)
    again = problem.reencoded(state, actions, seeds=torch.arange(20))
    torch.testing.assert_close(value(problem, again.state, again.actions), value(problem, state, actions))
    assert set((again.tag % 2).tolist()) == {0, 1}


def test_examples_go_along_the_tour_in_the_direction_of_their_matrix():
    problem = ATSP(9)
    state, actions = tours(problem, 40)
    for seed in range(5):
        found = problem.examples(state, actions, generator=torch.Generator().manual_seed(seed))
        for row in range(40):
            tour = [0, *actions[row].tolist()]
            here, there = int(found.state.current[row]), int(found.action[row])
            turned = not torch.equal(found.state.distances[row], state.distances[row])
            step = -1 if turned else 1
            assert tour[(tour.index(here) + step) % 9] == there
            assert not found.state.visited[row, there]


@needs_compiler
def test_local_search_solves_small_instances_to_optimality_and_leaves_the_first_actions():
    problem = ATSP(7)
    state, actions = tours(problem, 10)
    found = value(problem, state, problem.local_search(state, actions, effort=10, seeds=torch.arange(10)))
    for row in range(10):
        assert -found[row].item() == pytest.approx(optimum(state.distances[row].numpy()))
    for kept in (1, 3, 5, 6):
        made = problem.local_search(state, actions, effort=3, seeds=torch.arange(10), kept=kept)
        assert torch.equal(made[:, :kept], actions[:, :kept])
        assert torch.equal(made.sort(1).values, torch.arange(1, 7).expand(10, -1))
        assert bool((value(problem, state, made) >= value(problem, state, actions)).all())


@needs_compiler
def test_local_search_gives_the_same_tour_in_any_batch():
    problem = ATSP(15)
    state, actions = tours(problem, 6)
    found = problem.local_search(state, actions, effort=3, seeds=torch.arange(6))
    alone = problem.local_search(state.rows(slice(4, 5)), actions[4:5], effort=3, seeds=torch.tensor([4]))
    assert torch.equal(found[4:5], alone)


@needs_compiler
@pytest.mark.parametrize("rule", ["nearest-neighbour", "greedy-edge", "patching", "assignments", "local-search"])
def test_every_rule_gives_a_tour(rule):
    given = ATSPGenerator(9, 10).generate()
    for row in range(10):
        actions = BASELINES[rule].solve(given.instance(row), Limit(None, 1), 0)
        assert length(given.arrays["distances"][row], actions) >= optimum(given.arrays["distances"][row]) - 1e-9


@needs_compiler
def test_rules_are_as_good_as_their_names():
    given = ATSPGenerator(60, 20).generate()
    means = {
        rule: np.mean(
            [
                length(given.arrays["distances"][row], BASELINES[rule].solve(given.instance(row), Limit(None, 5), 0))
                for row in range(20)
            ]
        )
        for rule in ("nearest-neighbour", "greedy-edge", "patching", "assignments", "local-search")
    }
    assert list(means) == sorted(means, key=lambda rule: -means[rule])
    assert means["assignments"] < 1.02 * means["local-search"]


def test_rules_by_hand():
    matrix = np.array([[0, 1, 9, 9], [9, 0, 9, 1], [1, 9, 0, 9], [9, 9, 2, 0.0]])
    assert nearest_neighbour({"distances": matrix}) == [1, 3, 2]
    assert greedy_edge({"distances": matrix}) == [1, 3, 2]


@needs_compiler
def test_two_cycles_are_joined_at_the_least_cost():
    matrix = np.full((4, 4), 10.0)
    for a, b in ((0, 1), (1, 0), (2, 3), (3, 2)):
        matrix[a, b] = 1
    matrix[1, 2], matrix[3, 0] = 2, 3
    assert patching({"distances": matrix}) == [1, 2, 3]


@pytest.mark.parametrize("solver", ["pyvrp", "or-tools", "cpsat"])
def test_outside_solvers_find_short_tours(solver):
    pytest.importorskip("ortools")
    pytest.importorskip("pyvrp")
    matrix = ATSPGenerator(7, 1, 3).generate().arrays["distances"][0]
    actions = BASELINES[solver].solve({"distances": matrix}, Limit(None, 200), 0)
    assert length(matrix, actions) == pytest.approx(optimum(matrix), abs=1e-5)


@pytest.mark.parametrize(("shape", "value"), [((1, 3, 4), 1.0), ((1, 2, 2), 1.0), ((1, 3, 3), float("nan"))])
def test_impossible_distances_are_refused(shape, value, unchecked):
    with pytest.raises(SettingsError, match="`distances` must"):
        ATSP().instances(torch.full(shape, value))
