"""Flexible and general job shops from text files, and back; and schedules."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_shops import PUBLISHED

from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.kits.solver import Limit
from gumbeldore.problems.fjsp.baselines import BASELINES, RULES, dispatch
from gumbeldore.problems.fjsp.files import write_fjs
from gumbeldore.problems.fjsp.instances import FJSPGenerator
from gumbeldore.problems.fjsp.kit import KIT

TIMES = [[[2, 3], [-1, 4]], [[5, 1], [-1, -1]]]
TEXTS = {
    "from one": "2 2 1.67\n2 2 1 2 2 3 1 2 4\n1 2 1 5 2 1\n",
    "from zero": "2 2\n2 2 0 2 1 3 1 1 4\n1 2 0 5 1 1\n",
    "spaces": "\n 2\t2\n\n 2   2 1 2  2 3   1 2 4 \n 1   2 2 1  1 5\n\n",
    "comment": "# by hand\n2 2\n2 2 1 2 2 3 1 2 4\n1 2 1 5 2 1\n",
}


def read(tmp_path, text, name="a.fjs", kit=None):
    (tmp_path / name).write_text(text)
    found, given = read_file(tmp_path / name, kit)
    assert found is KIT
    return given[0]


@pytest.mark.parametrize("layout", TEXTS)
@pytest.mark.parametrize("name", ["a.fjs", "a.txt", "a"])
def test_machines_are_numbered_from_zero_or_one(tmp_path, layout, name):
    given = read(tmp_path, TEXTS[layout], name)
    assert given.arrays["times"].tolist() == TIMES
    assert given.arrays["times"].dtype == np.int64
    assert (given.notes == ()) == (layout == "from zero")
    assert all("from 1 in this file" in note for note in given.notes)


def test_where_machines_may_be_numbered_either_way_it_is_said(tmp_path):
    given = read(tmp_path, "1 3\n2 1 1 2 1 2 4\n")
    assert given.arrays["times"].tolist() == [[[2, -1, -1], [-1, 4, -1]]]
    assert "might number them from 0" in given.notes[0]


def test_jobs_that_skip_or_revisit_machines_are_read(tmp_path):
    given = read(tmp_path, "2 3\n0 3 2 2 0 5\n1 4 0 1\n", "a.txt")
    assert given.arrays["times"].tolist() == [
        [[3, -1, -1], [-1, -1, 2], [5, -1, -1]],
        [[-1, 4, -1], [1, -1, -1], [-1, -1, -1]],
    ]


def test_a_classical_job_shop_is_none_unless_it_is_asked_for(tmp_path):
    (tmp_path / "a.jsp").write_text("2 2\n0 3 1 2\n1 4 0 1\n")
    assert read_file(tmp_path / "a.jsp")[0].name == "jssp"
    assert read_file(tmp_path / "a.jsp", KIT)[1][0].arrays["times"].tolist() == [
        [[3, -1], [-1, 2]],
        [[-1, 4], [1, -1]],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 2\n1 1 1 3\n", "There must be 2 rows, one for each job, got 1. Precedence graphs"),
        ("1 2\n2 1 1 3\n", "Job 1 has 2 operations, but its row ends before operation 2"),
        ("1 2\n1 1 1 3 7\n", "Job 1 has 1 numbers behind its 1 operations"),
        ("1 2\n1 0 1 3 2\n", "Operation 1 of job 1 must have at least 1 machine, and a time for each, got 0"),
        ("1 2\n1 2 1 3 2\n", "must have at least 1 machine, and a time for each, got 2 and 3 numbers"),
        ("1 2\n0\n", "Job 1 must have at least 1 operation"),
        ("1 2\n1 1 3 4\n", "2 machines must be numbered 0 .. 1 or 1 .. 2, got 3 .. 3"),
        ("1 2\n1 2 0 4 2 4\n", "2 machines must be numbered 0 .. 1 or 1 .. 2, got 0 .. 2"),
        ("1 2\n1 2 1 4 1 5\n", "Operation 1 of job 1 has two times on machine 1"),
        ("1 2\n1 1 1 -4\n", "Operation 1 of job 1 takes -4, but times must lie in 0 .."),
        ("1 1\n1 1 1 x\n", "A time of operation 1 of job 1 must be a number, got 'x'"),
        ("2 900000000\n1 1 1 3\n1 1 1 3\n", "are too many to be held in memory"),
        ("0 2\n1 1 1 3\n", "There must be at least 1 job and 1 machine, got 0 and 2"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, message):
    (tmp_path / "a.fjs").write_text(text)
    with pytest.raises(FormatError, match=message) as error:
        read_file(tmp_path / "a.fjs", KIT)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("times", ["sd1", "sd2"])
def test_what_is_written_is_read_back(tmp_path, times):
    drawn = FJSPGenerator(7, 4, times, 20).generate()
    for row in range(20):
        given = read(tmp_path, write_fjs(drawn.instance(row)))
        longest = given.arrays["times"].shape[1]
        table = drawn.arrays["times"][row]
        assert np.array_equal(given.arrays["times"], table[:, :longest])
        assert not (table[:, longest:] >= 0).any()


def test_fractions_are_written_and_read_back(tmp_path):
    times = np.array([[[0.1, -1.0], [2.0, 1 / 3]]])
    assert read(tmp_path, write_fjs({"times": times})).arrays["times"].tolist() == times.tolist()


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_instances_are_known_by_their_content(tmp_path, name):
    text, optimum = PUBLISHED[name]
    given = read(tmp_path, text, "whatever.txt")
    assert (given.name, given.known) == (name, optimum)
    assert "ScheduleOpt" in given.known_from


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("method", ["local-search", "cpsat"])
def test_published_optima_are_reached(tmp_path, name, method):
    text, optimum = PUBLISHED[name]
    given = read(tmp_path, text)
    actions = BASELINES[method].solve(given.arrays, Limit(None, 100), 0)
    assert solution_cost(KIT, given, list(actions)) == optimum


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gives_a_schedule(rule):
    drawn = FJSPGenerator(6, 4, "sd1", 10).generate()
    for row in range(10):
        verdict = KIT.instances.verify(drawn.instance(row), dispatch(RULES[rule][1], drawn.instance(row)))
        assert verdict.feasible, verdict.reason


def test_a_rule_keeps_no_machine_idle():
    times = np.array([[[4, -1], [-1, 3]], [[-1, 9], [-1, -1]]])
    assert dispatch(RULES["mwkr"][1], {"times": times}) == [3, 0, 1]  # job 1 has more work
    assert dispatch(RULES["mopnr"][1], {"times": times}) == [0, 3, 1]  # job 0 has more operations
    assert dispatch(RULES["eet"][1], {"times": times}) == [0, 1, 3]  # 4, then 7 before 9


def test_schedules_are_written_and_read_back(tmp_path):
    given = read(tmp_path, TEXTS["from one"])
    actions = [0, 3, 1]
    csv = KIT.exports["csv"]
    text = csv.write(given, actions)
    assert text.splitlines() == ["job,operation,machine,start,end", "0,0,0,0,2", "0,1,1,2,6", "1,0,1,0,1"]
    assert csv.read(given, text) == [3, 0, 1]
    assert solution_cost(KIT, given, csv.read(given, text)) == 6
    assert "machine 1: 1.0[0, 1) 0.1[2, 6)" in KIT.exports["schedule"].write(given, actions)
    with pytest.raises(FormatError, match=r"runs on machine 2, but machines are 0 .. 1"):
        csv.read(given, text.replace("0,1,1,2,6", "0,1,2,2,6"))
