"""What the samplers draw: laws against exact probabilities, exhaustion, no sequence twice, unbiased estimates."""

from __future__ import annotations

import functools
import itertools

import pytest
import torch
from scipy import stats
from toys import (
    Path,
    TablePolicy,
    Tree,
    TreeProblem,
    TreeState,
    add,
    along_paths,
    as_nodes,
    check_leaves,
    chi_square_p,
    copies,
    count_outcomes,
    flat_tree,
    high_precision,
    leaf_counts,
    mean_advantage,
    ordered_law,
    paths,
    random_trees,
    recorded,
    tally,
)

from gumbeldore.search.advantage import global_advantage, outcome
from gumbeldore.search.expansion import Round, Search
from gumbeldore.search.gumbel import threshold_weights, unbiased_mean, weighted_mean
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.scores import by_gumbels
from gumbeldore.solutions import Solutions

P_VALUE = 1e-4
PROBLEM = TreeProblem()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@functools.cache
def small_tree(leaves: int, dtype: torch.dtype = torch.float64) -> TreeState:
    """A tree with so many leaves at three different depths and a one-action node on the way."""
    many = random_trees(2000, 3, 3, generator=generator(5), dtype=dtype)
    for i in (leaf_counts(many)[:, 0] == leaves).nonzero().squeeze(1).tolist():
        tree = Tree.of(many, i)
        found = [leaf for leaf, _ in tree.leaves()]
        chain = any(len(tree.actions(leaf[:-1])) == 1 for leaf in found)
        if chain and len({len(leaf) for leaf in found}) == 3:
            return copies(many.rows(slice(i, None)), 1)
    raise AssertionError("no such tree")


def run(sampler, state: TreeState, seed: int = 0) -> Solutions:
    return sampler(PROBLEM, TablePolicy(), state, generator=generator(seed))


class TestOrderedLaw:
    @pytest.mark.parametrize(("rounds", "width"), [(1, 4), (2, 2), (4, 1)])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_rounds_draw_without_replacement_in_order(self, rounds, width, dtype):
        """However four draws are split into rounds, their order has the law of one urn."""
        tree = Tree.of(small_tree(6, dtype), 0)
        law = as_nodes(tree, ordered_law(tree, [4]))
        many = copies(small_tree(6, dtype), 20_000)
        solutions = run(StochasticBeamSearch(beam_width=width, rounds=rounds), many)
        assert bool(solutions.filled.all())
        assert chi_square_p(count_outcomes(many, solutions), law) > P_VALUE

    def test_the_urn_is_emptied_in_the_right_order(self):
        tree = Tree.of(small_tree(5), 0)
        law = as_nodes(tree, ordered_law(tree, [5]))
        many = copies(small_tree(5), 15_000)
        for rounds, width in ((1, 5), (2, 3), (3, 2)):
            assert chi_square_p(count_outcomes(many, run(StochasticBeamSearch(width, rounds), many)), law) > P_VALUE

    @pytest.mark.parametrize(("advantage", "baseline"), [(outcome, False), (mean_advantage, True)])
    @pytest.mark.parametrize("nucleus", [(1.0, 1.0), (0.7, 0.9)])
    def test_rounds_with_learning_and_nucleus_follow_their_exact_law(self, advantage, baseline, nucleus):
        """Where what is learnt depends on the drawn set alone, the whole law of two rounds can be written down."""
        tree, sigma = Tree.of(small_tree(7), 0), 0.8

        def update(order: tuple[Path, ...]) -> dict[Path, float]:
            base = sum(map(tree.objective, order)) / len(order) if baseline else 0.0
            return along_paths({leaf: sigma * (tree.objective(leaf) - base) for leaf in order})

        law = as_nodes(tree, ordered_law(tree, [2, 2], list(nucleus), update))
        many = copies(small_tree(7), 20_000)
        sampler = Gumbeldore(beam_width=2, rounds=2, sigma=sigma, advantage=advantage, nucleus=nucleus)
        assert chi_square_p(count_outcomes(many, run(sampler, many)), law) > P_VALUE

    def test_a_deterministic_first_round_leaves_the_law_of_the_rest(self):
        tree = Tree.of(small_tree(7), 0)
        many = copies(small_tree(7), 20_000)
        solutions = run(StochasticBeamSearch(2, 2, first_round_deterministic=True), many)
        first = paths(solutions.actions[0, :2], solutions.filled[0, :2])
        with high_precision():
            policy = tree.round_policy(set(first), {})
            rest = 1 - sum(probability for leaf, probability in tree.leaves() if leaf in first)
            for leaf, probability in tree.leaves():
                if leaf not in first:
                    assert float(policy[leaf]) == pytest.approx(float(probability / rest))
        law = {}
        for a, b in itertools.permutations(policy, 2):
            law[tuple(map(tree.node, (*first, a, b)))] = float(policy[a] * policy[b] / (1 - policy[a]))
        assert chi_square_p(count_outcomes(many, solutions), law) > P_VALUE


