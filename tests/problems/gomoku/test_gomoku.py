"""Gomoku: the rules against a referee, starts, keys and training data."""

from __future__ import annotations

import random

import pytest
import torch
from gomoku_games import play, position, random_views, seeded

from gumbeldore.errors import SettingsError
from gumbeldore.problems.gomoku.bot import bot_move, has_five
from gumbeldore.problems.gomoku.problem import BLACK, WHITE, Gomoku, GomokuState, random_winner
from gumbeldore.problems.gomoku.verify import verify_gomoku
from gumbeldore.solutions import Diagnostics, Solutions

# The rules of the game


@pytest.mark.parametrize("size", [5, 6, 9, 12])
def test_five_in_a_row_is_found_on_every_line_and_nowhere_else(size):
    for step_row, step_column in ((0, 1), (1, 0), (1, 1), (1, -1)):
        for start in range(size * size):
            row, column = divmod(start, size)
            cells = [(row + k * step_row, column + k * step_column) for k in range(5)]
            straight = all(0 <= r < size and 0 <= c < size for r, c in cells)
            flat = [start + k * (step_row * size + step_column) for k in range(5)]  # wraps around the border if not straight
            if not all(0 <= cell < size * size for cell in flat):
                continue
            board = torch.zeros(6, size * size, dtype=torch.bool)
            board[:, flat] = True
            for k in range(5):
                board[k, flat[k]] = False
            assert has_five(board, size).tolist() == [False] * 5 + [straight]


def test_six_and_nine_in_a_row_win_too():
    for line, place in (("ooo.oo...", 3), ("oooo.oooo", 4)):
        problem = Gomoku()
        state = problem.step(position(*["........."] * 8, line), torch.tensor([8 * 9 + place]))
        assert state.winner.item() == WHITE
        assert problem.objective(state).item() == 1
        assert problem.done(state).item()


def test_a_white_win_leaves_the_bot_no_answer():
    problem = Gomoku()
    before = position("xxxx.....", *["........."] * 7, "oooo.....")
    after = problem.step(before, torch.tensor([8 * 9 + 4]))
    assert (after.board == BLACK).sum() == 4
    assert problem.objective(after).item() == 1


def test_the_bot_answers_within_the_step_and_may_win():
    problem = Gomoku()
    before = position("xxxx.....", *["........."] * 7, "ooo......")
    after = problem.step(before, torch.tensor([40]))
    assert after.board[0, 4].item() == BLACK
    assert problem.done(after).item()
    assert problem.objective(after).item() == -1


def test_a_full_board_without_five_in_a_row_is_a_draw():
    problem = Gomoku(size=5)
    before = position("xxoox", "ooxxo", "xxoox", "ooxxo", "xxo..")
    after = problem.step(before, torch.tensor([23]))
    assert problem.done(after).item()
    assert problem.objective(after).item() == 0
    assert problem.horizon(after) == 0


def test_the_horizon_is_the_number_of_stones_that_white_may_still_put():
    assert Gomoku(size=9).horizon(Gomoku(size=9).starts()) == 40
    assert Gomoku(size=6).horizon(Gomoku(size=6).starts()) == 18  # of 35 empty cells, white gets the last too
    assert Gomoku(size=5).horizon(position("xxoox", "ooxxo", "xxoox", "ooxxo", "xxo..", to_move=BLACK)) == 2


def test_a_step_of_black_puts_a_black_stone_and_returns_the_turn():
    problem = Gomoku()
    before = position("xxx......", *["........."] * 7, "ooo......", to_move=BLACK)
    after = problem.step(before, torch.tensor([40]))
    assert after.board[0, 40].item() == BLACK
    assert (after.board != before.board).sum() == 1
    assert after.to_move.item() == WHITE
    won = problem.step(position("xxxx.....", *["........."] * 8, to_move=BLACK), torch.tensor([4]))
    assert problem.objective(won).item() == -1


def test_games_of_all_outcomes_pass_the_referee():
    outcomes = []
    for size, count, skill in ((9, 40, 0.85), (9, 4, 0.0), (5, 10, 0.7)):
        problem = Gomoku(size)
        state = problem.generate(count, generator=seeded(size))
        actions = play(problem, state, skill, seeded(1))
        end = state
        for action in actions.unbind(1):
            end = problem.step(end, action)
        for moves, objective in zip(problem.moves(state, actions).tolist(), problem.objective(end).tolist(), strict=True):
            verdict = verify_gomoku(size, [move for move in moves if move >= 0])
            assert verdict.feasible, verdict.reason
            assert verdict.objective == objective
            outcomes.append(objective)
    assert set(outcomes) == {1.0, 0.0, -1.0}


def test_the_referee_accepts_the_game_that_the_next_tests_spoil(game):
    assert verify_gomoku(9, game).objective == -1


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda game: game[:-1], "not over"),
        (lambda game: [*game, next(cell for cell in range(81) if cell not in game)], "after black has won"),
        (lambda game: [game[0], game[0], *game[2:]], "taken"),
        (lambda game: [game[0], 81, *game[2:]], "not on the board"),
        (lambda game: [game[0], -1, *game[2:]], "not on the board"),
        (lambda game: [*game[:2], next(c for c in range(81) if c not in game), *game[3:]], "its rules say"),
        (lambda game: [], "not over"),
    ],
)
def test_the_referee_names_what_is_wrong_with_a_game(game, spoil, reason):
    verdict = verify_gomoku(9, spoil(game))
    assert not verdict.feasible
    assert reason in verdict.reason
    assert verdict.objective == float("-inf")


