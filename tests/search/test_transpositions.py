"""Transpositions: prefixes that lead to one state share its evaluation, and nothing else changes."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
import torch
from answers import differences, generator, instance_of
from lattice import DEPTH, PROBLEMS, HashPolicy, tsp_sight
from torch import Tensor
from toys import TablePolicy, TreeProblem, random_trees

from gumbeldore.conformance import check_problem
from gumbeldore.errors import ContractError
from gumbeldore.problem import replay
from gumbeldore.problems import CVRP, JSSP, TSP
from gumbeldore.search.expansion import Search
from gumbeldore.search.samplers import (
    BeamSearch,
    Greedy,
    Gumbeldore,
    Sampler,
    StochasticBeamSearch,
    TheoryGumbeldore,
    by_gumbels,
)
from gumbeldore.search.settings import SamplerSettings
from gumbeldore.search.trie import CODE, Known
from gumbeldore.solutions import Solutions

COUNTS = ("evaluations", "evaluations_shared", "evaluations_repeated")
SAMPLERS = [
    Gumbeldore(12, 4, sigma=1.0),
    StochasticBeamSearch(8, 3, nucleus=(0.9, 1.0), first_round_deterministic=True),
    TheoryGumbeldore(10, 2),
    BeamSearch(24),
    StochasticBeamSearch(24, 1),  # a single round keeps no priors
]
IDS = [f"{type(s).__name__} {i}" for i, s in enumerate(SAMPLERS)]


def both(sampler: Sampler, name: str, count: int = 5) -> tuple[Solutions, Solutions, HashPolicy, HashPolicy]:
    """The same search with the switch on and off, and the policies that it asked."""
    problem, sight = PROBLEMS[name]
    state = problem.generate(count, generator=generator(3))
    policies = [HashPolicy(problem, sight) for _ in range(2)]
    results = [
        dataclasses.replace(sampler, transpositions=switch)(problem, policy, state, seeds=torch.arange(count))  # type: ignore[type-var]
        for switch, policy in zip((True, False), policies, strict=True)
    ]
    return results[0], results[1], policies[0], policies[1]


def total(solutions: Solutions) -> Tensor:
    return solutions.diagnostics.evaluations + solutions.diagnostics.evaluations_shared


class TestNothingElseChanges:
    @pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
    @pytest.mark.parametrize("name", PROBLEMS)
    def test_the_answer_is_the_same_bit_for_bit(self, name, sampler):
        on, off, asked, asked_more = both(sampler, name)
        assert differences(on, off, ignore=COUNTS) == []
        assert int(off.diagnostics.evaluations_shared.sum()) == 0
        assert torch.equal(total(on), total(off))
        assert len(asked.seen) == int(on.diagnostics.evaluations.sum())
        assert len(asked_more.seen) == int(off.diagnostics.evaluations.sum())
        assert set(asked.seen) == set(asked_more.seen)

    @pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "gomoku"])
    def test_a_confident_policy_is_spared_evaluations(self, name):
        on, *_ = both(SAMPLERS[0], name)
        assert int(on.diagnostics.evaluations_shared.sum()) > 0

    @pytest.mark.parametrize("memory", [120_000, 1])
    @pytest.mark.parametrize("name", ["lattice", "tsp", "jssp"])
    def test_also_in_chunks_and_where_priors_are_not_kept(self, name, memory):
        sampler = Gumbeldore(12, 3, sigma=1.0)
        whole, *_ = both(sampler, name)
        on, off, asked, _ = both(dataclasses.replace(sampler, memory=memory), name)
        assert differences(on, off, ignore=COUNTS) == []
        assert differences(on, whole, ignore=(*COUNTS, "evaluations_cached", "evaluations_forced")) == []
        assert torch.equal(total(on), total(off))
        assert int(on.diagnostics.evaluations_shared.sum()) > 0
        if memory == 1:
            assert int(on.diagnostics.evaluations_cached.sum()) == 0
            assert len(asked.seen) > len(set(asked.seen))  # every round anew

    @pytest.mark.parametrize("name", ["tsp", "jssp"])
    def test_an_instance_gives_the_same_answer_and_counts_alone_and_among_others(self, name):
        problem, sight = PROBLEMS[name]
        state, sampler = problem.generate(6, generator=generator(5)), SAMPLERS[0]
        whole = sampler(problem, HashPolicy(problem, sight), state, seeds=torch.arange(6))
        for i in range(6):
            alone = sampler(problem, HashPolicy(problem, sight), state.rows(slice(i, i + 1)).compact(), seeds=torch.tensor([i]))
            assert differences(alone, instance_of(whole, i)) == []

    def test_a_problem_without_keys_is_searched_as_before(self):
        state = random_trees(20, 3, 3, generator=generator())
        on, off = (
            Gumbeldore(4, 3, transpositions=switch)(TreeProblem(), TablePolicy(), state, seeds=torch.arange(20))
            for switch in (True, False)
        )
        assert differences(on, off) == []
        assert int(on.diagnostics.evaluations_shared.sum()) == 0

    def test_a_beam_of_one_asks_for_no_keys(self):
        class NoKeys(TSP):
            def key(self, state):
                raise AssertionError("nobody can meet")

        problem = NoKeys(6)
        Greedy()(problem, HashPolicy(problem, tsp_sight), problem.generate(3, generator=generator()), seeds=torch.arange(3))


class TestOnceForEachState:
    @pytest.mark.parametrize("name", PROBLEMS)
    def test_the_policy_sees_a_state_at_most_once_over_beams_and_rounds(self, name):
        _, _, asked, asked_more = both(Gumbeldore(12, 4, sigma=1.0), name)
        assert len(set(asked.seen)) == len(asked.seen)
        if name != "gomoku":
            assert len(set(asked_more.seen)) < len(asked_more.seen)

    def test_equal_states_of_different_instances_are_not_confused(self):
        """All instances have the same cities; a policy that knows the instance's number tells them apart."""
        problem = TSP(7)
        state = problem.instances(torch.rand(1, 7, 2, generator=generator()).expand(4, 7, 2).contiguous())

        def sight(state):
            return [*tsp_sight(state), state.instance[:, None]]

        sampler = Gumbeldore(12, 3)
        together = sampler(problem, HashPolicy(problem, sight), state, seeds=torch.zeros(4, dtype=torch.long))
        off = dataclasses.replace(sampler, transpositions=False)
        apart = off(problem, HashPolicy(problem, sight), state, seeds=torch.zeros(4, dtype=torch.long))
        assert differences(together, apart, ignore=COUNTS) == []
        assert len(together.log_prob[:, 0].unique()) == 4

    def test_on_a_lattice_the_counts_are_known(self):
        """A beam of all 2^t prefixes meets in t + 1 points at depth t: 1 + 2 + 3 + 4 evaluations for 1 + 2 + 4 + 8 prefixes."""
        problem, sight = PROBLEMS["lattice"]
        policy = HashPolicy(problem, sight, confidence=1.0)
        state = problem.generate(3, generator=generator())
        solutions = StochasticBeamSearch(16, 1)(problem, policy, state, generator=generator())
        assert solutions.diagnostics.evaluations.tolist() == [10] * 3
        assert solutions.diagnostics.evaluations_shared.tolist() == [5] * 3
        assert sorted(policy.seen) == [(i, r, u) for i in range(3) for r in range(DEPTH) for u in range(DEPTH - r)]

    def test_only_priors_are_shared(self):
        """Mass and bonuses belong to prefixes: all 16 paths come exactly once, with their own probability and reward."""
        problem, sight = PROBLEMS["lattice"]
        policy = HashPolicy(problem, sight, confidence=5.0)
        state = problem.generate(3, generator=generator())
        solutions = Gumbeldore(3, 8, sigma=3.0)(problem, policy, state, generator=generator())
        assert solutions.filled.sum(1).tolist() == [16] * 3
        assert solutions.diagnostics.evaluations.tolist() == [10] * 3
        assert solutions.diagnostics.remaining_mass.tolist() == [0] * 3
        for i in range(3):
            actions, full = solutions.actions[i], solutions.filled[i]
            assert len({tuple(row) for row in actions[full].tolist()}) == 16
            walker = state.rows(torch.full((16,), i))
            end = replay(problem, walker, actions[full], torch.full((16,), DEPTH))
            assert torch.equal(problem.objective(end), solutions.objective[i][full])
            log_prob = torch.zeros(16, dtype=torch.float64)
            for action in actions[full].unbind(1):
                log_prob += policy(walker, None).log_softmax(1).gather(1, action[:, None]).squeeze(1)
                walker = problem.step(walker, action)
            torch.testing.assert_close(solutions.log_prob[i][full], log_prob, rtol=0, atol=1e-12)

    def test_two_prefixes_meet_in_a_later_round(self):
        """Round one goes 0-1-2, round two 0-2-1: they are one node's two ways only after city 3, whose prior is borrowed."""
        problem = TSP(6)
        state = problem.generate(1, generator=generator())
        policy = HashPolicy(problem, tsp_sight)
        search = Search(problem, policy, state, 2)

        def along(*route: int):
            def perturb(total, score, depth):
                wanted = torch.full_like(total, -torch.inf)
                wanted[:, :, route[depth]] = 0.0
                return wanted + total

            return perturb

        first = search.round(1, along(1, 2, 3, 4, 5))
        made = search.evaluator.made.clone()
        search.trie.remove(first.leaf, first.leaf_depth, first.filled)
        search.round(1, along(2, 1, 3, 4, 5))
        assert made.tolist() == [4]
        assert (search.evaluator.made - made).tolist() == [2]  # after 0-2 and 0-2-1
        assert search.evaluator.shared.tolist() == [1]  # after 0-2-1-3
        assert search.evaluator.forced.tolist() == [2]
        assert search.evaluator.cached.tolist() == [1]  # the root
        table = search.trie.prior[3]
        assert table is not None
        assert torch.equal(table[0, 0], table[0, 1])