class TestReplacement:
    @pytest.mark.parametrize("nucleus", [1.0, 0.75])
    def test_draws_with_replacement_are_independent_and_identical(self, nucleus):
        tree = Tree.of(small_tree(6), 0)
        with high_precision():
            policy = {tree.node(leaf): float(p) for leaf, p in tree.round_policy(set(), {}, nucleus).items()}
        law = {(a, b): policy[a] * policy[b] for a in policy for b in policy}
        many = copies(small_tree(6), 8000)
        solutions = run(WithReplacement(samples=6, nucleus=nucleus), many)
        node = check_leaves(many, solutions.actions, solutions.filled)
        for pair in ([0, 1], [4, 2], [3, 5]):
            assert chi_square_p(tally(node[:, pair]), law) > P_VALUE

    def test_instances_draw_independently_of_each_other(self):
        tree = Tree.of(small_tree(6), 0)
        with high_precision():
            policy = {tree.node(leaf): float(p) for leaf, p in tree.leaves()}
        many = copies(small_tree(6), 20_000)
        solutions = WithReplacement(samples=1)(PROBLEM, TablePolicy(), many, seeds=torch.arange(20_000))
        node = check_leaves(many, solutions.actions, solutions.filled)
        law = {(a, b): policy[a] * policy[b] for a in policy for b in policy}
        assert chi_square_p(tally(node.view(-1, 2)), law) > P_VALUE

    def test_log_probabilities_are_those_of_the_original_policy(self):
        state = random_trees(30, 3, 3, generator=generator(1))
        for sampler in (WithReplacement(5, nucleus=0.6), Gumbeldore(3, 2, sigma=3.0, nucleus=(0.5, 0.9)), BeamSearch(3)):
            solutions = run(sampler, state)
            for i in range(30):
                with high_precision():
                    truth = {leaf: float(p.ln()) for leaf, p in Tree.of(state, i).leaves()}
                found = paths(solutions.actions[i], solutions.filled[i])
                assert solutions.log_prob[i][solutions.filled[i]].tolist() == pytest.approx([truth[leaf] for leaf in found])
                assert solutions.objective[i][solutions.filled[i]].tolist() == list(map(Tree.of(state, i).objective, found))