def test_generation_deals_every_start_once_before_any_comes_again():
    problem = Gomoku(size=5)
    first = problem.generate(60, generator=seeded()).board.int().argmin(1)
    assert sorted(first[:25].tolist()) == sorted(first[25:50].tolist()) == list(range(25))
    assert len(set(first[50:].tolist())) == 10
    assert first[:25].tolist() != list(range(25))
    assert torch.equal(problem.starts().board.int().argmin(1), torch.arange(25))


def test_a_board_on_which_nobody_can_win_is_refused():
    with pytest.raises(SettingsError, match=r"`size` must be at least 5.*got 4"):
        Gomoku(size=4)


def test_the_order_of_the_stones_does_not_change_the_key_but_the_board_does():
    problem = Gomoku()
    one, other = (problem.starts().rows(torch.tensor([0])) for _ in range(2))
    for a, b in ((80, 60), (60, 80)):
        one, other = problem.step(one, torch.tensor([a])), problem.step(other, torch.tensor([b]))
    assert torch.equal(problem.key(one), problem.key(other)) == torch.equal(one.board, other.board)
    boards = torch.unique(random_views(3000, 9, random.Random(2)), dim=0)
    colour = torch.full((len(boards),), WHITE, dtype=torch.int8)
    state = GomokuState(torch.zeros(len(boards), dtype=torch.long), boards, colour, torch.zeros_like(colour))
    keys = problem.key(state)
    assert len(torch.unique(keys[:, 0])) == len(torch.unique(keys[:, 1])) == len(boards)
    swapped_turn = GomokuState(state.instance, state.board, -state.to_move, state.winner)
    assert not bool((problem.key(swapped_turn) == keys).any())


# Training data


@pytest.mark.parametrize(("size", "skill", "winners"), [(9, 0.85, {WHITE, BLACK, 0}), (5, 0.7, {BLACK, 0})])
def test_examples_are_the_moves_of_the_winner_in_the_positions_before_them(size, skill, winners):
    problem = Gomoku(size=size)
    state = problem.generate(40, generator=seeded(3))
    actions = play(problem, state, skill, seeded(4))
    moves = problem.moves(state, actions).tolist()
    end = state
    for action in actions.unbind(1):
        end = problem.step(end, action)
    assert set(end.winner.tolist()) == winners
    for draw in range(3):
        examples = problem.examples(state, actions, generator=seeded(draw))
        for row, winner in enumerate(end.winner.tolist()):
            board, target = examples.state.board[row].tolist(), examples.action[row].item()
            mover = examples.state.to_move[row].item()
            assert mover == (BLACK if winner == BLACK else WHITE)
            ply = moves[row].index(target)
            assert ply % 2 == (0 if mover == BLACK else 1)
            stones = {cell: (WHITE if k % 2 else BLACK) for k, cell in enumerate(moves[row][:ply])}
            assert board == [stones.get(cell, 0) for cell in range(size * size)]
        bots = examples.state.to_move == BLACK
        assert torch.equal(bot_move(-examples.state.board[bots], size), examples.action[bots])


def test_every_move_of_the_winner_is_drawn_equally_often():
    problem = Gomoku()
    start = problem.openings(torch.tensor([40]))
    actions = play(problem, start, 0.0, seeded(5))
    moves = [move for move in problem.moves(start, actions)[0].tolist() if move >= 0]
    count = 4000
    examples = problem.examples(start.rows(torch.zeros(count, dtype=torch.long)), actions.expand(count, -1), generator=seeded())
    replies = moves[2::2]
    frequency = torch.bincount(examples.action, minlength=81)[replies] / count
    assert frequency.sum() == 1
    assert (frequency - 1 / len(replies)).abs().max() < 4 * (0.25 / count) ** 0.5


def test_unfinished_games_are_no_training_data():
    problem = Gomoku()
    state = problem.openings(torch.tensor([40]))
    actions = play(problem, state, 0.0, seeded())
    with pytest.raises(SettingsError, match="some games have not ended"):
        problem.examples(state, actions[:, :-1], generator=seeded())
    with pytest.raises(SettingsError, match="padded with -1 exactly after their end"):
        problem.examples(state, torch.cat([actions, actions[:, :1]], 1), generator=seeded())


def solutions(objective: torch.Tensor, filled: torch.Tensor) -> Solutions:
    batch, samples = objective.shape
    nothing = torch.zeros(batch)
    diagnostics = Diagnostics(nothing, *[torch.zeros(batch, 1)] * 3, nothing, *[torch.zeros(batch, dtype=torch.long)] * 5)
    return Solutions(
        torch.zeros(batch, samples, 1, dtype=torch.long), objective, torch.zeros_like(objective), filled, diagnostics
    )


def test_a_white_win_is_learnt_from_before_a_black_win_before_a_draw():
    nothing = float("-inf")
    objective = torch.tensor([[0, -1, 1, 1.0], [0, -1, -1, 0], [0, 0, 0, nothing], [nothing, nothing, -1, 0]])
    answer = solutions(objective, objective > nothing)
    drawn = torch.stack([random_winner(answer, seeded(seed)) for seed in range(200)])
    assert [sorted(set(column)) for column in drawn.T.tolist()] == [[2, 3], [1, 2], [0, 1, 2], [2]]
    assert 60 <= (drawn[:, 0] == 2).sum() <= 140


def test_learning_needs_a_game():
    with pytest.raises(SettingsError, match="at least one game"):
        random_winner(solutions(torch.full((1, 2), -torch.inf), torch.zeros(1, 2, dtype=torch.bool)), seeded())
