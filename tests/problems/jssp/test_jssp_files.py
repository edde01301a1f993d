"""Job shops from text files, in both layouts; and schedules."""

from __future__ import annotations

import numpy as np
import pytest

from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.problems.jssp.kit import KIT
from gumbeldore.problems.jssp.taillard import taillard, taillard_benchmarks

TIMES, MACHINES = [[3, 2, 5], [4, 60, 1]], [[0, 2, 1], [1, 0, 2]]
HEADING = "Nb of jobs, Nb of Machines, Time seed, Machine seed, Upper bound, Lower bound\n"
TEXTS = {
    "standard": "2 3\n0 3 2 2 1 5\n1 4 0 60 2 1\n",
    "comments": "#+++\n# instance toy\n#+++\n2 3\n0 3 2 2 1 5\n1 4 0 60 2 1\n",
    "title": "Nobody 2x3 instance (Table 1)\n  2   3\n  0 3  2 2  1 5\n  1 4  0 60  2 1\n\n",
    "from one": "2 3\n1 3 3 2 2 5\n2 4 1 60 3 1\n",
    "blocks": "2 3\n3 2 5\n4 60 1\n1 3 2\n2 1 3\n",
    "bare blocks": "3 2 5\n4 60 1\n1 3 2\n2 1 3\n",
    "words": "2 3\nTimes\n3 2 5\n4 60 1\nMachines\n1 3 2\n2 1 3\n",
    "only words": "Times\n3 2 5\n4 60 1\nMachines\n1 3 2\n2 1 3\n",
    "Taillard": HEADING + " 2 3 11 22 70 60\nTimes\n3 2 5\n4 60 1\nMachines\n1 3 2\n2 1 3\n",
}


def read(tmp_path, text, name="a.txt"):
    (tmp_path / name).write_text(text)
    kit, given = read_file(tmp_path / name)
    assert kit is KIT
    return given


def taillard_text(index, header=True):
    state, benchmark = taillard(index), taillard_benchmarks()[index - 1]
    numbers = (benchmark.jobs, benchmark.machines, benchmark.time_seed, benchmark.machine_seed, 9999, 1)
    rows = [" ".join(map(str, row)) for row in state.times[0].tolist()]
    orders = [" ".join(str(machine + 1) for machine in row) for row in state.machines[0].tolist()]
    first = HEADING + " ".join(map(str, numbers)) if header else f"{benchmark.jobs} {benchmark.machines}"
    words = ("Times", "Machines") if header else ()
    return "\n".join([first, *words[:1], *rows, *words[1:], *orders, ""])


@pytest.mark.parametrize("layout", TEXTS)
def test_every_layout_gives_the_same_shop(tmp_path, layout):
    (given,) = read(tmp_path, TEXTS[layout])
    assert given.arrays["times"].tolist() == TIMES
    assert given.arrays["machines"].tolist() == MACHINES
    assert given.arrays["times"].dtype == np.int64
    assert given.name == ("toy" if layout == "comments" else "a")
    assert given.known == (70 if layout == "Taillard" else None)
    assert bool(given.notes) == (layout == "from one")


def test_times_may_be_fractions_or_zero(tmp_path):
    (given,) = read(tmp_path, "1 2\n0 1.5 1 0\n")
    assert given.arrays["times"].tolist() == [[1.5, 0]]
    assert solution_cost(KIT, given, [0, 0]) == 1.5
    (given,) = read(tmp_path, "1 2\n0 0 1 0\n")
    assert given.scale == 1


@pytest.mark.parametrize("header", [True, False])
def test_instances_of_taillard_are_recognised_by_their_content(tmp_path, header):
    (given,) = read(tmp_path, taillard_text(5, header), "shop.txt")
    assert (given.name, given.known) == ("ta05", 1224)
    assert "ta05" in given.known_from


def test_a_faulty_copy_is_told_from_the_original(tmp_path):
    text = taillard_text(1, header=False).splitlines()
    text[1] = "1" + text[1][2:]  # the first time is 94
    (given,) = read(tmp_path, "\n".join(text), "ta01.txt")
    assert given.known is None
    assert "differs from Taillard's ta01" in given.notes[0]