class TestExhaustion:
    @pytest.mark.parametrize(("rounds", "width"), [(1, 32), (4, 8), (16, 2), (32, 1)])
    @pytest.mark.parametrize("scale", [1.0, 300.0])
    def test_every_leaf_comes_exactly_once_when_more_is_asked_than_exists(self, rounds, width, scale):
        state = random_trees(60, 3, 3, generator=generator(2), scale=scale, dtype=torch.float32)
        solutions = run(StochasticBeamSearch(width, rounds), state)
        assert solutions.filled.shape == (60, 32)
        for i in range(60):
            found = paths(solutions.actions[i], solutions.filled[i])
            assert sorted(found) == sorted(leaf for leaf, _ in Tree.of(state, i).leaves())
        assert bool((solutions.diagnostics.remaining_mass == 0).all())
        assert bool((solutions.actions[~solutions.filled] == -1).all())
        assert bool((solutions.objective[~solutions.filled] == -torch.inf).all())

    @pytest.mark.parametrize("nucleus", [(0.6, 0.6), (0.5, 0.9)])
    @pytest.mark.parametrize("sigma", [0.0, 1.5])
    def test_a_nucleus_leaves_exactly_the_leaves_inside_it(self, nucleus, sigma):
        """With room for all, each round returns the leaves of that round's nucleus tree, each once."""
        state = random_trees(40, 3, 3, generator=generator(3))
        advantage, rounds = recorded(outcome)
        sampler = Gumbeldore(32, 3, sigma=sigma, nucleus=nucleus, advantage=advantage)
        run(sampler, state)
        partial = 0
        for i in range(40):
            tree, sampled, bonus = Tree.of(state, i), set(), {}
            for p, result in zip(sampler.nucleus_schedule, rounds, strict=True):
                found = paths(result.actions[:, i].T, result.filled[i])
                with high_precision():
                    assert sorted(found) == sorted(tree.round_policy(sampled, bonus, p))
                assert bool(result.complete[i])
                sampled |= set(found)
                partial += len(sampled) < len(list(tree.leaves()))
                bonus = add(bonus, along_paths({leaf: sigma * tree.objective(leaf) for leaf in found}))
        assert partial > 20

    def test_nothing_comes_after_exhaustion(self):
        state = flat_tree([0.5, 0.3, 0.2], [1.0, 2.0, 3.0], 4)
        for sampler in (StochasticBeamSearch(2, 4), Gumbeldore(2, 4, sigma=5.0), TheoryGumbeldore(2, 4)):
            filled = run(sampler, state).filled
            assert filled.tolist() == [[True] * 3 + [False] * 5] * 4

    def test_an_instance_that_is_finished_at_the_root_has_one_empty_solution(self):
        state = random_trees(3, 2, 2, generator=generator())
        leaf, value = state.leaf.clone(), state.value.clone()
        leaf[1, 0], value[1, 0] = True, 5.0
        state = TreeState(state.instance, state.allowed & ~leaf[..., None], leaf, value, state.logits, state.node)
        for sampler in (StochasticBeamSearch(4, 2), Gumbeldore(4, 2), TheoryGumbeldore(4, 2), BeamSearch(4), Greedy()):
            solutions = run(sampler, state)
            assert solutions.filled[1].tolist() == [True] + [False] * (solutions.filled.shape[1] - 1)
            assert solutions.objective[1, 0] == 5.0
            assert solutions.log_prob[1, 0] == 0.0
            assert bool((solutions.actions[1] == -1).all())
            assert solutions.diagnostics.remaining_mass[1] == 0
        assert run(WithReplacement(3), state).objective[1].tolist() == [5.0] * 3
        for sampler in (Gumbeldore(2, 2), Greedy(), WithReplacement(2)):  # and when it is all there is
            assert run(sampler, state.rows(torch.tensor([1, 1])).compact()).best_objective.tolist() == [5.0, 5.0]


