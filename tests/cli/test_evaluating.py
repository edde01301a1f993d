"""`gumbeldore evaluate` as a user calls it."""

from __future__ import annotations

import csv
import io

import pytest
import torch
from rich.console import Console

from gumbeldore.cli import evaluate as command
from gumbeldore.cli import main
from gumbeldore.cli.evaluate import EvaluateSettings
from gumbeldore.files import locked
from gumbeldore.io.instance_files import write_instances
from gumbeldore.io.policy_files import save_policy
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.policies import CVRPPolicy, TSPPolicy
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.runs.presets import entry

FILES = {"table.csv", "table.json", "table.md", "table.png", "answers.csv", "curves.csv"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a policy, a file of instances, and one policy of another problem."""
    folder = tmp_path_factory.mktemp("evaluate")
    torch.manual_seed(0)
    save_policy(folder / "run/policy.safetensors", TSPPolicy(d=8, layers=1, heads=2, ff=16))
    save_policy(folder / "other.safetensors", CVRPPolicy(d=8, layers=1, heads=2, ff=16))
    write_instances(folder / "six.npz", TSPGenerator(6, 4, 0).generate())
    write_instances(folder / "folder/seven.npz", TSPGenerator(7, 2, 0).generate())
    write_instances(folder / "folder/eight.npz", TSPGenerator(8, 2, 0).generate())
    return folder


def run(place, out, *arguments, problem="tsp"):
    return main(["evaluate", problem, "--folder", str(out), "--workers", "0", *arguments])


def test_policies_samplers_and_baselines_come_into_one_table(place, tmp_path, capsys):
    sets = ["--sets", str(place / "six.npz"), str(place / "folder"), "tsp20", "--first", "3"]
    methods = ["--policies", str(place / "run"), "--samplers", "greedy", "wor:2x2", "--baselines", "nearest-neighbour"]
    assert run(place, tmp_path, *sets, *methods, "--repeats", "2", "--against", "nearest-neighbour") == 0
    assert {path.name for path in tmp_path.iterdir()} == FILES | {"answers", ".lock"}
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [row["set"] for row in rows] == ["six"] * 3 + ["folder"] * 3 + ["tsp20"] * 3 + ["all sets"] * 3
    assert [row["method"] for row in rows[:3]] == ["run greedy", "run wor:2x2", "nearest-neighbour"]
    assert [row["instances"] for row in rows] == ["3"] * 9 + ["9"] * 3
    assert "difference of gaps to nearest-neighbour" in " ".join(capsys.readouterr().out.split())


def test_a_bad_file_of_a_folder_stops_nothing_and_decides_the_exit_code(place, tmp_path, capsys):
    write_instances(tmp_path / "sets/good.npz", TSPGenerator(6, 2, 0).generate())
    (tmp_path / "sets/bad.tsp").write_text("NAME: bad\nTYPE: TSP\nDIMENSION: 3\n")
    (tmp_path / "sets/empty.csv").touch()
    (tmp_path / "sets/README.txt").write_text("What these are.")
    arguments = ["--sets", str(tmp_path / "sets"), "--baselines", "nearest-neighbour"]
    assert run(place, tmp_path / "out", *arguments) == 1
    (row,) = csv.DictReader((tmp_path / "out/table.csv").read_text().splitlines())
    assert (row["set"], row["instances"]) == ("sets", "2")
    error = capsys.readouterr().err
    assert [name for name in ("bad.tsp", "empty.csv", "README.txt") if name in error] == ["bad.tsp", "empty.csv"]


def test_a_folder_in_which_every_file_is_bad_is_refused(place, tmp_path, capsys):
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets/empty.tsp").touch()
    assert run(place, tmp_path / "out", "--sets", str(tmp_path / "sets"), "--baselines", "nearest-neighbour") == 2
    assert "empty.tsp is empty" in capsys.readouterr().err


def test_two_evaluations_do_not_share_a_folder_at_a_time(place, tmp_path, capsys):
    arguments = ["--sets", str(place / "six.npz"), "--baselines", "nearest-neighbour"]
    with locked(tmp_path):
        assert run(place, tmp_path, *arguments) == 2
    assert "Another process is at work" in capsys.readouterr().err


def test_a_cluster_takes_the_place_of_processes():
    assert EvaluateSettings(("tsp20",), workers=3).pool == 3
    assert EvaluateSettings(("tsp20",), workers=3, cluster="auto").pool == Cluster("auto")


def test_the_same_command_again_computes_nothing(place, tmp_path, capsys, monkeypatch):
    arguments = ["--sets", str(place / "six.npz"), "--policies", f"mine={place / 'run/policy.safetensors'}"]
    assert run(place, tmp_path, *arguments) == 0
    before = (tmp_path / "table.csv").read_text()
    monkeypatch.setattr("gumbeldore.evaluation.running._solve", None)
    assert run(place, tmp_path, *arguments) == 0
    assert (tmp_path / "table.csv").read_text() == before
    assert "4 answers are there already" in capsys.readouterr().out


def test_an_interrupt_says_what_is_kept(place, tmp_path, capsys, monkeypatch):
    from gumbeldore.evaluation import running

    solve, calls = running._solve, []

    def interrupted(methods, item):
        calls.append(item)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(methods, item)

    monkeypatch.setattr(running, "_solve", interrupted)
    arguments = ["--sets", str(place / "six.npz"), "--baselines", "nearest-neighbour"]
    assert run(place, tmp_path, *arguments) == 130
    assert "Stopped: 2 of 4 answers are kept" in capsys.readouterr().out.replace("\n", " ")
    assert run(place, tmp_path, *arguments) == 0
    assert len(calls) == 3 + 2


def test_a_row_that_fails_is_reported_after_the_others_are_written(place, tmp_path, capsys):
    pytest.importorskip("ortools")
    arguments = ["--sets", "tsp100", "--first", "1", "--baselines", "nearest-neighbour", "cpsat:work=0.000001"]
    assert run(place, tmp_path, *arguments) == 2
    assert (tmp_path / "table.csv").is_file()
    assert "Some rows are missing. cpsat:work=0.000001 on tsp100: no answer to 1 of 1" in capsys.readouterr().err.replace(
        "\n", " "
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sets", "tsp21", "--baselines", "pyvrp"], "tsp21 is no file, no folder and no standard set of tsp (tsp20, "),
        (["--random", "2", "--baselines", "nearest-neighbour", "--first", "0"], "`first` must be at least 1, got 0"),
        (["--sets", "tsp20", "--policies", "unheard-of"], "Unknown policy `unheard-of` for tsp. Known: tsp-small"),
        (["--sets", "tsp20", "--policies", "missing.safetensors"], "There is no policy file missing.safetensors"),
        (
            ["--sets", "tsp20", "--policies", "PLACE/other.safetensors"],
            "`policy` must be one for tsp, but PLACE/other.safetensors holds a CVRPPolicy, which is for cvrp",
        ),
        (["--sets", "tsp20", "--policies", "PLACE/run", "PLACE/run"], "Two policies are called `run` in the table"),
        (["--sets", "tsp20", "--policies", "PLACE/run", "--samplers", "gd"], "`gd` must have a size as in `gd:32x4`"),
        (
            ["--sets", "tsp20", "--baselines", "nearest-neighbour", "--against", "pyvrp"],
            "`against` must be one of nearest-neighbour",
        ),
        (["--sets", "tsp20", "--baselines", "nearest-neighbour", "--first", "0"], "`first` must be at least 1, got 0"),
        (["--sets", "tsp20", "--baselines", "nearest-neighbour", "--repeats", "0"], "`repeats` must be at least 1, got 0"),
        (["--sets", "tsp20", "tsp20", "--baselines", "nearest-neighbour"], "`tsp20` occurs more than once"),
    ],
)
def test_what_cannot_be_done_is_one_line_before_any_work(place, tmp_path, capsys, arguments, message):
    given = [argument.replace("PLACE", str(place)) for argument in arguments]
    assert run(place, tmp_path, *given) == 2
    error = capsys.readouterr().err
    assert message.replace("PLACE", str(place)) in error.replace("\n", " ")
    assert "Traceback" not in error


def test_a_problem_without_instance_files_says_so(place, tmp_path, capsys):
    assert run(place, tmp_path, "--sets", "any", problem="gomoku") == 2
    assert "There are no instance files for `gomoku`" in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 200])
def test_no_figure_is_cut_off_in_narrow_and_wide_windows(place, tmp_path, width):
    text = io.StringIO()
    settings = EvaluateSettings(
        (str(place / "six.npz"),), baselines=("nearest-neighbour", "farthest-insertion"), folder=tmp_path, workers=0
    )
    command.evaluate(entry("tsp").kit, settings, Console(file=text, width=width))
    assert "…" not in text.getvalue()
    assert "nearest-neighbour" in text.getvalue()


def test_the_help_lists_sets_samplers_and_baselines(capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "jssp", "--help"])
    text = capsys.readouterr().out
    for word in ("taillard-15x15", "gd:32x4", "mwkr", "cpsat"):
        assert word in text
