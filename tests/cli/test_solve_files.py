"""`gumbeldore solve FILE...` as a user calls it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kits import KITS
from routing import awake

from gumbeldore import Gumbeldore, save_policy
from gumbeldore.cli import main
from gumbeldore.io.instance_files import write_instances
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.search import presets

DATA = Path(__file__).parents[1] / "data" / "instances"
TINY = {"d": 16, "heads": 2, "ff": 16}


@pytest.fixture(scope="session")
def weights(tmp_path_factory) -> dict[str, str]:
    folder, paths = tmp_path_factory.mktemp("weights"), {}
    for name, more in (("tsp", {"layers": 1}), ("cvrp", {"layers": 1}), ("jssp", {"pairs": 1})):
        architecture = next(iter(KITS[name].architectures.values()))
        paths[name] = str(folder / f"{name}.safetensors")
        save_policy(paths[name], awake(architecture.make(KITS[name].problem, replace(architecture.size, **TINY, **more))))
    return paths


@pytest.fixture
def solve(weights, tmp_path, capsys):
    """Runs the command with its results in a folder; returns the exit code, what it printed, and what it saved."""

    def run(*arguments: str | Path, policy: str = "tsp") -> tuple[int, Any, list[dict[str, Any]]]:
        folder = tmp_path / "out"
        options = ["--policy", weights[policy], "--folder", str(folder), "--device", "cpu"]
        replaced = [] if "--resume" in arguments or "--keep" in arguments else ["--replace"]
        code = main(["solve", *(str(each) for each in arguments if each != "--keep"), *options, *replaced])
        saved = folder / "solutions.json"
        return code, capsys.readouterr(), json.loads(saved.read_text()) if saved.exists() else []

    return run


GREEDY = ("--sampler", "greedy")


def test_a_file_is_solved_with_lines_a_table_a_picture_and_a_tour(solve, tmp_path):
    code, printed, (record,) = solve(DATA / "ulysses16.tsp", *GREEDY)
    shown = " ".join(printed.out.split())
    assert code == 0
    assert f"tour length {record['cost']:.0f} gap" in shown
    assert "Best solutions found: tour length" in shown
    assert "6859" in shown
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [".lock", "solutions.json", "ulysses16.png", "ulysses16.tour"]
    assert (record["file"], record["row"], record["name"]) == (str(DATA / "ulysses16.tsp"), 0, "ulysses16")
    assert record["gap"] == pytest.approx(record["cost"] / 6859 - 1)
    assert "plane; costs and local search go by the file's rule, GEO" in shown


@pytest.mark.parametrize(("file", "problem", "written"), [("A-n32-k5.vrp", "cvrp", ".sol"), ("ft06.txt", "jssp", ".csv")])
def test_other_problems_are_guessed_and_written_in_their_own_formats(file, problem, written, solve, tmp_path):
    code, _, (record,) = solve(DATA / file, *GREEDY, policy=problem)
    assert (code, record["problem"]) == (0, problem)
    names = [path.name for path in (tmp_path / "out").iterdir()]
    assert any(name.endswith(written) for name in names)
    assert any(name.endswith(".png") for name in names)


def test_json_prints_results_and_nothing_else(solve):
    code, printed, saved = solve(DATA / "ulysses16.tsp", DATA / "absent.tsp", *GREEDY, "--json")
    answer = json.loads(printed.out)
    assert code == 1
    assert answer["solutions"] == saved
    assert answer["failures"][0]["file"] == str(DATA / "absent.tsp")
    assert answer["stopped_early"] is False
    assert "Best solutions found" in printed.err


def test_one_bad_file_gives_exit_code_1_and_only_bad_ones_2(solve, tmp_path):
    (tmp_path / "empty.tsp").write_text("")
    code, printed, saved = solve(tmp_path / "empty.tsp", DATA / "ulysses16.tsp", *GREEDY)
    assert (code, len(saved)) == (1, 1)
    assert "empty.tsp is empty" in " ".join(printed.err.split())
    assert solve(tmp_path / "empty.tsp", tmp_path / "absent.tsp", *GREEDY)[0] == 2


def test_files_of_several_problems_need_several_policies(solve):
    code, printed, saved = solve(DATA / "ft06.txt", DATA / "ulysses16.tsp", *GREEDY)
    assert (code, [record["problem"] for record in saved]) == (1, ["tsp"])
    assert "`policy` must be one for jssp, but" in " ".join(printed.err.split())


def test_many_files_of_a_folder_are_solved_in_processes_with_one_table(solve, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for cities in (5, 6, 7):
        write_instances(folder / f"{cities}.npz", TSPGenerator(cities, 2, 1).generate())
    (folder / "README").write_text("Not an instance.")
    alone = solve(folder, *GREEDY, "--workers", "0")[2]
    code, printed, together = solve(folder, *GREEDY, "--workers", "2")
    keys = ("file", "row", "cost", "tour")
    assert code == 0
    assert [[record[key] for key in keys] for record in together] == [[record[key] for key in keys] for record in alone]
    assert [Path(record["file"]).name for record in together] == ["5.npz", "5.npz", "6.npz", "6.npz", "7.npz", "7.npz"]
    assert "7[1]" in printed.out


def test_an_empty_file_of_a_folder_is_a_failure_and_what_looks_like_no_instance_is_left_out(solve, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    write_instances(folder / "good.npz", TSPGenerator(5, 1, 1).generate())
    (folder / "empty.vrp").touch()
    (folder / "README.txt").write_text("Not an instance.")
    code, printed, saved = solve(folder, *GREEDY)
    assert (code, len(saved)) == (1, 1)
    assert "empty.vrp is empty" in printed.err
    assert "Left out, because they look like no instances: README.txt." in printed.out


def test_an_outside_solver_is_named(solve, monkeypatch):
    from gumbeldore.kits.solver import Limit
    from gumbeldore.solving import refining

    monkeypatch.setattr(refining, "Limit", lambda seconds: Limit(None, seconds))
    code, printed, (record,) = solve(DATA / "ulysses16.tsp", *GREEDY, "--polish", "50")
    shown = " ".join(printed.out.split())
    assert (code, record["by"]) == (0, "pyvrp")
    assert [share["by"] for share in record["shares"]] == ["policy", "pyvrp"]
    costs = [each["cost"] for each in record["improvements"]]
    assert costs == sorted(costs, reverse=True)
    assert "Who found what" in shown


@dataclass(frozen=True)
class Terminated(Gumbeldore):
    """A sampler in whose second round the process is asked to stop."""

    def stream(self, *arguments):
        yield next(super().stream(*arguments))
        os.kill(os.getpid(), self.number)
        raise AssertionError("This is never reached.")

    number = signal.SIGTERM


@dataclass(frozen=True)
class Interrupted(Terminated):
    number = signal.SIGINT


@pytest.mark.parametrize(("sampler", "expected"), [(Terminated(4, 3), 143), (Interrupted(4, 3), 130)])
def test_a_signal_keeps_the_best_and_has_its_own_exit_code(sampler, expected, solve, monkeypatch):
    monkeypatch.setitem(presets.PRESETS, "fast", sampler)
    code, printed, (record,) = solve(DATA / "ulysses16.tsp", "--preset", "fast", "--sequences", "100")
    assert code == expected
    assert record["sequences"] == 1 + 4
    assert "Interrupted: these are the best solutions found so far." in " ".join(printed.out.split())


def test_sequences_and_samplers_can_be_chosen(solve):
    options = ("--sampler", "wr:8")
    _, _, (record,) = solve(DATA / "ulysses16.tsp", *options)
    assert record["sequences"] == 8
    _, _, (record,) = solve(DATA / "ulysses16.tsp", *options, "--sequences", "20")
    assert record["sequences"] == 24


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "`absent` is neither a file nor a problem"),
        (["absent.tsp"], "no file absent.tsp"),
        ([], "Name files or a problem"),
        (["cities.csv", "--sampler", "greedy"], "No trained policy ships for `tsp`. Train one"),
        (["cities.csv", "--seed", str(2**70)], "`seed` must lie in 0 .. 2^63 - 1"),
        (["cities.csv", "--folder", "a\0b"], "No argument may hold a null character"),
        (["cities\0.csv"], "No argument may hold a null character"),
        (["tsp", "cities.csv", "--random", "2"], "leave one of them out"),
        (["cities.csv", "--start", "cities.sol"], "`start` must be a solution of tsp (.tour), got cities.sol"),
        (["cities.csv", "--sampler", "beam"], "must have a size as in `beam:16`"),
        (["cities.csv", "--preset", "fast", "--sampler", "beam:4"], "leave one of them out"),
        (["cities.csv", "--time-limit", "0"], "`time_limit` must be above 0"),
        (["cities.csv", "--sequences", "0"], "`sequences` must be at least 1"),
        (["cities.csv", "--nearest", "-1"], "`nearest` must be at least 0"),
        (["cities.csv", "--pictures", "-1"], "`pictures` must be at least 0"),
        (["cities.csv", "--folder", "cities.csv"], "`--folder` must be where files can be written"),
        (["cities.csv", "--problem", "knapsack"], "Unknown problem `knapsack`"),
        (["cities.csv", "--problem", "jssp"], "cities.csv"),
    ],
)
def test_mistakes_get_one_clear_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gumbeldore.io.shipped.shipped", lambda kit: [])
    Path("cities.csv").write_text("x,y\n0,0\n1,0\n1,1\n0,1\n3,4\n")
    assert main(["solve", *arguments]) == 2
    shown = capsys.readouterr().err
    assert message in " ".join(shown.split())
    assert "Traceback" not in shown


def test_a_folder_called_like_a_problem_is_named_with_its_path(solve, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DATA, tmp_path / "tsp", ignore=shutil.ignore_patterns("*.vrp", "*.atsp", "*.txt", "*.sol", "[ab]*"))
    code, _, (record,) = solve("./tsp", *GREEDY)
    assert (code, record["name"]) == (0, "ulysses16")


def test_help_tells_both_ways(capsys):
    assert main(["solve", "--help"]) == 0
    assert "FILE..." in (shown := capsys.readouterr().out)
    assert "PROBLEM" in shown
    with pytest.raises(SystemExit):
        main(["solve", "x.tsp", "--help"])
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("--time-limit", "--parts", "--preset", "--sampler", "--json", "--start"))
