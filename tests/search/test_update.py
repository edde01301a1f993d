"""What a round teaches the next: equation 6, the local update of equation 1 and the further knobs, against brute force."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
import torch
from toys import (
    Path,
    TablePolicy,
    Tree,
    TreeProblem,
    TreeState,
    add,
    along_paths,
    flat_tree,
    high_precision,
    mean_advantage,
    paths,
    random_trees,
    recorded,
)

from gumbeldore.search.advantage import (
    AdvantageFn,
    global_advantage,
    local_advantage,
    min_max_normalised,
    outcome,
)
from gumbeldore.search.expansion import Round, Search
from gumbeldore.search.samplers import BeamSearch, Gumbeldore, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.scores import by_gumbels
from gumbeldore.solutions import Solutions

PROBLEM = TreeProblem()
TREES = 30


def trees(count: int = TREES, seed: int = 0, scale: float = 1.0) -> TreeState:
    generator = torch.Generator().manual_seed(seed)
    return random_trees(count, 3, 3, generator=generator, leaf=0.1, forced=0.1, keep=0.9, scale=scale)


def run(sampler: StochasticBeamSearch, state: TreeState, seed: int = 0) -> Solutions:
    return sampler(PROBLEM, TablePolicy(), state, seeds=torch.arange(state.row_count) + 1000 * seed)


class Drawn:
    """One instance's sequences of one round, in plain Python."""

    def __init__(self, result: Round, instance: int) -> None:
        filled = result.filled[instance]
        self.leaves = paths(result.actions[:, instance].T, filled)
        self.round_log_prob = result.round_log_prob[instance][filled].tolist()
        self.score = result.score[instance][filled].tolist()
        self.objective = result.objective[instance][filled].tolist()
        self.complete = bool(result.complete[instance])

    def mu(self, below: Path = ()) -> float:
        """Equations 4 and 5 as printed, with the edge cases of METHOD 4, in high precision."""
        chosen = [i for i, leaf in enumerate(self.leaves) if leaf[: len(below)] == below]
        kappa = min(self.score[i] for i in chosen)
        weights = {}
        for i in chosen:
            log_prob = Decimal(self.round_log_prob[i])
            if self.complete or len(chosen) == 1:
                weights[i] = log_prob.exp()
            elif self.score[i] > kappa:
                inclusion = 1 - (-((log_prob - Decimal(kappa)).exp())).exp()
                weights[i] = log_prob.exp() / inclusion
        total = sum(weights.values())
        return float(sum(weight * Decimal(self.objective[i]) for i, weight in weights.items()) / total)


def global_shift(tree: Tree, drawn: Drawn) -> dict[Path, float]:
    mu = drawn.mu()
    return along_paths({leaf: tree.objective(leaf) - mu for leaf in drawn.leaves})


def mean_shift(tree: Tree, drawn: Drawn) -> dict[Path, float]:
    mean = math.fsum(drawn.objective) / len(drawn.objective)
    return along_paths({leaf: tree.objective(leaf) - mean for leaf in drawn.leaves})


def outcome_shift(tree: Tree, drawn: Drawn) -> dict[Path, float]:
    return along_paths({leaf: tree.objective(leaf) for leaf in drawn.leaves})


def min_max_shift(tree: Tree, drawn: Drawn) -> dict[Path, float]:
    mu = drawn.mu()
    advantages = [value - mu for value in drawn.objective]
    best, worst = max(advantages), min(advantages)
    scaled = [a / best if a > 0 else a / -worst if a < 0 else 0.0 for a in advantages]
    return along_paths(dict(zip(drawn.leaves, scaled, strict=True)))


def local_shift(tree: Tree, drawn: Drawn) -> dict[Path, float]:
    """METHOD 7: every edge once, and only where at least two sequences pass through its parent."""
    shift = {}
    for node in along_paths(dict.fromkeys(drawn.leaves, 0.0)):
        parent = node[:-1]
        if sum(leaf[: len(parent)] == parent for leaf in drawn.leaves) >= 2:
            shift[node] = drawn.mu(node) - drawn.mu(parent)
    return shift


