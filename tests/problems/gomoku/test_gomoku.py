"""Gomoku: the bot against hand-worked positions and a second bot, the rules against a referee, the network, the pictures."""

from __future__ import annotations

import random

import pytest
import torch

from gumbeldore.errors import SettingsError
from gumbeldore.problems.gomoku.bot import (
    BORDER,
    board_lines,
    bot_move,
    cell_scores,
    has_five,
    line_scores,
    points,
    swapped,
)
from gumbeldore.problems.gomoku.network import GomokuPolicy
from gumbeldore.problems.gomoku.plot import animate_game, plot_game, winning_row
from gumbeldore.problems.gomoku.problem import BLACK, WHITE, Gomoku, GomokuState, random_winner
from gumbeldore.problems.gomoku.verify import cell_score, rule_bot, verify_gomoku
from gumbeldore.search.advantage import outcome
from gumbeldore.search.samplers import Gumbeldore
from gumbeldore.solutions import Diagnostics, Solutions

STONES = {"x": 1, ".": 0, "o": -1, "#": BORDER}  # x: the bot (black), o: its opponent (white), #: beyond the board


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def view(*rows: str) -> torch.Tensor:
    """A board from the bot's side, drawn with x, o and dots."""
    return torch.tensor([[STONES[stone] for row in rows for stone in row]], dtype=torch.int8)


def position(*rows: str, to_move: int = WHITE) -> GomokuState:
    """The state of a drawn board."""
    colour = torch.tensor([to_move], dtype=torch.int8)
    return GomokuState(torch.zeros(1, dtype=torch.long), -view(*rows), colour, torch.zeros_like(colour))


def line_score(line: str, place: int) -> float:
    """The score of one place of a line for x, in points of the rules."""
    return line_scores(torch.tensor([[STONES[stone]] for stone in line]))[place].item() / points(len(line))


def cell_points(board: torch.Tensor, row: int, column: int, size: int = 9) -> list[float]:
    """The scores of a cell for the bot and for its opponent, in points of the rules."""
    return [score / points(size) for score in cell_scores(board, size)[0, :, row * size + column].tolist()]


def random_views(count: int, size: int, rng: random.Random) -> torch.Tensor:
    """Boards with an empty cell, from nearly empty to nearly full."""
    boards = []
    for _ in range(count):
        share = rng.random()
        cells = [rng.choice((1, -1)) if rng.random() < share else 0 for _ in range(size * size)]
        cells[rng.randrange(size * size)] = 0
        boards.append(cells)
    return torch.tensor(boards, dtype=torch.int8)


def as_stones(board: list[int], size: int) -> dict[tuple[int, int], str]:
    """A board from the bot's side as the plain-Python bot wants it."""
    return {divmod(cell, size): "black" if stone == 1 else "white" for cell, stone in enumerate(board) if stone}


def play(problem: Gomoku, state: GomokuState, skill: float, generator: torch.Generator) -> torch.Tensor:
    """White's moves of whole games; white plays like the bot with probability `skill`, else at random."""
    actions = []
    while not bool(problem.done(state).all()):
        open_ = ~problem.done(state)
        lots = torch.rand(state.board.shape, generator=generator).where(problem.mask(state), -1).argmax(1)
        clever = lots.clone()
        clever[open_] = bot_move(state.board[open_], problem.size)
        action = torch.where(torch.rand(len(lots), generator=generator) < skill, clever, lots)
        actions.append(action.where(open_, -1))
        state = problem.step(state, action)
    return torch.stack(actions, 1)


# The bot's scores, worked out by hand


@pytest.mark.parametrize(
    ("line", "place", "score"),
    [
        ("....x....", 3, 107),  # right: 100 + four empty cells; left: three
        ("....x....", 2, 17),  # right: 1, then the stone at a tenth (10), 4; left: 2
        ("....x....", 0, 7.1),  # three empty cells, the stone at a thousandth, four
        ("x.x.x....", 3, 215),  # left: 100 + 1 + 10; right: 100 + 4
        (".........", 4, 8),
        ("xx.......", 2, 206),  # left: 200; right: six empty cells
    ],
)
def test_a_line_scores_stones_by_the_gaps_before_them(line, place, score):
    assert line_score(line, place) == score