class TestNoDuplicates:
    @pytest.mark.parametrize(
        ("count", "actions", "depth", "width", "rounds", "scale", "dtype"),
        [
            (20_000, 3, 3, 4, 3, 1.0, torch.float32),
            (20_000, 2, 4, 3, 4, 30.0, torch.float32),  # so confident that float32 subtraction finds nothing left
            (20_000, 2, 4, 1, 8, 1000.0, torch.float32),
            (15_000, 3, 3, 8, 2, 5.0, torch.float64),
            (15_000, 4, 2, 5, 3, 100.0, torch.float32),
            (10_000, 2, 5, 16, 2, 3.0, torch.float32),
        ],
    )
    def test_no_sequence_comes_twice_and_none_is_missing(self, count, actions, depth, width, rounds, scale, dtype):
        """100,000 different trees with early leaves, chains and forbidden actions; half of them learn between rounds."""
        state = random_trees(count, actions, depth, generator=generator(depth), scale=scale, dtype=dtype, forced=0.3)
        half = count // 2
        for rows, sampler in (
            (slice(0, half), StochasticBeamSearch(width, rounds)),
            (slice(half, None), Gumbeldore(width, rounds, sigma=2.0)),
        ):
            part = state.rows(rows).compact()
            solutions = run(sampler, part)
            node = check_leaves(part, solutions.actions, solutions.filled).where(
                solutions.filled, -1 - torch.arange(solutions.filled.shape[1])
            )
            ordered = node.sort(1).values
            assert bool((ordered[:, 1:] != ordered[:, :-1]).all()), "a sequence came twice"
            expected = leaf_counts(part)[:, 0].clamp(max=width * rounds)
            assert torch.equal(solutions.filled.sum(1), expected), "a sequence is missing"


class TestDeterministic:
    @staticmethod
    def by_hand(tree: Tree, width: int) -> list[Path]:
        beam: list[tuple[float, Path]] = [(0.0, ())]
        while any(not tree.leaf[tree.node(path)] for _, path in beam):
            candidates = []
            for score, path in beam:
                if tree.leaf[tree.node(path)]:
                    candidates.append((score, path))
                else:
                    candidates += [(score + float(p.ln()), (*path, action)) for action, p in tree.prior(path).items()]
            beam = sorted(candidates, reverse=True)[:width]
        return [path for _, path in beam]

    @pytest.mark.parametrize("width", [1, 2, 3, 5, 40])
    def test_beam_search_keeps_the_most_probable_prefixes(self, width):
        state = random_trees(60, 3, 3, generator=generator(4))
        solutions = BeamSearch(width)(PROBLEM, TablePolicy(), state, seeds=torch.zeros(60, dtype=torch.long))
        for i in range(60):
            assert paths(solutions.actions[i], solutions.filled[i]) == self.by_hand(Tree.of(state, i), width)

    def test_greedy_takes_the_most_probable_action(self):
        state = random_trees(60, 3, 3, generator=generator(4))
        solutions = run(Greedy(), state)
        for i in range(60):
            tree, path = Tree.of(state, i), ()
            while not tree.leaf[tree.node(path)]:
                prior = tree.prior(path)
                path = (*path, max(prior, key=prior.__getitem__))
            assert paths(solutions.actions[i], solutions.filled[i]) == [path]

    def test_a_first_round_by_beam_search_is_a_beam_search(self):
        state = random_trees(40, 3, 3, generator=generator(4))
        both = run(Gumbeldore(3, 2, sigma=1.0, first_round_deterministic=True), state)
        alone = run(BeamSearch(3), state)
        assert torch.equal(both.actions[:, :3], alone.actions)
        assert torch.equal(both.log_prob[:, :3], alone.log_prob)


class TestZeroSigma:
    @pytest.mark.parametrize("nucleus", [(1.0, 1.0), (0.7, 1.0)])
    @pytest.mark.parametrize("theory", [False, True])
    def test_without_a_step_it_is_sampling_without_replacement_bit_for_bit(self, nucleus, theory):
        state = random_trees(300, 3, 3, generator=generator(6), dtype=torch.float32)
        kind = TheoryGumbeldore if theory else Gumbeldore
        learning = run(kind(4, 3, nucleus=nucleus, sigma=0.0), state, seed=1)
        plain = run(StochasticBeamSearch(4, 3, nucleus=nucleus), state, seed=1)
        for name in ("actions", "objective", "log_prob", "filled"):
            assert torch.equal(getattr(learning, name), getattr(plain, name)), name


