"""Permutation flow shops from text files, and back; orders and schedules; and the verifier."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gumbeldore.errors import FormatError, SettingsError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.kits.solver import Limit
from gumbeldore.problems.intervals import Interval
from gumbeldore.problems.pfsp.baselines import BASELINES
from gumbeldore.problems.pfsp.files import write_fsp
from gumbeldore.problems.pfsp.improving import local_search
from gumbeldore.problems.pfsp.instances import PFSPGenerator
from gumbeldore.problems.pfsp.kit import KIT
from gumbeldore.problems.pfsp.taillard import benchmarks
from gumbeldore.problems.pfsp.verify import build_schedule, schedule_fault, verify_pfsp

TIMES = [[3, 2], [1, 4], [5, 0]]
TEXTS = {
    "words": "number of jobs, number of machines, initial seed, upper bound and lower bound :\n 3 2 17 12 9\nprocessing times :\n3 1 5\n2 4 0\n",
    "short": "3 2\nprocessing times :\n3 1 5\n2 4 0\n",
}


def read(tmp_path, text, name="a.fsp", kit=None):
    (tmp_path / name).write_text(text)
    found, given = read_file(tmp_path / name, kit)
    assert found is KIT
    return given


@pytest.mark.parametrize("layout", TEXTS)
@pytest.mark.parametrize("name", ["a.fsp", "a.txt"])
def test_taillards_layout_is_read(tmp_path, layout, name):
    (given,) = read(tmp_path, TEXTS[layout], name)
    assert given.arrays["times"].tolist() == TIMES
    assert given.arrays["times"].dtype == np.int64
    assert given.known == (12 if layout == "words" else None)


def test_a_file_may_hold_several_instances(tmp_path):
    first, second = read(tmp_path, TEXTS["words"] + TEXTS["short"])
    assert (first.name, second.name) == ("a[0]", "a[1]")
    assert first.arrays["times"].tolist() == second.arrays["times"].tolist() == TIMES


def test_a_flow_shop_that_is_written_as_a_job_shop_is_read_where_it_is_asked_for(tmp_path):
    text = "3 2\n0 3 1 2\n0 1 1 4\n0 5 1 0\n"
    (given,) = read(tmp_path, text, "a.txt", KIT)
    assert given.arrays["times"].tolist() == TIMES
    assert read_file(tmp_path / "a.txt")[0].name == "jssp"


@pytest.mark.parametrize("index", [0, 45, 119])
def test_taillards_instances_are_known_by_their_content(tmp_path, index):
    benchmark = benchmarks()[index]
    (given,) = read(tmp_path, write_fsp({"times": benchmark.times()}))
    assert (given.name, given.known) == (benchmark.name, benchmark.best)
    assert "P3D-DFS" in given.known_from


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3 2\nprocessing times :\n3 1 5\n", "There must be 2 rows of times, one for each machine, got 1"),
        ("3 2\nprocessing times :\n3 1\n2 4 0\n", "The row of machine 1 must have 3 times, got 2"),
        ("3 2\nprocessing times :\n3 1 -5\n2 4 0\n", "Time 3 of machine 1 is -5, but times must lie in 0"),
        ("0 2\nprocessing times :\n", "There must be at least 1 job and 1 machine, got 0 and 2"),
        ("processing times :\n", "got no numbers"),
        ("3 2 x\nprocessing times :\n", "There are words between the numbers: '3 2 x'"),
        ("1 2 3 4 5 6\nprocessing times :\n", "must have 2 to 5 numbers, got 6"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, message):
    with pytest.raises(FormatError, match=message) as error:
        read(tmp_path, text)
    assert len(str(error.value).splitlines()) == 1


def test_a_job_shop_is_no_flow_shop(tmp_path):
    (tmp_path / "a.jsp").write_text("2 2\n0 3 1 2\n1 1 0 4\n")
    with pytest.raises(FormatError, match=r"Job 2 must visit machines 0 .. 1 in this order"):
        read_file(tmp_path / "a.jsp", KIT)


def test_what_is_written_is_read_back(tmp_path):
    drawn = PFSPGenerator(7, 3, 10).generate()
    for row in range(10):
        (given,) = read(tmp_path, write_fsp(drawn.instance(row)))
        assert np.array_equal(given.arrays["times"], drawn.arrays["times"][row])
    (given,) = read(tmp_path, write_fsp({"times": np.array([[0.1, 1 / 3]])}))
    assert given.arrays["times"].tolist() == [[0.1, 1 / 3]]


@pytest.mark.parametrize("export", ["order", "csv"])
def test_solutions_are_written_and_read_back(tmp_path, export):
    (given,) = read(tmp_path, TEXTS["words"])
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        found = KIT.exports[export].read(given, KIT.exports[export].write(given, order))
        assert found == order
        assert solution_cost(KIT, given, found) == solution_cost(KIT, given, order)


def test_cp_sat_finds_the_optimum_of_a_small_shop(tmp_path):
    (given,) = read(tmp_path, TEXTS["words"])
    order = BASELINES["cpsat"].solve(given.arrays, Limit(None, 10), 0)
    assert solution_cost(KIT, given, list(order)) == 9


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ([0, 1], "1 jobs are never visited, the first is 2"),
        ([0, 1, 1], "job 1 is visited again at position 2"),
        ([0, 1, 3], "job 3 at position 2 does not exist"),
    ],
)
def test_what_is_no_order_is_infeasible(order, reason):
    verdict = verify_pfsp(TIMES, order)
    assert (verdict.feasible, verdict.objective) == (False, -math.inf)
    assert reason in verdict.reason


def test_an_order_is_as_long_as_its_last_job():
    assert verify_pfsp(TIMES, [0, 1, 2]).objective == -9
    assert verify_pfsp(TIMES, [2, 0, 1]).objective == -14
    with pytest.raises(SettingsError, match="`times` must have the shape"):
        verify_pfsp([1, 2], [0])


def test_faults_of_intervals_are_found():
    good = build_schedule(TIMES, [0, 1, 2])
    assert schedule_fault(good, TIMES) == ""
    assert "not scheduled exactly once" in schedule_fault(good[1:], TIMES)
    early = [i if (i.job, i.machine) != (1, 1) else Interval(3, 7, 1, 1, 1) for i in good]
    assert "starts on machine 1 before it ends on machine 0" in schedule_fault(early, TIMES)
    short = [i if (i.job, i.machine) != (2, 0) else Interval(4, 8, 0, 2, 0) for i in good]
    assert "does not run as long as it takes" in schedule_fault(short, TIMES)
    beside = [i if (i.job, i.machine) != (1, 1) else Interval(4, 8, 1, 1, 1) for i in good]
    assert "are on machine 1 at the same time" in schedule_fault(beside, TIMES)


def test_an_instance_of_a_file_is_improved_for_as_long_as_somebody_likes(tmp_path):
    (given,) = read(tmp_path, write_fsp({"times": benchmarks()[0].times()}))
    search = local_search(given, 0, list(range(20)))
    assert search.actions == list(range(20))
    search.run(work=400)
    assert verify_pfsp(given.arrays["times"], search.actions).objective > -1300
    assert verify_pfsp(given.arrays["times"], local_search(given, 0, None).actions).objective == -1286