def test_a_file_may_hold_several_instances(tmp_path):
    many = read(tmp_path, taillard_text(1) + taillard_text(2) + TEXTS["Taillard"])
    assert [given.name for given in many] == ["ta01", "ta02", "a[2]"]
    assert [given.known for given in many] == [1231, 1244, 70]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 3\n0 3 2 2 1 5\n", "There must be 2 rows of times, one for each job, got 1"),
        ("2 3\n0 3 2 2 1 5\n1 4 0 60 2\n", "Job 2 must have 6 numbers, .* got 5. Flexible and recirculating"),
        ("2 3\n0 3 2 2 0 5\n1 4 0 60 2 1\n", "Job 1 visits machine 0 more than once and machine 1 never. Flexible and recirc"),
        ("2 3\n0 3 2 2 7 5\n1 4 0 60 2 1\n", "Job 1 visits machine 7, but machines are numbered 0 .. 2"),
        ("2 3\n0 3 2 2\n1 4 0 60 2 1\n", "Job 1 must have 6 numbers, .* got 4. Flexible and recirculating"),
        ("2 3\n0 3 2 -2 1 5\n1 4 0 60 2 1\n", "Operation 2 of job 1 takes -2, but times must lie in 0"),
        ("2 3\n0 3 2 nan 1 5\n1 4 0 60 2 1\n", "Operation 2 of job 1 takes nan"),
        ("2 3\n0 3 2 1e308 1 5\n1 4 0 60 2 1\n", "Operation 2 of job 1 takes 1e[+]308"),
        ("2 3 1.5\n3 2 1 4 2 1 3 2 5 1 2 4\n1 1 2 2\n", "got 3 numbers. Flexible and recirculating job shops: --problem fjsp"),
        ("2 3\n0.5 3 2 2 1 5\n1 4 0 60 2 1\n", "A machine of job 1 must be an integer, got '0.5'"),
        ("2 3\n0 3 2 2 1 5\nend\n1 4 0 60 2 1\n", "There are words between the numbers: 'end'"),
        ("2 3\n3 2 5\n4 60 1\n1 3 2\n", "There must be 2 rows of times, one for each job, got 1"),
        ("Times\n3 2 5\n4 60 1\n", "`Times` and `Machines` must both be there"),
        ("2 3\nTimes\n3 2 5\n4 60\nMachines\n1 3 2\n2 1 3\n", "Job 2 must have 3 times, one for each machine, got 2"),
        ("2 3\nTimes\n3 2 5\n4 60 1\nMachines\n1 3 2\n", "There must be 2 rows of machines, one for each job, got 1"),
        ("3\nTimes\n3 2 5\n4 60 1\nMachines\n1 3 2\n2 1 3\n", "must hold the numbers of jobs and machines, got one number"),
        ("Times\nMachines\n", "There must be 1 rows of times"),
        ("2 0\n1 2 3\n", "Job 1 must have 0 numbers"),
        ("-2 3\n0 3 2 2 1 5\n", "rows of times, one for each job, got 1"),
    ],
)
def test_a_wrong_file_is_refused_with_its_fault(tmp_path, text, message):
    (tmp_path / "a.jsp").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_file(tmp_path / "a.jsp", KIT)


class TestSchedules:
    ACTIONS = (1, 0, 0, 1, 0, 1)

    def given(self, tmp_path):
        return read(tmp_path, TEXTS["standard"])[0]

    def test_as_csv_name_every_operation_with_its_start_and_end(self, tmp_path):
        rows = KIT.exports["csv"].write(self.given(tmp_path), self.ACTIONS).splitlines()
        assert rows == [
            "job,operation,machine,start,end",
            "0,0,0,0,3",
            "0,1,2,3,5",
            "0,2,1,5,10",
            "1,0,1,0,4",
            "1,1,0,4,64",
            "1,2,2,64,65",
        ]

    def test_as_text_say_what_each_machine_does(self, tmp_path):
        text = KIT.exports["schedule"].write(self.given(tmp_path), self.ACTIONS)
        assert "# makespan 65\n" in text
        assert "machine 0: 0.0[0, 3) 1.1[4, 64)\n" in text

    def test_are_read_back_even_if_operations_take_no_time(self, tmp_path):
        (given,) = read(tmp_path, "2 2\n0 5 1 0\n1 5 0 5\n")
        actions = (0, 1, 0, 1)
        text = KIT.exports["csv"].write(given, actions)
        again = KIT.exports["csv"].read(given, text)
        assert solution_cost(KIT, given, again) == solution_cost(KIT, given, list(actions)) == 10

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,b\n", "first line of a schedule must be job,operation"),
            ("job,operation,machine,start,end\n0,0,0\n", "Row 2 must have 5 cells, got 3"),
            ("job,operation,machine,start,end\n0,0,0,x,3\n", "A start must be a number"),
        ],
    )
    def test_of_a_wrong_file_are_refused(self, tmp_path, text, message):
        with pytest.raises(FormatError, match=message):
            KIT.exports["csv"].read(self.given(tmp_path), text)