def check_rounds(sampler: Gumbeldore, state: TreeState, advantage: AdvantageFn, shift) -> Solutions:
    """Compares the round policy of every sampled sequence with brute force over the full tree, round by round."""
    remember, rounds = recorded(advantage)
    sampler = type(sampler)(**{**vars(sampler), "advantage": remember, "keep_trie": True})
    solutions = run(sampler, state)
    assert len(rounds) == sampler.rounds
    for i in range(state.row_count):
        tree, sampled = Tree.of(state, i), set()
        bonus: dict[Path, float] = {}
        for p, result in zip(sampler.nucleus_schedule, rounds, strict=True):
            drawn = Drawn(result, i)
            with high_precision():
                policy = tree.round_policy(sampled, bonus, p)
                expected = [float(policy[leaf].ln()) for leaf in drawn.leaves]
                assert drawn.round_log_prob == pytest.approx(expected, rel=1e-9, abs=1e-9)
                assert len(drawn.leaves) == min(sampler.beam_width, len(policy))
                assert drawn.complete == (len(policy) <= sampler.beam_width)
                if drawn.leaves:
                    shifts = {node: sampler.sigma * number for node, number in shift(tree, drawn).items()}
                    bonus = add(bonus, shifts)
            sampled |= set(drawn.leaves)
        check_trie(solutions, i, tree, sampled, bonus)
    return solutions


def check_trie(solutions: Solutions, instance: int, tree: Tree, sampled: set[Path], bonus: dict[Path, float]) -> None:
    """The returned trie holds what is left and what was learnt."""
    trie = solutions.tries[0]
    names: dict[tuple[int, int], Path] = {(0, 0): ()}
    for depth in range(len(trie.count)):
        for node in range(int(trie.count[depth, instance])):
            if depth:
                parent = names[depth - 1, int(trie.parent[depth, instance, node])]
                names[depth, node] = (*parent, int(trie.action[depth, instance, node]))
            path = names[depth, node]
            with high_precision():
                left = sum((p for leaf, p in tree.leaves(path) if leaf not in sampled), Decimal(0))
                expected = float(left.ln()) if left else -math.inf
            assert float(trie.left[depth, instance, node]) == pytest.approx(expected, rel=1e-9, abs=1e-9)
            if depth:
                assert float(trie.bonus[depth, instance, node]) == pytest.approx(bonus.get(path, 0.0), rel=1e-9, abs=1e-9)
    assert len(set(names.values())) == len(names), "a node is stored twice"


class TestEquation6:
    @pytest.mark.parametrize("nucleus", [(1.0, 1.0), (0.6, 1.0), (0.8, 0.8)])
    @pytest.mark.parametrize(("rounds", "width"), [(2, 4), (3, 3)])
    def test_the_policy_of_every_round_equals_brute_force_over_the_full_tree(self, rounds, width, nucleus):
        sampler = Gumbeldore(width, rounds, sigma=0.7, nucleus=nucleus)
        check_rounds(sampler, trees(), global_advantage, global_shift)

    def test_it_holds_for_confident_policies_and_large_steps(self):
        check_rounds(Gumbeldore(3, 3, sigma=20.0), trees(seed=1, scale=8.0), global_advantage, global_shift)

    def test_the_reported_mean_is_mu(self):
        advantage, rounds = recorded(global_advantage)
        solutions = run(Gumbeldore(3, 3, sigma=0.7, advantage=advantage), trees())
        for index, result in enumerate(rounds):
            for i in range(TREES):
                if (drawn := Drawn(result, i)).leaves:
                    with high_precision():
                        assert float(solutions.diagnostics.mean[i, index]) == pytest.approx(drawn.mu(), rel=1e-9)
                else:
                    assert bool(solutions.diagnostics.mean[i, index].isnan())

    def test_what_was_learnt_persists_over_rounds(self):
        """A node learns in round 1, and round 3 still sees it although round 2 passed elsewhere."""
        state = flat_tree([0.97, 0.01, 0.01, 0.01], [0.0, 1.0, 2.0, 3.0])
        trie = run(Gumbeldore(1, 3, sigma=1.0, advantage=outcome, keep_trie=True), state).tries[0]
        learnt = {int(a): float(b) for a, b in zip(trie.action[1, 0, :3], trie.bonus[1, 0, :3], strict=True)}
        assert learnt == {action: float(action) for action in learnt}
        assert len(learnt) == 3


