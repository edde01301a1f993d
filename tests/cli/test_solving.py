"""`gumbeldore solve`, problem by problem."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from kits import KITS
from routing import awake, random_actions, seeded

from gumbeldore import save_policy
from gumbeldore.cli import main
from gumbeldore.errors import CheckpointError, SettingsError
from gumbeldore.io.instance_files import write_instances
from gumbeldore.kits.kit import InstanceGenerator
from gumbeldore.problems.cvrp.instances import CVRPGenerator
from gumbeldore.problems.cvrp.verify import verify_cvrp
from gumbeldore.problems.gomoku.verify import verify_gomoku
from gumbeldore.problems.jssp.instances import JSSPGenerator
from gumbeldore.problems.jssp.verify import verify_jssp
from gumbeldore.problems.tsp import kit as tsp_kit
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.problems.tsp.verify import verify_tsp
from gumbeldore.runs.presets import CATALOGUE
from gumbeldore.runs.settings import RunSettings
from gumbeldore.search.settings import SamplerSettings
from gumbeldore.solving import running
from gumbeldore.solving.found import Found
from gumbeldore.solving.policies import policy_for

FEW = ["--sampler", "gd:4x2", "--device", "cpu"]
SMALL = {
    "tsp": {"d": 16, "layers": 1, "heads": 2, "ff": 16},
    "atsp": {"d": 16, "layers": 1, "heads": 2, "ff": 16, "biased": 1, "tries": 2},
    "jssp": {"d": 16, "pairs": 1, "heads": 2, "ff": 16},
    "fjsp": {"d": 16, "pairs": 1, "heads": 2, "ff": 16},
    "gomoku": {"channels": 4, "blocks": 1, "head_channels": 2, "hidden": 8},
}
SIZES = {
    "tsp": ["--cities", "6"],
    "atsp": ["--cities", "6"],
    "cvrp": ["--customers", "6", "--capacity", "12"],
    "vrptw": ["--customers", "6"],
    "jssp": ["--jobs", "3", "--machines", "2"],
    "fjsp": ["--jobs", "3", "--machines", "2"],
    "pfsp": ["--jobs", "4", "--machines", "2"],
    "op": ["--customers", "6"],
    "gomoku": [],
}


@pytest.fixture(scope="session")
def policies(tmp_path_factory) -> Path:
    """A folder with a tiny untrained policy for every problem."""
    folder = tmp_path_factory.mktemp("policies")
    for entry in CATALOGUE.values():
        size = replace(entry.architecture.size, **SMALL.get(entry.name, SMALL["tsp"]))
        problem = replace(entry.kit.problem, size=5) if entry.name == "gomoku" else entry.kit.problem
        save_policy(folder / entry.name, awake(entry.build(RunSettings(problem=problem, policy=size))))
    return folder


@pytest.fixture
def solve(policies, tmp_path):
    """Runs the command; returns the records it saved."""

    def run(name: str, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        folder = tmp_path / "solved"
        options = ["--policy", str(policies / name), "--folder", str(folder), "--replace", *FEW]
        assert main(["solve", name, *arguments, *options]) == code
        return json.loads((folder / "solutions.json").read_text())

    return run


def family(name: str) -> str:
    return name.removesuffix("-lehd")


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_problem_is_solved_with_a_table_a_file_and_a_picture(name, solve, tmp_path, capsys):
    records = solve(name, "--count", "3", *SIZES[family(name)])
    assert [record["row"] for record in records] == [0, 1, 2]
    assert {"actions", "cost"} <= set(records[0])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Best solutions found" in shown
    assert f"Mean {CATALOGUE[name].kit.cost} of 3 instances: {np.mean([r['cost'] for r in records]):.4f}" in shown
    picture = matplotlib.image.imread(tmp_path / "solved" / f"{family(name)}-0.png")
    assert len(np.unique((picture[..., :3] * 255).astype(np.int64) @ (1 << 16, 1 << 8, 1))) > 10


def test_tours_are_written_as_they_are_worth(solve):
    instances = TSPGenerator(7, 2, 5).generate()
    for record in solve("tsp", "--cities", "7", "--count", "2", "--seed", "5"):
        verdict = verify_tsp(instances.arrays["coordinates"][record["row"]], record["tour"])
        assert (verdict.feasible, verdict.objective) == (True, pytest.approx(-record["cost"], abs=1e-12))
        assert record["tour"] == [0, *record["actions"]]


def test_with_nearest_every_tour_goes_on_to_a_near_city(solve):
    instances = TSPGenerator(9, 3, 5).generate()
    free, near = (solve("tsp", "--cities", "9", "--count", "3", "--seed", "5", *more) for more in ((), ("--nearest", "2")))
    assert [record["tour"] for record in free] != [record["tour"] for record in near]
    for record in near:
        points, tour = instances.arrays["coordinates"][record["row"]], record["tour"]
        for i in range(1, len(tour)):
            distance = np.linalg.norm(points[tour[i:]] - points[tour[i - 1]], axis=1)
            assert (distance < distance[0]).sum() < 2


def test_nearest_is_for_routes_only(solve, capsys):
    assert len(solve("cvrp", "--customers", "8", "--capacity", "12", "--nearest", "1")) == 1
    with pytest.raises(AssertionError):
        solve("jssp", "--nearest", "3")
    assert "There are no restrictions to near nodes for `jssp`" in " ".join(capsys.readouterr().err.split())


def test_routes_are_written_as_they_are_worth(solve):
    instances = CVRPGenerator(6, 12, 2, 5).generate()
    for record in solve("cvrp", "--customers", "6", "--capacity", "12", "--count", "2", "--seed", "5"):
        given = instances.instance(record["row"])
        verdict = verify_cvrp(given["nodes"], given["demands"], 12, record["customers"], record["via_depot"])
        assert (verdict.feasible, verdict.objective) == (True, pytest.approx(-record["cost"], abs=1e-12))
        assert [c for route in record["routes"] for c in route] == record["customers"]
        assert len(record["routes"]) == sum(record["via_depot"])
        assert [2 * c + v for c, v in zip(record["customers"], record["via_depot"], strict=True)] == record["actions"]


def test_schedules_are_written_as_they_are_worth(solve):
    instances = JSSPGenerator(3, 4, 2, 5).generate()
    for record in solve("jssp", "--jobs", "3", "--machines", "4", "--count", "2", "--seed", "5"):
        given = instances.instance(record["row"])
        verdict = verify_jssp(given["times"], given["machines"], record["jobs"])
        assert (verdict.feasible, verdict.objective) == (True, -record["makespan"])
        assert record["cost"] == record["makespan"]


def test_games_are_written_as_they_were_played_on_the_policys_board(solve):
    for record in solve("gomoku", "--count", "3"):
        verdict = verify_gomoku(5, record["moves"])
        assert (verdict.feasible, verdict.objective) == (True, -record["cost"])
        assert record["moves"][1::2] == record["actions"]
        assert (record["size"], record["winner"]) == (5, {1: "white", 0: None, -1: "black"}[int(verdict.objective)])


def file_of(path: Path, recipe: InstanceGenerator, labelled: bool = False) -> str:
    instances = recipe.generate()
    if labelled:
        actions = random_actions(instances.kind.problem, instances.state(), seeded(0))
        instances = instances.labelled(actions.tolist(), "dice")
    write_instances(path, instances)
    return str(path)


def test_files_of_different_sizes_are_solved_in_one_call_and_numbered_through(solve, tmp_path):
    recipes = [TSPGenerator(5, 2, 1), TSPGenerator(8, 1, 2), TSPGenerator(5, 1, 3)]
    files = [file_of(tmp_path / f"{index}.npz", recipe) for index, recipe in enumerate(recipes)]
    records = solve("tsp-lehd", *files)
    assert [record["row"] for record in records] == [0, 1, 0, 0]
    points = [cities for recipe in recipes for cities in recipe.generate().arrays["coordinates"]]
    for record, cities in zip(records, points, strict=True):
        assert -verify_tsp(cities, record["tour"]).objective == pytest.approx(record["cost"], abs=1e-12)


def test_the_mean_gap_to_labels_counts_only_labelled_instances(solve, tmp_path, capsys):
    bare = file_of(tmp_path / "bare.npz", JSSPGenerator(2, 2, 2, 7))
    labelled = file_of(tmp_path / "labelled.npz", JSSPGenerator(3, 3, 4, 8), labelled=True)
    records = solve("jssp", bare, labelled, "--workers", "0")
    with np.load(labelled) as file:
        costs = -file["objective"]
    gap = 100 * np.mean([record["cost"] / cost - 1 for record, cost in zip(records[2:], costs, strict=True)])
    assert f"Mean gap of 4 instances: {gap:.3f} %" in capsys.readouterr().out
    solve("jssp", bare)
    assert "Mean gap" not in capsys.readouterr().out


def test_random_instances_are_those_that_generate_writes(solve, tmp_path):
    arguments = ["--customers", "5", "--capacity", "15", "--count", "2", "--seed", "3"]
    assert main(["generate", "cvrp", "--out", str(tmp_path / "same.npz"), *arguments]) == 0
    drawn = solve("cvrp", *arguments)
    read = solve("cvrp", str(tmp_path / "same.npz"), "--seed", "3")
    assert [(record["file"], record["row"]) for record in read] == [(str(tmp_path / "same.npz"), row) for row in range(2)]
    for one, other in zip(read, drawn, strict=True):
        assert (one["actions"], one["cost"], one["instance"]) == (other["actions"], other["cost"], other["instance"])


def test_a_file_of_cities_is_solved_and_drawn_in_its_own_units(solve, tmp_path, monkeypatch):
    drawn = []
    form = replace(KITS["tsp"].solution_format, draw=lambda path, instance, actions, title: drawn.append((instance, title)))
    monkeypatch.setattr(tsp_kit, "KIT", replace(KITS["tsp"], solution_format=form))
    path = tmp_path / "square.csv"
    path.write_text("100,0\n300,0\n300,200\n100,200\n")
    (record,) = solve("tsp", str(path))
    assert record["cost"] == pytest.approx(800.0)
    assert drawn[0][0]["coordinates"].max() == 300
    assert drawn[0][1] == "square: tour length 800"


def stopping_after_a_round(monkeypatch) -> None:
    """As if Ctrl-C were pressed in the second round."""
    build = SamplerSettings.build

    def interrupted(settings, epoch=1):
        sampler = build(settings, epoch)

        @dataclass(frozen=True)
        class Stopping(type(sampler)):
            def stream(self, *arguments, **options):
                yield next(super().stream(*arguments, **options))
                raise KeyboardInterrupt

        return Stopping(**{each.name: getattr(sampler, each.name) for each in fields(sampler)})

    monkeypatch.setattr(SamplerSettings, "build", interrupted)


def test_an_interrupt_keeps_the_best_of_the_rounds_before_it(solve, monkeypatch, capsys):
    complete = solve("tsp", "--cities", "6", "--count", "2")
    stopping_after_a_round(monkeypatch)
    stopped = solve("tsp", "--cities", "6", "--count", "2", code=130)
    assert "Interrupted: these are the best" in " ".join(capsys.readouterr().out.split())
    assert [record["row"] for record in stopped] == [0, 1]
    assert all(early["cost"] >= late["cost"] for early, late in zip(stopped, complete, strict=True))


def interrupting(monkeypatch, at: int | None = None) -> None:
    """As if Ctrl-C were pressed when instances with so many cities, or any, are begun."""
    search = running.search

    def interrupted(group, *rest):
        if at in (None, len(group.jobs[0].given.arrays["coordinates"])):
            raise KeyboardInterrupt
        return search(group, *rest)

    monkeypatch.setattr(running, "search", interrupted)


def test_an_interrupt_between_sizes_keeps_the_sizes_that_are_done(solve, tmp_path, monkeypatch):
    files = [file_of(tmp_path / f"{cities}.npz", TSPGenerator(cities, 2)) for cities in (5, 6)]
    interrupting(monkeypatch, at=6)
    assert [len(record["tour"]) for record in solve("tsp", *files, "--workers", "0", code=130)] == [5, 5]


def test_an_interrupt_before_anything_was_found_saves_nothing(policies, tmp_path, monkeypatch):
    interrupting(monkeypatch)
    assert main(["solve", "tsp", "--policy", str(policies / "tsp"), "--folder", str(tmp_path / "out"), *FEW]) == 130
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]


def test_a_batch_that_is_cut_to_the_memory_gives_the_same_tours(solve, monkeypatch):
    arguments = ["--cities", "6", "--count", "5", "--workers", "0"]
    whole = solve("tsp", *arguments)
    sizes = []
    search = running.search
    monkeypatch.setattr(running, "search", lambda *given: (sizes.append(len(given[0])), search(*given))[1])
    monkeypatch.setattr("gumbeldore.search.samplers.Sampler.chunks", lambda *_: [slice(0, 2), slice(2, 4), slice(4, 5)])
    assert [record["tour"] for record in solve("tsp", *arguments)] == [record["tour"] for record in whole]
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize(("actions", "cost", "message"), [([1] * 19, 0.0, "infeasible"), (list(range(1, 20)), 1.0, "is worth")])
def test_an_infeasible_solution_is_never_saved(actions, cost, message, policies, tmp_path, monkeypatch, capsys):
    found = Found([(actions, cost)], 1)
    monkeypatch.setattr(running, "search", lambda *_: iter([[found]]))
    assert main(["solve", "tsp", "--policy", str(policies / "tsp"), "--folder", str(tmp_path / "out"), *FEW]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert "actions" not in "".join(path.read_text() for path in (tmp_path / "out").iterdir())


def test_worker_processes_find_the_same_tours(solve):
    arguments = ["--cities", "6", "--count", "3"]
    here, there = (solve("tsp", *arguments, "--workers", workers) for workers in ("0", "1"))
    assert [record["tour"] for record in here] == [record["tour"] for record in there]


@pytest.mark.parametrize("method", ["greedy", "beam:16"])
def test_deterministic_samplers_can_be_chosen(method, solve):
    first, again = (solve("tsp", "--cities", "7", "--seed", "3", "--sampler", method) for _ in range(2))
    assert [record["tour"] for record in first] == [record["tour"] for record in again]


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_policy_for_another_problem_or_architecture_is_refused_by_name(name, policies):
    entry = CATALOGUE[name]
    for other in CATALOGUE:
        if other != name:
            with pytest.raises(CheckpointError, match=f"must be one for {family(name)} .*holds a"):
                policy_for(entry.kit, policies / other, entry.architecture)
    assert type(policy_for(entry.kit, policies / name, entry.architecture)) is entry.architecture.network


def test_an_architecture_that_is_named_is_not_replaced_by_another_without_a_word():
    entry = CATALOGUE["tsp-lehd"]
    with pytest.raises(SettingsError, match="No trained TSPLehdPolicy ships for `tsp`"):
        policy_for(entry.kit, None, entry.architecture)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("jssp", ["tsp.npz"], "holds instances of 'tsp', not of jssp"),
        ("tsp", ["absent.npz"], "no file absent.npz"),
        ("tsp", ["tsp.npz", "--random", "7"], "leave one of them out"),
        ("tsp", ["--random", "0"], "`random` must be at least 1"),
    ],
)
def test_mistakes_get_one_clear_line(name, arguments, message, policies, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file_of(Path("tsp.npz"), TSPGenerator(5, 1))
    assert main(["solve", name, "--policy", str(policies / name), *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", CATALOGUE)
def test_help_shows_the_problems_own_options(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["solve", name, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in [*SIZES[family(name)][::2], "--count", "--seed", "--sampler"])
    assert "solutions.json, pictures" in shown  # the comments beside the settings are their help
    assert all(option in shown for option in ("--random", "--preset", "--time-limit", "--parts"))