class TestKeys:
    def test_keys_of_the_tsp_are_equal_exactly_where_the_futures_are(self):
        problem = TSP(7)
        state = problem.generate(1, generator=generator()).rows(torch.zeros(3000, dtype=torch.long))
        lots = torch.rand(3000, 6, generator=generator(1)).argsort(1) + 1
        state = replay(problem, state, lots, torch.arange(3000) % 6)
        futures = list(zip(map(tuple, state.visited.tolist()), state.current.tolist(), strict=True))
        keys = list(map(tuple, problem.key(state).tolist()))
        pairs = set(zip(futures, keys, strict=True))
        assert len(pairs) < 3000
        assert len(pairs) == len(set(futures)) == len(set(keys)) == len({a for a, _ in keys}) == len({b for _, b in keys})

    def test_where_the_tour_must_return_to_is_part_of_the_key(self):
        problem = TSP(5)
        points = torch.rand(1, 5, 2, generator=generator())
        ways = [(0, [1, 2, 3]), (0, [2, 1, 3]), (1, [0, 2, 3]), (0, [1, 3, 2])]
        keys = [
            problem.key(replay(problem, problem.instances(points, start), torch.tensor([way]), torch.tensor([3])))
            for start, way in ways
        ]
        assert torch.equal(keys[0], keys[1])
        assert not any(bool((keys[0] == other).any()) for other in keys[2:])

    @pytest.mark.parametrize("name", PROBLEMS)
    def test_every_problem_has_keys_that_keep_the_contract(self, name):
        problem, _ = PROBLEMS[name]
        assert problem.key(problem.generate(2, generator=generator())) is not None
        check_problem(problem, generator=generator(7), rows=24)

    def test_keys_that_cover_too_little_are_found_by_the_check(self, unchecked):
        class WithoutTheLoad(CVRP):
            def key(self, state):
                return super().key(replace(state, remaining=torch.zeros_like(state.remaining)))

        class WithoutTheCity(TSP):
            def key(self, state):
                return super().key(replace(state, current=state.start))

        class WithoutTheTimes(JSSP):
            def key(self, state):
                return super().key(replace(state, available=torch.zeros_like(state.available)))

        for broken in (WithoutTheLoad(6, capacity=12), WithoutTheCity(6), WithoutTheTimes(3, 3)):
            with pytest.raises(ContractError, match=rf"`{type(broken).__name__}\.key` is equal for rows whose"):
                check_problem(broken)

    def test_rows_with_another_mask_do_not_borrow(self):
        """A key that collides for all rows after one step. They differ in their masks, which tells the search."""

        class Collides(TSP):
            def key(self, state):
                return super().key(state) * (state.visited.sum(1, keepdim=True) > 2)

        problem, sampler = Collides(7), Gumbeldore(12, 4, sigma=1.0)
        state = problem.generate(4, generator=generator())
        on, off, right = (
            dataclasses.replace(sampler, transpositions=switch)(p, HashPolicy(p, tsp_sight), state, seeds=torch.arange(4))
            for p, switch in ((problem, True), (problem, False), (TSP(7), True))
        )
        assert differences(on, off, ignore=COUNTS) == []
        assert differences(on, right) == []


