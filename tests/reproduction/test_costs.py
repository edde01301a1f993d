"""What a step will cost: operations are counted, not guessed."""

from __future__ import annotations

import pytest
import torch

from gumbeldore.policies import GomokuPolicy, TSPPolicy
from gumbeldore.problems import TSP, Gomoku
from gumbeldore.reproduction.costs import Cost, rollout, sequences, training
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore


def operations(layers: int, cities: int = 40, d: int = 16, ff: int = 32) -> float:
    state = TSP(cities).generate(1, generator=torch.Generator().manual_seed(0))
    return rollout(TSP(cities), TSPPolicy(d=d, layers=layers, heads=2, ff=ff), state).step.operations


def test_a_block_takes_the_products_of_its_matrices_and_its_attention():
    """Over the steps of a tour there are on average (N + 2) / 2 tokens, and twice as many operations as multiplications."""
    d, ff, cities = 16, 32, 40
    tokens = (cities + 2) / 2
    expected = tokens * 2 * (4 * d * d + 2 * d * ff) + 4 * d * (tokens**2 + cities**2 / 12)
    assert operations(3) - operations(2) == pytest.approx(expected, rel=0.1)


def test_games_that_end_early_cost_something():
    game = Gomoku(5)
    found = rollout(game, GomokuPolicy(5, channels=4, blocks=1), game.openings(torch.tensor([0])))
    assert found.steps >= 4
    assert found.total.operations > found.steps * 2 * 25 * 9 * 4 * 4


def test_costs_add_up():
    cost = training(Cost(10, 1), Cost(2, 0.5), Cost(3, 0), instances=4, examples=5, validated=6, epochs=7)
    assert cost.operations == 7 * (40 + 3 * 10 + 18)
    assert cost.core_seconds == 7 * (4 + 3 * 2.5)


@pytest.mark.parametrize(
    ("sampler", "count"), [(Greedy(), 1), (BeamSearch(16), 16), (Gumbeldore(32, 4), 128), (WithReplacement(50), 50)]
)
def test_samplers_draw_so_many_sequences(sampler, count):
    assert sequences(sampler) == count
