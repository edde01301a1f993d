"""A folder of solutions: nothing better is replaced, one process at a time, and what is there can be gone on from."""

from __future__ import annotations

import json

import pytest
from filelock import FileLock

import gumbeldore
from gumbeldore import Greedy
from gumbeldore.cli import main
from gumbeldore.errors import BusyError, FormatError
from gumbeldore.solving import Solving
from gumbeldore.solving.saving import SolutionFolder, read_records


@pytest.fixture
def solved(instances, weights):
    def solve(time_limit: float | None = None):
        limits = {"parts": ["local-search"], "time_limit": time_limit} if time_limit else {"sampler": Greedy()}
        return gumbeldore.solve(instances / "berlin52.tsp", policy=weights["tsp"], **limits)

    return solve


def save(path, result, **options) -> list[str]:
    folder = SolutionFolder(path, **options)
    with folder.reserved():
        return folder.save([result], 0)


def test_a_worse_solution_does_not_replace_a_better_one_unless_told_to(solved, tmp_path):
    good, bad = solved(0.5), solved()
    assert good.cost < bad.cost
    save(tmp_path, good)
    tour = (tmp_path / "berlin52.tour").read_text()
    lines = save(tmp_path, bad)
    (record,) = read_records(tmp_path / "solutions.json")
    assert record["cost"] == good.cost
    assert (tmp_path / "berlin52.tour").read_text() == tour
    assert any("of an earlier run is better and stays (--replace)" in line for line in lines)
    save(tmp_path, bad, replaces=True)
    (record,) = read_records(tmp_path / "solutions.json")
    assert record["cost"] == bad.cost
    save(tmp_path, good)
    assert read_records(tmp_path / "solutions.json")[0]["cost"] == good.cost


def test_solutions_of_other_instances_stay(solved, instances, weights, tmp_path):
    save(tmp_path, solved())
    save(tmp_path, gumbeldore.solve(instances / "ulysses16.tsp", policy=weights["tsp"], sampler=Greedy()))
    assert [record["name"] for record in read_records(tmp_path / "solutions.json")] == ["ulysses16", "berlin52"]


def test_two_processes_do_not_share_a_folder(tmp_path):
    with FileLock(tmp_path / ".lock"), pytest.raises(BusyError, match="is at work"), SolutionFolder(tmp_path).reserved():
        raise AssertionError


def test_a_file_that_is_something_else_is_not_overwritten(tmp_path):
    for content in ("{}[", '[{"a": 1}]', "3"):
        (tmp_path / "solutions.json").write_text(content)
        with pytest.raises(FormatError, match="holds no solutions of ours"), SolutionFolder(tmp_path).reserved():
            raise AssertionError
        assert (tmp_path / "solutions.json").read_text() == content


def test_a_run_goes_on_from_the_folder_or_from_a_file_when_asked(instances, weights, solved, tmp_path):
    good = solved(0.5)
    save(tmp_path / "out", good)
    file, options = str(instances / "berlin52.tsp"), ["--policy", str(weights["tsp"]), "--time-limit", "0.1"]
    assert main(["solve", file, *options, "--parts", "policy", "--folder", str(tmp_path / "out"), "--resume"]) == 0
    (record,) = read_records(tmp_path / "out" / "solutions.json")
    assert (record["cost"], record["improvements"][0]["by"]) == (good.cost, "start")
    start = ["--start", str(tmp_path / "out" / "berlin52.tour"), "--folder", str(tmp_path / "other")]
    assert main(["solve", file, *options, "--parts", "policy", *start]) == 0
    assert read_records(tmp_path / "other" / "solutions.json")[0]["cost"] == good.cost


def test_improvements_are_on_disk_before_the_search_ends(instances, weights, tmp_path, monkeypatch):
    monkeypatch.setattr("gumbeldore.solving.saving.PAUSE", 0.0)
    seen = []
    original = Solving.__iter__

    def watched(self):
        for event in original(self):
            yield event
            saved = tmp_path / "solutions.json"
            seen.append(json.loads(saved.read_text())[0]["cost"] if saved.exists() else None)

    monkeypatch.setattr(Solving, "__iter__", watched)
    options = ["--policy", str(weights["tsp"]), "--time-limit", "0.3", "--folder", str(tmp_path)]
    assert main(["solve", str(instances / "berlin52.tsp"), *options]) == 0
    assert len(seen) >= 2
    assert seen[0] is not None
    assert seen == sorted(seen, reverse=True)
