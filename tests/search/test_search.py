"""The search engine's promises: independence of the batch and of memory, few policy calls, any start, honest numbers."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from answers import differences, generator, instance_of
from toys import (
    DeadEndProblem,
    SmallBitesPolicy,
    TablePolicy,
    Tree,
    TreeProblem,
    TreeState,
    check_leaves,
    flat_tree,
    high_precision,
    leaf_counts,
    paths,
    random_trees,
)

from gumbeldore.errors import ContractError
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.advantage import min_max_normalised
from gumbeldore.search.expansion import Search
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import (
    BeamSearch,
    Greedy,
    Gumbeldore,
    Sampler,
    StochasticBeamSearch,
    TheoryGumbeldore,
)
from gumbeldore.search.scores import by_gumbels
from gumbeldore.search.stepping import StepAndReconsider

PROBLEM = TreeProblem()
SAMPLERS = [
    StochasticBeamSearch(4, 3),
    Gumbeldore(3, 3, sigma=2.0, nucleus=(0.7, 1.0)),
    Gumbeldore(5, 2, sigma=1.0, advantage=min_max_normalised(), first_round_deterministic=True),
    TheoryGumbeldore(4, 2, sigma=1.0),
    BeamSearch(3),
    Greedy(),
    WithReplacement(6),
    WithReplacement(5, nucleus=0.8),
    Gumbeldore(4, 3, sigma="auto", nucleus="auto"),
    StepAndReconsider(3, 1),
    StepAndReconsider(3, 2, nucleus="auto", sigma="auto"),
    Adaptive(12),
]
IDS = [f"{type(s).__name__} {i}" for i, s in enumerate(SAMPLERS)]


class TestIndependence:
    @pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
    @pytest.mark.parametrize(("actions", "depth", "dtype"), [(3, 3, torch.float32), (13, 2, torch.float64)])
    def test_an_instance_gives_the_same_answer_alone_and_among_others(self, sampler, actions, depth, dtype):
        """Bit for bit, also among instances of other depths and numbers of leaves."""
        state = random_trees(24, actions, depth, generator=generator(1), dtype=dtype, leaf=0.3, scale=2.0)
        seeds = torch.randint(2**62, (24,), generator=generator(2))
        whole = sampler(PROBLEM, TablePolicy(), state, seeds=seeds)
        for i in range(0, 24, 3):
            alone = sampler(PROBLEM, TablePolicy(), state.rows(torch.tensor([i])).compact(), seeds=seeds[i : i + 1])
            assert differences(alone, instance_of(whole, i), any_rounds=sampler.by_horizon) == []
        order = torch.randperm(24, generator=generator(3))
        shuffled = sampler(PROBLEM, TablePolicy(), state.rows(order), seeds=seeds[order])
        for place, i in enumerate(order.tolist()):
            assert differences(instance_of(shuffled, place), instance_of(whole, i), any_rounds=sampler.by_horizon) == []

    @pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
    def test_little_memory_gives_the_same_answer(self, sampler):
        """From everything at once to one instance at a time whose priors are not even kept."""
        state = random_trees(12, 3, 3, generator=generator(4), dtype=torch.float32, leaf=0.3)
        seeds = torch.arange(12)
        whole = sampler(PROBLEM, TablePolicy(), state, seeds=seeds)
        counts = ("evaluations", "evaluations_repeated", "evaluations_cached", "evaluations_forced")
        for memory in (40_000, 1):
            small = dataclasses.replace(sampler, memory=memory)
            part = small(PROBLEM, SmallBitesPolicy(), state, seeds=seeds)
            assert differences(whole, part, ignore=counts if memory == 1 else (), any_rounds=sampler.by_horizon) == []
        assert len(small.chunks(PROBLEM, state)) == 12
        total = sum(getattr(part.diagnostics, name) for name in counts if name != "evaluations_repeated")
        assert torch.equal(total, sum(getattr(whole.diagnostics, name) for name in counts))
        needed = part.diagnostics.evaluations - part.diagnostics.evaluations_repeated
        assert torch.equal(needed, whole.diagnostics.evaluations)

    def test_chunks_cover_the_batch_and_respect_memory(self):
        state = random_trees(50, 3, 3, generator=generator())
        sampler = StochasticBeamSearch(4, 2, memory=100_000)
        chunks = sampler.chunks(PROBLEM, state)
        assert [i for rows in chunks for i in range(50)[rows]] == list(range(50))
        sizes = [len(range(50)[rows]) for rows in chunks]
        assert 1 < len(chunks) < 50
        assert max(sizes) * sampler.instance_bytes(3, 3) <= 50_000

    def test_without_room_for_priors_they_are_computed_again(self):
        state = random_trees(5, 3, 3, generator=generator(4))
        kept, forgotten = (
            StochasticBeamSearch(3, 3, memory=memory)(PROBLEM, TablePolicy(), state, seeds=torch.arange(5)).diagnostics
            for memory in (1 << 30, 1)
        )
        assert int(kept.evaluations_cached.sum()) > 0
        assert int(forgotten.evaluations_cached.sum()) == 0
        assert bool((forgotten.evaluations >= kept.evaluations).all())

    def test_the_same_generator_state_gives_the_same_answer_and_another_does_not(self):
        state = random_trees(20, 3, 3, generator=generator())
        a, b, c = (Gumbeldore(2, 2)(PROBLEM, TablePolicy(), state, generator=generator(s)) for s in (7, 7, 8))
        assert differences(a, b) == []
        assert "actions" in differences(a, c)

    def test_the_stream_ends_with_the_answer_and_grows_by_rounds(self):
        state = random_trees(10, 3, 3, generator=generator())
        sampler, seeds = Gumbeldore(3, 4, sigma=1.0), torch.arange(10)
        parts = list(sampler.stream(PROBLEM, TablePolicy(), state, seeds))
        final = sampler(PROBLEM, TablePolicy(), state, seeds=seeds)
        assert differences(parts[-1], final, any_rounds=sampler.by_horizon) == []
        for index, part in enumerate(parts):
            assert torch.equal(part.objective, final.objective[:, : 3 * (index + 1)])
            assert part.diagnostics.mean.shape == (10, index + 1)

    @pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
    def test_rows_that_share_instances_are_searched_as_if_they_did_not(self, sampler):
        state = random_trees(9, 3, 3, generator=generator())
        shared, seeds = state.rows(torch.tensor([7, 3, 7])), torch.arange(3)
        *_, streamed = sampler.stream(PROBLEM, TablePolicy(), shared, seeds)
        assert (
            differences(streamed, sampler(PROBLEM, TablePolicy(), shared.compact(), seeds=seeds), any_rounds=sampler.by_horizon)
            == []
        )

    def test_seeds_may_be_a_list_and_a_number_stands_for_a_generator(self):
        state, sampler = random_trees(2, 3, 3, generator=generator()), StochasticBeamSearch(2, 2)
        listed, tensor = (sampler(PROBLEM, TablePolicy(), state, seeds=seeds) for seeds in ([3, 4], torch.tensor([3, 4])))
        assert differences(listed, tensor) == []
        numbered = sampler(PROBLEM, TablePolicy(), state, seeds=7)
        assert differences(numbered, sampler(PROBLEM, TablePolicy(), state, generator=generator(7))) == []

    def test_seeds_of_any_integer_type_give_the_same_answer(self):
        state, sampler = random_trees(9, 3, 3, generator=generator()), StochasticBeamSearch(2, 2)
        short, long = (
            sampler(PROBLEM, TablePolicy(), state, seeds=torch.arange(9, dtype=t)) for t in (torch.int32, torch.int64)
        )
        assert differences(short, long, any_rounds=sampler.by_horizon) == []

    @pytest.mark.parametrize(
        ("dtype", "accuracy"), [(torch.float64, 1e-13), (torch.float32, 1e-6), (torch.bfloat16, 1e-6), (torch.float16, 1e-6)]
    )
    def test_any_float_type_of_the_policy_will_do_also_after_forced_steps(self, dtype, accuracy):
        """Forced rows come before the policy shows its type, and in half precision probabilities would not add up."""
        state = random_trees(12, 3, 3, generator=generator(1), forced=0.5, dtype=dtype)
        for i in range(12):
            sampler, alone = StochasticBeamSearch(2, 6), state.rows(slice(i, i + 1))
            solutions = sampler(PROBLEM, TablePolicy(), alone, seeds=torch.tensor([i]))
            mass = solutions.log_prob.exp().sum() + solutions.diagnostics.remaining_mass
            assert float(mass) == pytest.approx(1, abs=accuracy, rel=0)

    @pytest.mark.parametrize("sampler", [Gumbeldore(2, 3), BeamSearch(2), WithReplacement(2)])
    def test_between_rounds_the_caller_keeps_its_gradient_mode_and_the_network_its_own(self, sampler):
        class Network(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.frozen, self.live = torch.nn.Dropout(), torch.nn.Dropout()
                self.frozen.eval()

            def prepare(self, state):
                return None

            def forward(self, state, context):
                assert not self.training
                assert not self.live.training
                assert not torch.is_grad_enabled()
                return state.logits[state.instance, state.node]

        network, state = Network(), random_trees(3, 3, 3, generator=generator())
        for _ in sampler.stream(PROBLEM, network, state, torch.arange(3)):
            assert torch.is_grad_enabled()
            assert network.training
            assert network.live.training
            assert not network.frozen.training


class TestPolicyCalls:
    @pytest.mark.parametrize("sampler", [StochasticBeamSearch(3, 4), Gumbeldore(2, 5, sigma=2.0), TheoryGumbeldore(4, 2)])
    def test_the_policy_sees_every_node_at_most_once(self, sampler):
        state = random_trees(40, 3, 3, generator=generator(5))
        policy = TablePolicy()
        numbers = sampler(PROBLEM, policy, state, generator=generator()).diagnostics
        assert policy.prepared == 1
        assert len(set(policy.seen)) == len(policy.seen)
        per_instance = torch.bincount(torch.tensor([i for i, _ in policy.seen]), minlength=40)
        assert torch.equal(numbers.evaluations, per_instance)
        assert sum(node == 0 for _, node in policy.seen) == int((state.allowed[:, 0].sum(1) > 1).sum())

    def test_it_sees_neither_finished_rows_nor_forced_ones(self):
        state = random_trees(40, 3, 3, generator=generator(5), forced=0.5)
        for sampler in (StochasticBeamSearch(3, 4), BeamSearch(4), WithReplacement(8)):
            policy = TablePolicy()
            sampler(PROBLEM, policy, state, generator=generator())
            assert all(int(state.allowed[i, node].sum()) > 1 for i, node in policy.seen)

    def test_expansions_are_either_made_or_cached_or_forced(self):
        """One round expands each distinct inner prefix of its beam; over rounds the three counters add up to all of them."""
        state = random_trees(30, 3, 3, generator=generator(6))
        search = Search(PROBLEM, TablePolicy(), state, 12)
        expanded = torch.zeros(30, dtype=torch.long)
        for index in range(3):
            before = search.trie.rest.clone()
            search.trie.rest.fill_(torch.nan)
            search.round(4, by_gumbels(torch.arange(30), index))
            touched = ~search.trie.rest[..., :-1].isnan()
            expanded += touched.sum((0, 2))
            search.trie.rest = search.trie.rest.where(~search.trie.rest.isnan(), before)
        numbers = search.evaluator
        assert torch.equal(numbers.made + numbers.cached + numbers.forced, expanded)

    def test_samples_with_replacement_share_their_prefixes(self):
        state = random_trees(10, 3, 3, generator=generator(5), leaf=0.0)
        policy = TablePolicy()
        solutions = WithReplacement(50)(PROBLEM, policy, state, generator=generator())
        assert len(set(policy.seen)) == len(policy.seen)
        numbers = solutions.diagnostics
        steps = (solutions.actions >= 0).sum((1, 2))
        assert torch.equal(numbers.evaluations + numbers.evaluations_cached + numbers.evaluations_forced, steps)

    def test_a_call_holds_no_more_rows_than_memory_allows(self):
        class Watched(SmallBitesPolicy):
            def __call__(self, state, context):
                assert state.row_count <= 4
                return super().__call__(state, context)

        state = random_trees(40, 3, 3, generator=generator(5))
        policy = Watched()
        StochasticBeamSearch(4, 2, memory=8 << 20)(PROBLEM, policy, state, generator=generator())
        assert policy.calls > 40


class TestAnyStart:
    def test_a_round_may_start_at_a_deeper_node(self):
        """Take a Step and Reconsider: unseen leaves below a node of the same trie, its mass taken out of all ancestors."""
        state = random_trees(30, 3, 3, generator=generator(7), leaf=0.0, forced=0.0)
        seeds = torch.arange(30)
        search = Search(PROBLEM, TablePolicy(), state, 40)
        first = search.round(4, by_gumbels(seeds, 0))
        search.trie.remove(first.leaf, first.leaf_depth, first.filled)
        taken = first.actions[0, :, 0]
        below = PROBLEM.step(state, taken)
        second = search.round(32, by_gumbels(seeds, 1), depth=1, start=(below, first.nodes[0, :, 0]))
        search.trie.remove(second.leaf, second.leaf_depth, second.filled)
        for i in range(30):
            tree, start = Tree.of(state, i), (int(taken[i]),)
            seen = paths(first.actions[:, i].T, first.filled[i])
            found = paths(second.actions[:, i].T, second.filled[i])
            assert sorted(found) == sorted(leaf for leaf, _ in tree.leaves(start) if leaf not in seen)
            with high_precision():
                conditional = {leaf: float(p.ln()) for leaf, p in tree.leaves(start)}
                left = sum(p for leaf, p in tree.leaves() if leaf not in {*seen, *found})
            assert second.log_prob[i][second.filled[i]].tolist() == pytest.approx([conditional[leaf] for leaf in found])
            assert float(search.trie.left[0, i, 0].exp()) == pytest.approx(float(left), abs=1e-12)
            assert float(search.trie.left[1, i, first.nodes[0, i, 0]]) == -torch.inf

    def test_a_partial_solution_is_an_instance(self):
        state = random_trees(30, 3, 3, generator=generator(7), leaf=0.0)
        later = PROBLEM.step(state, state.allowed[:, 0].int().argmax(1))
        solutions = StochasticBeamSearch(32, 1)(PROBLEM, TablePolicy(), later, generator=generator())
        expected = leaf_counts(state)[torch.arange(30), later.node]
        assert torch.equal(solutions.filled.sum(1), expected)


class TestDeadEnds:
    problem = DeadEndProblem()

    @pytest.mark.parametrize("sampler", [StochasticBeamSearch(8, 4), Gumbeldore(8, 4, sigma=1.0), BeamSearch(32)])
    def test_a_dead_end_is_a_leaf_with_the_declared_objective(self, sampler):
        state = random_trees(60, 3, 3, generator=generator(8), dead=0.3)
        solutions = sampler(self.problem, TablePolicy(), state, generator=generator())
        assert torch.equal(solutions.filled.sum(1), leaf_counts(state)[:, 0])
        met = 0
        for i in range(60):
            tree, found = Tree.of(state, i, -7.0), paths(solutions.actions[i], solutions.filled[i])
            assert sorted(found) == sorted(leaf for leaf, _ in tree.leaves())
            assert solutions.objective[i][solutions.filled[i]].tolist() == [tree.objective(leaf) for leaf in found]
            met += sum(tree.objective(leaf) == -7.0 for leaf in found)
        assert met > 20

    def test_samples_with_replacement_end_in_dead_ends_too(self):
        state = random_trees(60, 3, 3, generator=generator(8), dead=0.3)
        solutions = WithReplacement(16)(self.problem, TablePolicy(), state, generator=generator())
        check_leaves(state, solutions.actions, solutions.filled)
        for i in range(60):
            found = paths(solutions.actions[i], solutions.filled[i])
            assert solutions.objective[i].tolist() == [Tree.of(state, i, -7.0).objective(leaf) for leaf in found]

    @pytest.mark.parametrize("sampler", [StochasticBeamSearch(2, 2), BeamSearch(2), WithReplacement(2)])
    def test_a_root_may_be_dead(self, sampler):
        state = flat_tree([0.5, 0.5], [1.0, 2.0], 2)
        state.allowed[1] = False
        solutions = sampler(self.problem, TablePolicy(), state, generator=generator())
        assert solutions.best_objective.tolist()[1] == -7.0


class TestHorizon:
    class TooShort(TreeProblem):
        def horizon(self, state: TreeState) -> int:
            return 2

    class Generous(TreeProblem):
        def horizon(self, state: TreeState) -> int:
            return 9

    @pytest.mark.parametrize("sampler", [StochasticBeamSearch(3, 2), BeamSearch(2), WithReplacement(4)])
    def test_a_horizon_that_is_too_short_is_an_error(self, sampler: Sampler):
        state = random_trees(5, 2, 3, generator=generator(), leaf=0.0)
        with pytest.raises(ContractError, match=r"`TooShort\.horizon` promised at most 2 steps"):
            sampler(self.TooShort(), TablePolicy(), state, generator=generator())

    @pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
    def test_a_generous_horizon_changes_nothing(self, sampler: Sampler):
        if isinstance(sampler, Adaptive):
            return  # whose steps are shares of the horizon
        state = random_trees(10, 2, 3, generator=generator())
        a, b = (sampler(p, TablePolicy(), state, seeds=torch.arange(10)) for p in (PROBLEM, self.Generous()))
        assert differences(a, b) == []
