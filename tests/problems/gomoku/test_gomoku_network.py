"""The network for Gomoku, and searches with it."""

from __future__ import annotations

import random

import pytest
import torch
from gomoku_games import play, random_views, seeded

from gumbeldore.errors import SettingsError
from gumbeldore.problems.gomoku.network import GomokuPolicy
from gumbeldore.problems.gomoku.problem import WHITE, Gomoku, GomokuState
from gumbeldore.problems.gomoku.verify import verify_gomoku
from gumbeldore.search.advantage import outcome
from gumbeldore.search.samplers import Gumbeldore


def trained(policy: GomokuPolicy) -> GomokuPolicy:
    """A policy with something in its last layer and in the statistics of its batch norms."""
    with torch.no_grad():
        policy.policy_linear_out.weight.normal_(generator=seeded(1))
        for name, tensor in policy.state_dict().items():
            if "norm" in name and tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=seeded(len(name))) * 0.5 + (0 if "mean" in name else 0.5))
    return policy.eval()


def test_the_untrained_network_is_uniform_and_has_the_layers_of_the_paper():
    policy = GomokuPolicy()
    logits = policy(Gomoku().starts())
    assert logits.shape == (81, 81)
    assert not bool(logits.any())
    shapes = [tuple(p.shape) for p in policy.parameters() if p.dim() > 1]
    tower = [(32, 2, 3, 3), *[(32, 32, 3, 3)] * 4, (16, 32, 1, 1)]
    assert shapes == [*tower, (32, 16 * 81), (81, 32)]


def test_the_network_sees_the_board_from_the_side_of_the_player_to_move():
    policy = trained(GomokuPolicy(size=5))
    boards = random_views(20, 5, random.Random(0))
    colour = torch.full((20,), WHITE, dtype=torch.int8)
    white = GomokuState(torch.arange(20), boards, colour, torch.zeros_like(colour))
    black = GomokuState(torch.arange(20), -boards, -colour, torch.zeros_like(colour))
    wrong = GomokuState(torch.arange(20), boards, -colour, torch.zeros_like(colour))
    assert torch.equal(policy(white), policy(black))
    assert not torch.allclose(policy(white), policy(wrong), atol=1e-3)


def test_the_folded_network_of_a_search_gives_the_same_logits():
    policy = trained(GomokuPolicy())
    state = Gomoku().starts()
    plain = policy(state)
    assert policy.prepare(state) is None  # with gradients there is nothing to fold
    with torch.no_grad():
        folded = policy(state, policy.prepare(state))
    assert plain.std() > 1e-3
    torch.testing.assert_close(folded, plain.detach(), rtol=1e-4, atol=1e-5)


def test_the_network_is_not_folded_while_it_trains():
    policy = GomokuPolicy().train()
    with torch.no_grad():
        assert policy.prepare(Gomoku().starts()) is None


def test_a_network_of_another_board_size_is_refused_with_the_fix():
    with pytest.raises(SettingsError, match=r"boards of size 9.*got 25 cells.*GomokuPolicy\(size="):
        GomokuPolicy()(Gomoku(size=5).starts())


def test_the_network_learns_the_bots_answers():
    problem = Gomoku(size=6)
    state = problem.starts()
    actions = play(problem, state, 0.0, seeded(1))
    torch.manual_seed(0)
    policy = GomokuPolicy(size=6)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    losses = []
    for batch in range(60):
        examples = problem.examples(state, actions, generator=seeded(batch))
        loss = torch.nn.functional.cross_entropy(policy(examples.state), examples.action)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(torch.tensor(36.0).log().item())
    assert sum(losses[-5:]) / 5 < 0.5 * losses[0]


def test_a_search_returns_distinct_games_of_different_lengths_that_pass_the_referee():
    problem = Gomoku(size=5)
    policy = trained(GomokuPolicy(size=5))
    state = problem.openings(torch.tensor([12, 0]))
    answer = Gumbeldore(beam_width=16, rounds=3, sigma=5.0, advantage=outcome)(problem, policy, state, generator=seeded())
    assert bool(answer.filled.all())
    games = answer.actions.flatten(0, 1)
    assert len(torch.unique(torch.cat([torch.arange(2).repeat_interleave(48)[:, None], games], 1), dim=0)) == 96
    assert len(set((games >= 0).sum(1).tolist())) > 1
    moves = problem.moves(state.rows(torch.arange(2).repeat_interleave(48)), games).tolist()
    verdicts = [verify_gomoku(5, [move for move in game if move >= 0]) for game in moves]
    assert [verdict.objective for verdict in verdicts] == answer.objective.flatten().tolist()
