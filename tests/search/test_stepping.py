"""Take a Step and Reconsider: what each round may sample, by enumeration."""

from __future__ import annotations

import pytest
import torch
from answers import generator
from toys import TablePolicy, Tree, TreeProblem, paths, random_trees

from gumbeldore.errors import SettingsError
from gumbeldore.search.stepping import StepAndReconsider


def rounds_of(sampler: StepAndReconsider, state, row: int, seed: int) -> list[list[tuple[int, ...]]]:
    """The sequences of one instance, round by round."""
    one = state.rows(torch.tensor([row])).compact()
    rounds, seen = [], 0
    for found in sampler.stream(TreeProblem(), TablePolicy(), one, torch.tensor([seed])):
        rounds.append(paths(found.actions[0, seen:], found.filled[0, seen:]))
        seen = found.actions.shape[1]
    return rounds


@pytest.mark.parametrize(("width", "step"), [(1, 1), (2, 1), (3, 2), (5, 3), (40, 1)])
@pytest.mark.parametrize("first", [True, False])
def test_each_round_samples_unseen_leaves_below_the_best_prefix_and_all_if_few_are_left(
    width: int, step: int, first: bool
) -> None:
    state = random_trees(20, 3, 4, generator=generator(1))
    sampler = StepAndReconsider(width, step, first_round_deterministic=first)
    for row in range(20):
        tree = Tree.of(state, row)
        leaves = [leaf for leaf, _ in tree.leaves()]
        seen: list[tuple[int, ...]] = []
        best: tuple[int, ...] = ()
        for index, sampled in enumerate(rounds_of(sampler, state, row, row)):
            root = best[: index * step]
            unseen = [leaf for leaf in leaves if leaf[: len(root)] == root and leaf not in seen]
            assert set(sampled) <= set(unseen)
            assert len(sampled) == len(set(sampled)) == min(width, len(unseen))
            seen += sampled
            better = max(sampled, key=tree.objective, default=best)
            if not best or (sampled and tree.objective(better) > tree.objective(best)):
                best = better
        assert len(best) <= (index + 1) * step  # it went on to the end


def test_log_probabilities_are_those_of_whole_sequences() -> None:
    state = random_trees(10, 3, 4, generator=generator(2), leaf=0.1)
    found = StepAndReconsider(3, 1)(TreeProblem(), TablePolicy(), state, generator=generator(3))
    for row in range(10):
        law = {leaf: float(probability) for leaf, probability in Tree.of(state, row).leaves()}
        for path, value in zip(
            paths(found.actions[row], found.filled[row]), found.log_prob[row][found.filled[row]], strict=True
        ):
            assert value.exp().item() == pytest.approx(law[path], rel=1e-9)


def test_the_sequences_of_the_first_round_follow_the_exact_law() -> None:
    from collections import Counter

    from toys import as_nodes, check_leaves, chi_square_p, copies

    state = random_trees(1, 3, 2, generator=generator(4), forced=0.0)
    many = copies(state, 4000)
    found = StepAndReconsider(1, 9, first_round_deterministic=False)(TreeProblem(), TablePolicy(), many, generator=generator(5))
    nodes = check_leaves(many, found.actions, found.filled)[:, 0]
    tree = Tree.of(state, 0)
    law = as_nodes(tree, {(leaf,): float(probability) for leaf, probability in tree.leaves()})
    assert chi_square_p(dict(Counter((node,) for node in nodes.tolist())), law) > 1e-4


def test_more_steps_find_better_sequences() -> None:
    state = random_trees(200, 3, 5, generator=generator(6), leaf=0.0, forced=0.0, keep=1.0)
    means = [
        StepAndReconsider(3, step)(TreeProblem(), TablePolicy(), state, generator=generator(7)).best_objective.mean()
        for step in (5, 2, 1)
    ]
    assert means[0] < means[1] < means[2]


def test_settings_are_checked() -> None:
    for wrong in ({"step": 0}, {"beam_width": 0}, {"nucleus": 0.0}, {"sigma": -1.0}):
        with pytest.raises(SettingsError, match=f"`{next(iter(wrong))}`"):
            StepAndReconsider(**wrong)
    with pytest.raises(SettingsError, match="first_round_deterministic"):
        StepAndReconsider(nucleus="auto", first_round_deterministic=False)