class TestEstimators:
    toy = ([0.4, 0.25, 0.2, 0.1, 0.05], [0.5, 1.0, 2.0, 2.5, 4.0])
    truth = 0.4 * 0.5 + 0.25 * 1.0 + 0.2 * 2.0 + 0.1 * 2.5 + 0.05 * 4.0  # 1.3

    @staticmethod
    def first_round(state: TreeState, width: int, fixed_root: bool = False) -> Round:
        if fixed_root:
            seeds = torch.arange(state.row_count)
            return Search(PROBLEM, TablePolicy(), state, width).round(width, by_gumbels(seeds, 0))
        advantage, rounds = recorded(global_advantage)
        Gumbeldore(width, 1, advantage=advantage)(PROBLEM, TablePolicy(), state, generator=generator(1))
        return rounds[0]

    @staticmethod
    def weights(result: Round) -> torch.Tensor:
        return threshold_weights(result.round_log_prob, result.score, result.filled, result.complete)

    def errors_off(self, result: Round, truth: float) -> float:
        """How many standard errors the mean of the unbiased estimates lies from the truth."""
        estimate = unbiased_mean(self.weights(result), result.objective)
        return float((estimate.mean() - truth) / (estimate.std() / len(estimate) ** 0.5))

    def test_the_estimator_of_equation_3_is_unbiased(self):
        result = self.first_round(flat_tree(*self.toy, 60_000), 3)
        assert abs(self.errors_off(result, self.truth)) < 4.5

    def test_it_is_unbiased_on_deeper_trees_and_wider_beams(self):
        for leaves, width in ((6, 2), (7, 4), (7, 6)):
            state = small_tree(leaves)
            result = self.first_round(copies(state, 30_000), width)
            assert abs(self.errors_off(result, Tree.of(state, 0).expectation())) < 4.5

    def test_this_check_would_notice_a_root_fixed_at_zero(self):
        """The paper's root Gumbel of 0 biases equation 3 (METHOD 3): that is why it is sampled."""
        result = self.first_round(flat_tree(*self.toy, 60_000), 3, fixed_root=True)
        assert self.errors_off(result, self.truth) < -10

    def test_the_root_gumbel_is_the_largest_score(self):
        """Kept exactly down the tree, so its law can be read off the results."""
        result = self.first_round(copies(small_tree(7), 5000), 3)
        assert stats.kstest(result.score.amax(1).numpy(), "gumbel_r").pvalue > P_VALUE

    def test_the_normalised_estimator_is_consistent(self):
        weights = torch.linspace(1, 3, 60)
        state = flat_tree((weights / weights.sum()).tolist(), (weights.sin() * 3).tolist(), 600)
        truth = Tree.of(state, 0).expectation()
        error = []
        for width in (4, 16, 50, 60):
            mean = weighted_mean(self.weights(result := self.first_round(state, width)), result.objective)[0]
            error.append(float((mean - truth).square().mean().sqrt()))
        assert error[0] > 1.6 * error[1] > 1.6 * 1.6 * error[2]
        assert error[3] < 1e-12

    def test_the_conditional_estimator_is_consistent(self):
        """Equation 5: the sequences below a prefix estimate what to expect from there."""
        state = copies(wide_tree(), 1500)
        tree = Tree.of(state, 0)
        error = {}
        for width in (12, 40, 100):
            result = self.first_round(state, width)
            for action in range(2):
                below = (result.actions[0] == action) & result.filled
                weight = threshold_weights(result.round_log_prob, result.score, below, result.complete)
                mean = weighted_mean(weight, result.objective)[0]
                mean = mean[below.sum(1) > 1]
                error[width, action] = float((mean - tree.expectation((action,))).square().mean().sqrt())
        for action in range(2):
            assert error[12, action] > 1.4 * error[40, action] > 1.4 * 1.4 * error[100, action]


def wide_tree() -> TreeState:
    """Two actions at the root, each with 81 leaves below it."""
    state = random_trees(1, 3, 5, generator=generator(8), leaf=0.0, forced=0.0, keep=1.0, scale=0.3)
    state.allowed[0, 0, 2] = False
    state.logits[0, 0, 2] = torch.nan
    return state