@pytest.mark.parametrize(
    ("line", "place", "score"),
    [
        ("oxxx.....", 4, 299),  # 300 - 5 + 4: one short of everything
        ("oxx......", 3, 200),  # 200 - 5 + 5
        ("o........", 1, 2),  # seven empty cells, -5
        ("oooo.....", 4, -1),  # blocked at once: -5, and four empty cells
        ("...o.x...", 4, 98),  # -5; 100 + three empty cells; four walked
    ],
)
def test_an_opposing_stone_costs_five_and_hides_what_is_behind_it(line, place, score):
    assert line_score(line, place) == score


@pytest.mark.parametrize(
    ("line", "place", "score"),
    [
        ("ox.xo....", 2, 0),  # two cells between the opposing stones: 190 points count nothing
        ("ox..xo...", 2, 0),  # three
        ("ox...xo..", 2, 93),  # four: 100 - 5; 1 + 1, the stone at a hundredth (1), -5
        ("....#####", 0, 0),  # a line of four cells has three to walk over
        ("xxx..####", 3, 301),  # a line of five cells has four
    ],
)
def test_a_line_with_fewer_than_four_cells_to_walk_over_counts_nothing(line, place, score):
    assert line_score(line, place) == score


@pytest.mark.parametrize(
    ("line", "place", "score"),
    [
        ("xxx..####", 3, 301),  # 300 + 1: below 302
        ("xxx...###", 3, 1000),  # exactly 302
        ("xxx......", 3, 1000),  # 305
        ("xxx..xxxx", 3, 1000),  # 300 + 1 + 4 x 10 = 341
        ("oxxxx.o..", 5, 2000),  # exactly 390 = 400 - 5 - 5
        ("xx.xx....", 2, 2000),  # 200 + 204
        ("oxxx..o..", 4, 291),  # 300 - 5 + 1 - 5
    ],
)
def test_a_line_score_jumps_at_302_and_at_390(line, place, score):
    assert line_score(line, place) == score


def test_a_cell_adds_up_its_four_lines():
    board = view("x........", *["........."] * 8)
    assert cell_points(board, 1, 1) == [107 + 8 + 8 + 0, 2 + 8 + 8 + 0]  # the short diagonal has two cells to walk over
    assert cell_points(board, 0, 1) == [107 + 8 + 7 + 0, 2 + 8 + 7 + 0]
    assert cell_points(board, 4, 4) == [7.1 + 8 + 8 + 8, 2 + 8 + 8 + 8]  # three empty, -5, four empty on the diagonal


def test_the_bot_takes_the_first_of_its_equally_good_cells():
    """Black on (4, 4), white on (4, 5). Of the cells around the black stone, (3, 3) and (5, 3) are worth most to black:
    107 along the diagonal through both, 8 + 8 straight, 6 along the other diagonal = 129. White's best are 127."""
    board = view(*["........."] * 4, "....xo...", *["........."] * 4)
    assert cell_points(board, 3, 3)[0] == cell_points(board, 5, 3)[0] == 129
    assert cell_points(board, 3, 4)[0] == 107 + 8 + 0 + 7  # a diagonal of which white leaves three cells
    assert cell_points(board, 4, 3)[0] == 98 + 8 + 7 + 7
    assert cell_points(board, 3, 6)[1] == cell_points(board, 5, 6)[1] == 106 + 8 + 8 + 5
    assert bot_move(board, 9).item() == 3 * 9 + 3


def test_the_bot_blocks_an_open_three_at_its_first_end():
    board = view("....x....", *["........."] * 3, "...ooo...", *["........."] * 2, "....x....", "....x....")
    assert cell_points(board, 4, 2)[1] == cell_points(board, 4, 6)[1] >= 1000  # mirror images of each other
    assert bot_move(board, 9).item() == 4 * 9 + 2


def test_the_bot_wins_rather_than_blocks_if_both_are_worth_the_same():
    board = view("xxxx.....", *["........."] * 7, "oooo.....")
    assert cell_points(board, 0, 4)[0] == 2000 + 8 + 4 + 4
    assert cell_points(board, 8, 4)[1] == 2000 + 8 + 4 + 4
    assert bot_move(board, 9).item() == 4


def test_the_bot_blocks_instead_of_winning_if_the_block_is_worth_more():
    """That is what its rules say, odd as it is: white's stone on (7, 4) raises white's best cell and lowers black's."""
    board = view("xxxx.....", *["........."] * 6, "....o....", "oooo.....")
    assert cell_points(board, 0, 4)[0] == 2000 + 1 + 4 + 4  # down: six empty cells, -5
    assert cell_points(board, 8, 4)[1] == 2000 + 107 + 4 + 4
    assert bot_move(board, 9).item() == 8 * 9 + 4


