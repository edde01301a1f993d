"""One instance in several processes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gumbeldore.io.reading import read_file
from gumbeldore.search.presets import preset
from gumbeldore.solving import Effort, Job, Solving
from gumbeldore.solving.board import Board
from gumbeldore.solving.effort import Limits
from gumbeldore.solving.found import LOCAL, POLICY_LOCAL, START, Found, Improvement, Share
from gumbeldore.solving.jobs import Group
from gumbeldore.solving.portfolio import Portfolio
from gumbeldore.solving.sharing import ENDED, Others, together


def found(cost: float, by: str, *actions: int) -> Found:
    return Found([(list(actions), cost)], 7, 0.25, 100, 3, 1.5, (Improvement(by, cost, 1.5),), (Share(by, cost, 1.5, 4, 9.0),))


@pytest.fixture
def board(tmp_path) -> Board:
    made = Board(tmp_path / "board", instances=2, depth=300)
    made.clear()
    return made


def test_what_others_found_is_heard_once(board):
    others = Others(board, [1])
    assert list(others.news()) == []
    board.write(1, found(3.0, LOCAL, 1, 2))
    assert [each.cost for each in others.news()] == [3.0]
    assert list(others.news()) == []
    assert not others.ended
    board.report(1, ENDED)
    assert others.ended


def test_a_search_takes_a_better_solution_of_others_and_ends_with_them(board, instances):
    kit, (given,) = read_file(instances / "A-n32-k5.vrp")
    job = Job(kit, given)
    best = list(Portfolio(Group([0], [job], [1], 0), None, preset("fast"), Limits(0.5), ("local-search",)))[-1][0]
    board.write(1, replace(best, improvements=(Improvement(POLICY_LOCAL, best.cost, 0.1),)))
    board.report(1, ENDED)
    mine = Portfolio(
        Group([0], [job], [1], 0), None, preset("fast"), Limits(3600.0), ("local-search",), others=Others(board, [1])
    )
    final = list(mine)[-1][0]
    assert final.cost == best.cost
    assert final.seconds < 1800
    assert {each.by for each in final.improvements} <= {START, LOCAL, POLICY_LOCAL}


def test_together_is_the_best_with_the_time_of_all():
    whole = together([found(5.0, LOCAL, 1), found(4.0, LOCAL, 2)])
    assert (whole.cost, whole.sequences, whole.evaluations) == (4.0, 14, 200)
    assert whole.shares == (Share(LOCAL, 4.0, 3.0, 8, 9.0),)


def test_two_processes_work_on_one_instance(instances):
    kit, (given,) = read_file(instances / "A-n32-k5.vrp")
    solving = Solving([Job(kit, given)], {}, Effort(time_limit=0.5), workers=2)
    list(solving)
    (result,) = solving.results()
    assert {share.by: share.turns for share in result.shares}[START] == 2
    assert result.gap == 0