class TestKnobs:
    @pytest.mark.parametrize(
        ("advantage", "shift"),
        [(mean_advantage, mean_shift), (outcome, outcome_shift), (min_max_normalised(), min_max_shift)],
        ids=["mean", "outcome", "min-max"],
    )
    def test_other_advantages_equal_brute_force(self, advantage, shift):
        check_rounds(Gumbeldore(3, 3, sigma=0.9), trees(15), advantage, shift)

    @staticmethod
    def made_up_round(objective: list[float], log_prob: list[float], score: list[float], filled: list[bool]) -> Round:
        numbers = [torch.tensor([x], dtype=torch.float64) for x in (objective, log_prob, log_prob, score)]
        count = len(filled)
        nodes = torch.arange(count).view(1, 1, count)
        one = torch.ones(1, count, dtype=torch.long)
        return Round(torch.tensor([filled]), *numbers, torch.tensor([False]), nodes, nodes, nodes[0], one)

    def test_advantages_by_hand(self):
        result = self.made_up_round(
            [4.0, 1.0, -2.0, -math.inf], [-1.0, -1.2, -1.5, -math.inf], [2.0, 1.0, 0.5, -math.inf], [True] * 3 + [False]
        )
        first, second = (math.exp(p) / -math.expm1(-math.exp(p - 0.5)) for p in (-1.0, -1.2))
        mu = (4 * first + second) / (first + second)
        assert global_advantage(result).tolist() == [pytest.approx([4 - mu, 1 - mu, -2 - mu, 0.0])]
        assert mean_advantage(result).tolist() == [pytest.approx([3.0, 0.0, -3.0, 0.0])]
        assert outcome(result).tolist() == [[4.0, 1.0, -2.0, 0.0]]
        assert min_max_normalised()(result).tolist() == [pytest.approx([1.0, (1 - mu) / (2 + mu), -1.0, 0.0])]
        assert min_max_normalised(mean_advantage)(result).tolist() == [[1.0, 0.0, -1.0, 0.0]]

    def test_equal_objectives_teach_nothing(self):
        result = self.made_up_round([2.0, 2.0], [-1.0, -1.2], [2.0, 1.0], [True, True])
        for advantage in (global_advantage, mean_advantage, min_max_normalised(), local_advantage):
            assert advantage(result).abs().max().item() == 0

    def test_a_single_sequence_has_no_advantage(self):
        """METHOD 4: the baseline of one sequence is its own objective, not 0."""
        result = self.made_up_round([-5.0, -math.inf], [-1.0, -math.inf], [2.0, -math.inf], [True, False])
        assert global_advantage(result).tolist() == [[0.0, 0.0]]
        solutions = run(Gumbeldore(1, 5, sigma=3.0, keep_trie=True), trees())
        assert solutions.tries[0].bonus.abs().max().item() == 0

    def test_a_deterministic_first_round_removes_mass_and_teaches_nothing(self):
        state = trees()
        remember, rounds = recorded(global_advantage)
        sampler = Gumbeldore(3, 2, sigma=2.0, first_round_deterministic=True, keep_trie=True, advantage=remember)
        solutions = run(sampler, state)
        assert len(rounds) == 1
        assert torch.equal(solutions.actions[:, :3], run(BeamSearch(3), state).actions)
        for i in range(TREES):
            tree, drawn = Tree.of(state, i), Drawn(rounds[0], i)
            first = paths(solutions.actions[i, :3], solutions.filled[i, :3])
            with high_precision():
                policy = tree.round_policy(set(first), {})
                expected = [float(policy[leaf].ln()) for leaf in drawn.leaves]
                assert drawn.round_log_prob == pytest.approx(expected, rel=1e-9, abs=1e-9)
                bonus = {n: 2.0 * x for n, x in global_shift(tree, drawn).items()} if drawn.leaves else {}
            check_trie(solutions, i, tree, set(first) | set(drawn.leaves), bonus)

    @pytest.mark.parametrize(
        ("rounds", "nucleus", "schedule"),
        [
            (4, (0.7, 1.0), [0.7, 0.8, 0.9, 1.0]),
            (3, (0.8, 0.8), [0.8, 0.8, 0.8]),
            (1, (0.5, 1.0), [1.0]),
            (1, (0.8, 0.8), [0.8]),
            (2, (0.95, 1.0), [0.95, 1.0]),
        ],
    )
    def test_the_nucleus_grows_linearly(self, rounds, nucleus, schedule):
        assert StochasticBeamSearch(4, rounds, nucleus=nucleus).nucleus_schedule == pytest.approx(schedule)