class TestRepeats:
    def test_they_are_what_a_dictionary_finds(self):
        for seed in range(20):
            numbers = torch.randint(3, (60, 3), generator=generator(seed))  # many equal halves and few equal wholes
            known = Known.of(numbers[:, 0], numbers[:, 1:], torch.arange(60))
            distinct, again, first = known.repeats()
            place: dict[tuple[int, ...], int] = {}
            expected = {}
            for i, row in enumerate(map(tuple, numbers.tolist())):
                if place.setdefault(row, i) != i:
                    expected[i] = place[row]
            assert dict(zip(again.tolist(), first.tolist(), strict=True)) == expected
            assert sorted(distinct.tolist()) == sorted(place.values())
            assert bool((known.code[distinct].diff() > 0).all())

    def test_states_whose_codes_collide_stay_different(self):
        key = torch.tensor([[5, 7], [5 - CODE[0], 8], [5, 7], [5 - CODE[0], 8]])
        known = Known.of(torch.zeros(4, dtype=torch.long), key, torch.arange(4))
        assert len(known.code.unique()) == 1
        _, again, first = known.repeats()
        assert (again.tolist(), first.tolist()) == ([2], [0])


def test_the_switch_is_a_setting_of_the_command_line():
    for method in ("gumbeldore", "theory", "outcome", "without-replacement"):
        for switch in (True, False):
            sampler = SamplerSettings(method=method, transpositions=switch).build()
            assert isinstance(sampler, StochasticBeamSearch)
            assert sampler.transpositions is switch
    assert SamplerSettings().transpositions


def test_a_round_from_a_deeper_node_shares_with_earlier_rounds():
    """States below a start of its own are known from the round before, wherever that began."""
    problem = TSP(7)
    state = problem.generate(3, generator=generator())
    made = []
    for switch in (True, False):
        search = Search(problem, HashPolicy(problem, tsp_sight, 3.0), state, 40, transpositions=switch)
        first = search.round(20, by_gumbels(torch.arange(3), 0))
        search.trie.remove(first.leaf, first.leaf_depth, first.filled)
        start = (problem.step(state, first.actions[0, :, 0]), first.nodes[0, :, 0])
        second = search.round(20, by_gumbels(torch.arange(3), 1), depth=1, start=start)
        made.append((search.evaluator.made, search.evaluator.shared, second.log_prob, second.actions))
    assert torch.equal(made[0][0] + made[0][1], made[1][0])
    assert int(made[0][1].sum()) > 0
    assert torch.equal(made[0][2], made[1][2])
    assert torch.equal(made[0][3], made[1][3])