def test_the_bot_makes_an_exact_390_before_a_302():
    """Black's x gap in row 4 is worth 390 exactly (a four to complete), white's three on the border diagonal 302."""
    board = view(
        "...o.....",
        "....o....",
        ".....o...",
        ".........",
        "oxxxx.o..",
        ".........",
        ".........",
        ".........",
        ".........",
    )
    assert cell_points(board, 4, 5)[0] >= 2000
    assert 1000 <= cell_points(board, 3, 6)[1] < 2000  # the diagonal has six cells: 300 + 2
    assert bot_move(board, 9).item() == 4 * 9 + 5


def test_the_bot_equals_a_second_bot_on_random_positions():
    rng = random.Random(0)
    for count, size in ((800, 9), (80, 5), (60, 7), (40, 10), (20, 15)):
        boards = random_views(count, size, rng)
        cells = bot_move(boards, size).tolist()
        expected = [rule_bot(size, as_stones(board, size)) for board in boards.tolist()]
        assert [divmod(cell, size) for cell in cells] == expected


def test_scores_are_exact_and_do_not_depend_on_how_they_are_computed():
    """Looked up and walked give the same integers, and both are those of the second bot."""
    size = 9
    boards = random_views(50, size, random.Random(1))
    looked_up = cell_scores(boards, size)
    lines = board_lines(size, torch.device("cpu"))
    padded = torch.cat([boards.T, torch.full((1, 50), BORDER, dtype=torch.int8)])
    stones = padded[lines.cell.T.flatten()].view(size, -1)
    for player, walked in enumerate((line_scores(stones), line_scores(swapped(stones)))):
        by_entry = walked.view(size, -1, 50).transpose(0, 1).reshape(-1, 50)
        assert torch.equal(by_entry[lines.entry].sum(0).T, looked_up[:, player].long())
    board = boards[0].tolist()
    for cell in (cell for cell in range(size * size) if board[cell] == 0):
        second = [cell_score(size, as_stones(board, size), divmod(cell, size), player) for player in ("black", "white")]
        assert [score * 10**size // points(size) for score in looked_up[0, :, cell].tolist()] == second


def test_the_bot_sees_equal_boards_of_other_sizes_alike():
    """A cell's lines end at the border, so sizes differ; but a full line of stones is worth the same everywhere."""
    for size in (5, 9, 10, 19):
        board = torch.zeros(1, size * size, dtype=torch.int8)
        board[0, :4] = 1
        assert bot_move(board, size).item() == 4


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


@pytest.fixture(scope="module")
def game() -> list[int]:
    """A game that black wins."""
    problem = Gomoku()
    state = problem.openings(torch.tensor([40]))
    return [move for move in problem.moves(state, play(problem, state, 0.0, seeded(5)))[0].tolist() if move >= 0]


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
    diagnostics = Diagnostics(nothing, *[torch.zeros(batch, 1)] * 3, nothing, *[torch.zeros(batch, dtype=torch.long)] * 4)
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


# The network


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


# Pictures


def test_a_game_is_drawn_and_filmed(tmp_path, game):
    plot_game(game, 9, tmp_path / "new" / "game.png")
    animate_game(game[:4], 9, tmp_path / "game.gif", seconds_per_stone=1.0)
    assert (tmp_path / "new" / "game.png").read_bytes().startswith(b"\x89PNG")
    with pytest.importorskip("PIL.Image").open(tmp_path / "game.gif") as film:
        assert film.n_frames >= 4


def test_the_winning_row_is_found_in_every_direction_and_only_if_it_is_long_enough(game):
    assert winning_row(game[:-1], 9) == []
    assert len(winning_row(game, 9)) >= 5
    for step in (1, 9, 10, 8):
        black = [40 + k * step for k in (-2, -1, 1, 2, 0)]
        white = [0, 1, 2, 3]
        moves = [cell for pair in zip(black, [*white, None], strict=True) for cell in pair if cell is not None]
        assert sorted(winning_row(moves, 9)) == sorted(black)


def test_moves_that_cannot_be_drawn_are_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"must not repeat a cell"):
        plot_game([1, 2, 1], 9, tmp_path / "game.png")
    with pytest.raises(SettingsError, match=r"cells in 0 .. 80, got 81"):
        plot_game([81], 9, tmp_path / "game.png")
    with pytest.raises(SettingsError, match=r"must end in .gif"):
        animate_game([1], 9, tmp_path / "game.mp4")
