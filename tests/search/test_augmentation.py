"""Augmentations of an instance as the first level of its trie."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from answers import differences, generator, instance_of
from toys import ManyFacedTree, TablePolicy, Tree, TreeProblem, check_leaves, chi_square_p, copies, random_trees

from gumbeldore.errors import SettingsError
from gumbeldore.policies import CVRPPolicy, JSSPPolicy, TSPPolicy
from gumbeldore.problem import replay
from gumbeldore.problems import CVRP, JSSP, TSP
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Gumbeldore, StochasticBeamSearch
from gumbeldore.search.stepping import StepAndReconsider

PROBLEM = ManyFacedTree()
SAMPLERS = [
    BeamSearch(2, augmentations=3),
    StochasticBeamSearch(4, 3, augmentations=4),
    Gumbeldore(4, 3, sigma="auto", nucleus="auto", augmentations=2),
    StepAndReconsider(4, 2, augmentations=2),
    WithReplacement(9, augmentations=3),
    Adaptive(24),
]
IDS = [type(sampler).__name__ for sampler in SAMPLERS]


def routes(seed: int = 0):
    return [
        (TSP(7), TSPPolicy(16, 1, 2, 32), 5, 56),
        (CVRP(6, 12), CVRPPolicy(16, 1, 2, 32), 4, 56),
        (JSSP(4, 3), JSSPPolicy(16, 1, 2, 32), 4, 2),
    ]


@pytest.mark.parametrize("case", range(3), ids=["tsp", "cvrp", "jssp"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_solutions_come_back_in_the_instances_own_terms(sampler, case: int) -> None:
    torch.manual_seed(0)
    problem, policy, count, _ = routes()[case]
    state = problem.generate(count, generator=generator(1))
    found = sampler(problem, policy, state, generator=generator(2))
    assert found.filled.any(1).all()
    for row in range(count):
        for slot in found.filled[row].nonzero().squeeze(1).tolist():
            actions = found.actions[row, slot][None]
            steps = (actions >= 0).sum(1)
            end = replay(problem, state.rows(torch.tensor([row])), actions, steps)
            assert bool(problem.done(end))
            assert problem.objective(end).item() == pytest.approx(found.objective[row, slot].item(), rel=1e-5)


@pytest.mark.parametrize("case", range(3), ids=["tsp", "cvrp", "jssp"])
def test_variants_are_different_forms_and_the_first_is_the_instance_itself(case: int) -> None:
    problem, _, count, most = routes()[case]
    state = problem.generate(count, generator=generator(3))
    augmentations = problem.augmentations(state, 100, seeds=torch.arange(count))
    assert augmentations.count == most
    first = augmentations.state.rows(torch.arange(0, count * augmentations.count, augmentations.count)).compact()
    assert all(torch.equal(a, b) for a, b in zip(first.tensors().values(), state.tensors().values(), strict=True))
    forms = {
        tuple(
            t[index].flatten().tolist().__repr__()
            for t in augmentations.state.tensors().values()
            if t.shape[0] == len(augmentations.tag)
        )
        for index in range(augmentations.count)
    }
    assert len(forms) == augmentations.count


@pytest.mark.parametrize(("problem", "kinds"), [(TSP(7), 7), (CVRP(6, 12), 7)], ids=["tsp", "cvrp"])
def test_variants_begin_elsewhere_before_they_begin_again_at_the_same_place(problem, kinds: int) -> None:
    state = problem.generate(20, generator=generator(3))
    augmentations = problem.augmentations(state, 3 * kinds, seeds=torch.arange(20))
    tags = augmentations.tag.view(20, 3, kinds)
    assert bool((tags.sort(2).values == torch.arange(kinds)).all())
    assert len({tuple(row) for row in tags[:, 0].tolist()}) > 10  # in random order


def test_a_variant_of_the_cvrp_that_has_served_its_only_customer_is_a_solution() -> None:
    problem, state = CVRP(1, 12), CVRP(1, 12).generate(3, generator=generator(3))
    found = BeamSearch(4, augmentations=4)(problem, CVRPPolicy(16, 1, 2, 32), state, generator=generator(2))
    assert (found.best_actions == 1).all()


@pytest.mark.parametrize(
    "sampler", [WithReplacement(2, augmentations=20), StochasticBeamSearch(2, 1, augmentations=20)], ids=["wr", "wor"]
)
@pytest.mark.parametrize("seed", range(4))
def test_variants_of_the_cvrp_serve_everybody_also_where_none_of_them_needs_all_actions(sampler, seed: int) -> None:
    problem, state = CVRP(6, 12), CVRP(6, 12).generate(1, generator=generator(seed))
    found = sampler(problem, CVRPPolicy(16, 1, 2, 32), state, generator=generator(seed))
    assert ((found.actions // 2).sort(2).values == torch.arange(6)).all()


def test_variants_are_those_of_initial_states() -> None:
    sampler = BeamSearch(1, augmentations=3)
    for problem, policy, action in ((TSP(7), TSPPolicy(16, 1, 2, 32), 3), (CVRP(6, 12), CVRPPolicy(16, 1, 2, 32), 3)):
        later = problem.step(problem.generate(2, generator=generator(3)), torch.full((2,), action))
        with pytest.raises(SettingsError, match="`augmentations` needs initial states"):
            sampler(problem, policy, later, generator=generator(1))


def test_a_beam_search_on_augmentations_is_one_on_each_of_them() -> None:
    state = random_trees(12, 3, 4, generator=generator(4), leaf=0.0, forced=0.0)
    together = BeamSearch(3, augmentations=4)(PROBLEM, TablePolicy(), state, generator=generator(5))
    leaves = check_leaves(state, together.actions, together.filled)
    augmentations = PROBLEM.augmentations(state, 4, seeds=torch.arange(12))
    for row in range(12):
        expected: Counter[int] = Counter()
        for augmentation in range(4):
            one = augmentations.state.rows(torch.tensor([row * 4 + augmentation])).compact()
            alone = BeamSearch(3)(TreeProblem(), TablePolicy(), one, generator=generator(6))
            expected.update(check_leaves(one, alone.actions, alone.filled)[alone.filled].tolist())
        assert Counter(leaves[row][together.filled[row]].tolist()) == expected


def test_all_sequences_of_all_variants_come_once_if_enough_are_asked_for() -> None:
    state = random_trees(6, 3, 3, generator=generator(7))
    found = StochasticBeamSearch(40, 3, augmentations=3)(PROBLEM, TablePolicy(), state, generator=generator(8))
    leaves = check_leaves(state, found.actions, found.filled)
    for row in range(6):
        every = [Tree.of(state, row).node(leaf) for leaf, _ in Tree.of(state, row).leaves()]
        assert Counter(leaves[row][found.filled[row]].tolist()) == Counter(every * 3)
    assert found.diagnostics.remaining_mass.max().item() < 1e-9


def test_the_law_is_that_of_the_mixture_of_all_variants() -> None:
    state = random_trees(1, 3, 2, generator=generator(9), forced=0.0)
    many = copies(state, 4000)
    found = StochasticBeamSearch(1, 1, augmentations=2)(PROBLEM, TablePolicy(), many, generator=generator(10))
    nodes = check_leaves(many, found.actions, found.filled)[:, 0]
    law: dict[tuple[int, ...], float] = {}
    augmentations = PROBLEM.augmentations(state, 2, seeds=torch.zeros(1, dtype=torch.long))
    for augmentation in range(2):
        tree = Tree.of(augmentations.state, augmentation)
        for leaf, probability in tree.leaves():
            place = (tree.node(leaf),)
            law[place] = law.get(place, 0.0) + float(probability) / 2
    assert math.isclose(sum(law.values()), 1)
    assert chi_square_p(dict(Counter((node,) for node in nodes.tolist())), law) > 1e-4


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_an_instance_gives_the_same_answer_alone_and_among_others(sampler) -> None:
    state = random_trees(9, 3, 3, generator=generator(11), leaf=0.0, forced=0.0, keep=1.0)
    seeds = torch.randint(2**62, (9,), generator=generator(12))
    whole = sampler(PROBLEM, TablePolicy(), state, seeds=seeds)
    for row in range(0, 9, 2):
        alone = sampler(PROBLEM, TablePolicy(), state.rows(torch.tensor([row])).compact(), seeds=seeds[row : row + 1])
        assert differences(alone, instance_of(whole, row), any_rounds=sampler.by_horizon) == []


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_a_problem_without_variants_is_searched_as_it_is(sampler) -> None:
    state = random_trees(4, 3, 3, generator=generator(13))
    found = sampler(TreeProblem(), TablePolicy(), state, generator=generator(14))
    check_leaves(state, found.actions, found.filled)
    assert found.filled.any(1).all()


def test_a_reversed_shop_has_the_same_makespans_backwards() -> None:
    problem = JSSP(5, 4)
    state = problem.generate(6, generator=generator(15))
    augmentations = problem.augmentations(state, 2, seeds=torch.zeros(6, dtype=torch.long))
    actions = torch.arange(5).repeat(4)[torch.rand(12, 20, generator=generator(16)).argsort(1)]
    steps = torch.full((12,), 20)
    own = problem.inverse_transform(state.rows(torch.arange(6).repeat_interleave(2)), augmentations.tag, actions)
    ends = (
        replay(problem, augmentations.state, actions, steps),
        replay(problem, state.rows(torch.arange(6).repeat_interleave(2)), own, steps),
    )
    assert torch.equal(problem.objective(ends[0]), problem.objective(ends[1]))
