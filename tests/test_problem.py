"""The contract's own machinery: rows of a state, replay, default training examples."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Int
from scipy import stats
from torch import Tensor
from toys import TablePolicy, TreeProblem, TreeState, check_leaves, copies, random_trees

from gumbeldore.problem import State, replay
from gumbeldore.search.samplers import StochasticBeamSearch

PROBLEM = TreeProblem()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class TestState:
    state = random_trees(4, 2, 2, generator=generator())

    def test_selecting_rows_shares_instances(self):
        rows = self.state.rows(torch.tensor([3, 1, 1]))
        assert rows.instance.tolist() == [3, 1, 1]
        assert rows.allowed is self.state.allowed
        assert (rows.row_count, rows.instance_count) == (3, 4)
        assert self.state.rows(slice(1, 3)).instance.tolist() == [1, 2]

    def test_compacting_gives_each_row_its_own_instance(self):
        moved = dataclasses.replace(self.state, node=torch.tensor([0, 1, 2, 0])).rows(torch.tensor([3, 1, 1]))
        compact = moved.compact()
        assert compact.instance.tolist() == [0, 1, 2]
        assert compact.node.tolist() == [0, 1, 1]
        assert torch.equal(compact.allowed, self.state.allowed[[3, 1, 1]])
        assert torch.equal(PROBLEM.mask(compact), PROBLEM.mask(moved))

    def test_where_picks_row_by_row(self):
        other = dataclasses.replace(self.state, node=torch.tensor([1, 2, 1, 2]))
        assert self.state.where(torch.tensor([True, False, False, True]), other).node.tolist() == [0, 2, 1, 0]

    def test_concatenation_keeps_every_row_with_its_instance(self):
        a, b = self.state.rows(torch.tensor([2, 2])), random_trees(2, 2, 2, generator=generator(1)).rows(torch.tensor([1]))
        both = TreeState.concatenate([a, b])
        assert both.instance.tolist() == [2, 2, 5]
        assert torch.equal(PROBLEM.mask(both), torch.cat([PROBLEM.mask(a), PROBLEM.mask(b)]))

    def test_tensors_rebuild_the_state(self):
        again = TreeState(**self.state.tensors())
        assert all(
            torch.equal(x, y)
            for x, y in zip(again.tensors().values(), self.state.tensors().values(), strict=True)
            if x.dtype != torch.float64
        )

    def test_a_state_without_instance_data_works_the_same(self):
        @dataclass(frozen=True)
        class Counter(State):
            number: Int[Tensor, " row"]

        state = Counter(torch.arange(3), torch.tensor([5, 6, 7]))
        picked = state.rows(torch.tensor([2, 0]))
        assert picked.compact().tensors()["instance"].tolist() == [0, 1]
        both = Counter.concatenate([picked, state.rows(slice(1, 2))])
        assert both.number.tolist() == [7, 5, 6]
        assert len(set(both.instance.tolist())) == 3


class TestReplay:
    def test_each_row_makes_its_own_number_of_steps(self):
        state = random_trees(40, 3, 3, generator=generator(1))
        actions = StochasticBeamSearch(1, 1)(PROBLEM, TablePolicy(), state, generator=generator()).actions.squeeze(1)
        lengths = (actions >= 0).sum(1)
        steps = torch.minimum(torch.arange(40) % 4, lengths)
        prefix = actions.masked_fill(torch.arange(actions.shape[1]) >= steps[:, None], -1)
        node = torch.zeros(40, dtype=torch.long)
        for depth in range(actions.shape[1]):
            node = torch.where(prefix[:, depth] >= 0, node * 3 + 1 + prefix[:, depth], node)
        assert torch.equal(replay(PROBLEM, state, actions, steps).node, node)
        complete = replay(PROBLEM, state, actions, lengths)
        assert torch.equal(complete.node, check_leaves(state, actions[:, None], torch.ones(40, 1, dtype=torch.bool)).squeeze(1))

    def test_examples_are_random_proper_prefixes_and_the_action_that_follows(self):
        state = copies(random_trees(1, 2, 3, generator=generator(1), leaf=0.0), 3000)
        actions = StochasticBeamSearch(1, 1)(PROBLEM, TablePolicy(), state, generator=generator()).actions.squeeze(1)
        examples = PROBLEM.examples(state, actions, generator=generator(2))
        assert not bool(PROBLEM.done(examples.state).any())
        prefixes = torch.stack([replay(PROBLEM, state, actions, torch.full((3000,), d)).node for d in range(3)], 1)
        depth = (prefixes == examples.state.node[:, None]).int().argmax(1)
        assert torch.equal(prefixes.gather(1, depth[:, None]).squeeze(1), examples.state.node)
        assert torch.equal(actions.gather(1, depth[:, None]).squeeze(1), examples.action)
        assert stats.chisquare(torch.bincount(depth, minlength=3).numpy()).pvalue > 1e-4