class TestLocalUpdate:
    @pytest.mark.parametrize(("rounds", "width"), [(2, 4), (3, 3), (2, 40)])
    def test_it_equals_brute_force(self, rounds, width):
        check_rounds(TheoryGumbeldore(width, rounds, sigma=0.7), trees(), local_advantage, local_shift)

    def test_it_equals_brute_force_with_a_nucleus(self):
        check_rounds(TheoryGumbeldore(4, 3, sigma=0.7, nucleus=(0.7, 1.0)), trees(seed=2), local_advantage, local_shift)

    def test_theory_is_local_by_default(self):
        assert TheoryGumbeldore().advantage is local_advantage
        assert Gumbeldore().advantage is global_advantage


class TestPolicyImprovement:
    """Appendix B: with exact advantages the updated policy is at least as good, whatever was sampled and however large sigma."""

    @staticmethod
    def everything(search: Search[TreeState], width: int) -> Round:
        """All leaves, with their probabilities under the trie's present policy."""
        result = search.round(width, by_gumbels(torch.arange(search.root.row_count), 99))
        assert bool(result.complete.all())
        return result

    @staticmethod
    def expectation(result: Round) -> torch.Tensor:
        return (result.round_log_prob.exp() * result.objective.where(result.filled, 0)).sum(1)

    @pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0])
    @pytest.mark.parametrize("width", [1, 2, 5])
    def test_exact_advantages_of_sampled_sequences_improve_the_policy(self, sigma, width):
        state = trees(60, seed=3)
        search = Search(PROBLEM, TablePolicy(), state, nodes=width + 32)
        result = search.round(width, by_gumbels(torch.arange(60), 0))
        advantage = torch.zeros(result.nodes.shape, dtype=torch.float64)
        for i in range(60):
            tree, done = Tree.of(state, i), set()
            for j, leaf in enumerate(Drawn(result, i).leaves):
                for depth in range(len(leaf)):
                    child, parent = leaf[: depth + 1], leaf[:depth]
                    if child not in done:  # once per edge
                        advantage[depth, i, j] = tree.expectation(child) - tree.expectation(parent)
                    done.add(child)
        search.trie.learn(result.nodes, sigma * advantage, result.filled)
        improved = self.expectation(self.everything(search, 32))
        before = torch.tensor([Tree.of(state, i).expectation() for i in range(60)], dtype=torch.float64)
        assert bool((improved >= before - 1e-12).all())
        assert bool((improved > before + 1e-6).any())

    def test_the_local_update_is_exact_when_everything_was_sampled(self):
        state = trees(60, seed=4)
        search = Search(PROBLEM, TablePolicy(), state, nodes=64)
        result = self.everything(search, 32)
        before = self.expectation(result)
        exact = torch.tensor([Tree.of(state, i).expectation() for i in range(60)], dtype=torch.float64)
        torch.testing.assert_close(before, exact, rtol=1e-12, atol=1e-12)
        search.trie.learn(result.nodes, 0.5 * local_advantage(result), result.filled)
        assert bool((self.expectation(self.everything(search, 32)) >= before - 1e-12).all())
