"""Solving files from Python."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from kits import KITS

import gumbeldore
from gumbeldore import BeamSearch, Greedy, Gumbeldore
from gumbeldore.errors import CheckpointError, SettingsError
from gumbeldore.io.instance_files import write_instances
from gumbeldore.io.policy_files import load_policy
from gumbeldore.io.reading import read_file, read_solution
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.solving import Better, Effort, Failure, Job, Result, Solving
from gumbeldore.solving.effort import SPANS, Limits
from gumbeldore.solving.found import Found
from gumbeldore.solving.inputs import files_in, read_jobs
from gumbeldore.solving.jobs import LARGE, NEAREST, groups
from gumbeldore.solving.policies import policy_for
from gumbeldore.solving.saving import SolutionFolder, stems


def test_three_lines_solve_a_file_by_its_own_rule(instances, weights, tmp_path):
    result = gumbeldore.solve(instances / "ulysses16.tsp", policy=weights["tsp"], sampler=Greedy())
    given = read_file(instances / "ulysses16.tsp")[1][0]
    assert sorted(result.solution.tour) == list(range(16))
    assert result.cost == given.cost(result.actions) == int(result.cost)
    assert (result.known, result.gap) == (6859, pytest.approx(result.cost / 6859 - 1))
    result.draw(tmp_path / "tour.png")
    assert (tmp_path / "tour.png").stat().st_size > 5000
    assert (
        repr(result)
        == f"<Result ulysses16: tour length {result.cost:.0f}, gap {100 * result.gap:.2f} %, by policy, {result.seconds:.1f} s>"
    )
    assert '<img src="data:image/png;base64,' in result._repr_html_()


def test_what_is_written_is_read_back_to_the_same_cost(instances, weights, tmp_path):
    for name, problem in (("ulysses16.tsp", "tsp"), ("A-n32-k5.vrp", "cvrp")):
        solved = gumbeldore.solve(instances / name, policy=weights[problem], sampler=Greedy())
        (form, export), *_ = KITS[problem].exports.items()
        path = tmp_path / f"{name}{export.suffix}"
        path.write_text(solved.text(form))
        assert solved.job.given.cost(read_solution(export, solved.job.given, path)) == solved.cost


def test_a_job_shop_is_solved_and_routes_and_jobs_are_attributes(instances, weights):
    shop = gumbeldore.solve(instances / "ft06.txt", policy=weights["jssp"], sampler=BeamSearch(2))
    assert shop.cost == shop.solution.makespan >= shop.known == 55
    assert len(shop.solution.jobs) == 36
    routes = gumbeldore.solve(instances / "A-n32-k5.vrp", policy=weights["cvrp"], sampler=Greedy()).solution
    assert sorted(customer for route in routes.routes for customer in route) == list(range(31))


def test_the_rule_of_the_file_picks_among_the_best_sequences(weights, tmp_path):
    """Distances that are rounded, or on a globe, may rank sequences otherwise than those in the plane."""
    write_instances(tmp_path / "set.npz", TSPGenerator(6, 1, 1).generate())
    (job,) = jobs_of(tmp_path / "set.npz")
    odd = replace(job, given=replace(job.given, cost=lambda actions: float(actions[0])))
    solving = Solving([odd], {"tsp": load_policy(weights["tsp"])}, Effort(Gumbeldore(8, 4)))
    list(solving)
    (solved,) = solving.results()
    costs = [solution.cost for solution in solved.solutions]
    assert (solved.cost, solved.actions[0]) == (1.0, 1)
    assert costs == sorted(costs)


def test_instances_with_nothing_to_search_are_answered_at_once(weights, tmp_path):
    for count in (1, 2, 3):
        (tmp_path / "points.csv").write_text("".join(f"{i},{i * i}\n" for i in range(count)))
        solved = gumbeldore.solve(tmp_path / "points.csv", policy=weights["tsp"])
        assert sorted(solved.solution.tour) == list(range(count))
        assert solved.found.evaluations == 0


def test_a_file_of_several_instances_needs_solve_all(weights, tmp_path):
    write_instances(tmp_path / "set.npz", TSPGenerator(5, 3, 1).generate())
    with pytest.raises(SettingsError, match="holds 3 instances: use `solve_all`"):
        gumbeldore.solve(tmp_path / "set.npz", policy=weights["tsp"], sampler=Greedy())
    results = gumbeldore.solve_all([tmp_path / "set.npz"], policy=load_policy(weights["tsp"]), sampler=Greedy())
    assert [each.job.row for each in results] == [0, 1, 2]


def test_a_folder_stands_for_the_instances_in_it(instances):
    names = [path.name for path in files_in([instances])]
    assert {"berlin52.tsp", "A-n32-k5.vrp", "ft06.txt"} <= set(names)
    assert not [name for name in names if name.endswith((".sol", ".tour"))]
    with pytest.raises(SettingsError, match="no files of instances in the folder"):
        files_in([instances.parent])


def test_a_bad_file_does_not_stop_the_others(instances, tmp_path):
    (tmp_path / "empty.tsp").write_text("")
    jobs, failures = read_jobs([tmp_path / "empty.tsp", instances / "ft06.txt", tmp_path / "absent.vrp"])
    assert [job.name for job in jobs] == ["ft06"]
    assert [(failure.file.name, re.search("empty|no file", failure.message)[0]) for failure in failures] == [
        ("empty.tsp", "empty"),
        ("absent.vrp", "no file"),
    ]


def jobs_of(path, kit="tsp") -> list[Job]:
    return [Job(KITS[kit], given, path, row) for row, given in enumerate(read_file(path)[1])]


def test_better_solutions_are_told_as_they_come_and_kept_after_an_interrupt(instances, weights):
    solving = Solving(jobs_of(instances / "ulysses16.tsp"), {"tsp": load_policy(weights["tsp"])}, Effort(Gumbeldore(4, 8)))
    events = iter(solving)
    first = next(events)
    assert isinstance(first, Better)
    assert 0 <= solving.completed < 1
    assert solving.results()[0].actions == first.found.actions  # as if Ctrl-C came now
    *others, last = events
    assert isinstance(last, Result)
    assert all(isinstance(event, Better) for event in others)
    assert solving.completed == 1


def test_workers_find_the_same_and_one_failure_is_not_the_end(instances, weights, tmp_path):
    write_instances(tmp_path / "set.npz", TSPGenerator(6, 5, 1).generate())
    policies = {"tsp": load_policy(weights["tsp"])}
    alone, together = (Solving(jobs_of(tmp_path / "set.npz"), policies, Effort(BeamSearch(3)), workers=n) for n in (0, 2))
    events = [list(alone), list(together)]
    assert [each.actions for each in together.results()] == [each.actions for each in alone.results()]
    assert len([event for event in events[1] if isinstance(event, Result)]) == 5
    assert together.completed == 5


def test_a_failure_in_the_search_is_told_and_the_others_are_solved(weights, tmp_path, monkeypatch):
    write_instances(tmp_path / "set.npz", TSPGenerator(6, 2, 1).generate())
    jobs = jobs_of(tmp_path / "set.npz")
    good, bad = jobs[0], replace(jobs[1], given=replace(jobs[1].given, scale=2.0))  # costs do not fit
    solving = Solving([good, bad], {"tsp": load_policy(weights["tsp"])}, Effort(Greedy()))
    events = list(solving)
    assert [type(event) for event in events if not isinstance(event, Better)] == [Result, Failure]
    assert "This is a bug" in solving.failures[0].message
    assert len(solving.results()) == 1


def test_large_routes_go_on_to_near_nodes_only_unless_told_otherwise():
    def state(cities: int, nearest: int | None):
        arrays = {"coordinates": np.random.RandomState(0).uniform(size=(cities, 2))}
        (group,) = groups([Job(KITS["tsp"], Instance(arrays, arrays))], [0], [0], nearest)
        problem, initial = group.initial()
        return int(problem.mask(initial).sum())

    assert state(LARGE, None) == LARGE - 1
    assert state(LARGE + 1, None) == NEAREST
    assert state(LARGE + 1, 0) == LARGE
    assert state(50, 7) == 7


def test_a_preset_has_a_time_limit_unless_told_otherwise():
    span = SPANS["balanced"]
    assert Effort().limits == Limits(span.seconds, greedy=True, patience=span.least)
    assert Effort(sequences=5).limits == Limits(None, 5, greedy=True)
    assert Effort("best", time_limit=3).limits == Limits(3, greedy=True, repeat=True)
    assert Effort(Greedy()).limits == Limits()
    with pytest.raises(SettingsError, match="Unknown sampler `quick`"):
        Effort("quick")


def test_policies_are_found_or_missed_in_one_line(weights, tmp_path):
    with pytest.raises(CheckpointError, match=r"must be one for tsp, but .* holds a JSSPPolicy, which is for jssp"):
        policy_for(KITS["tsp"], weights["jssp"])
    with pytest.raises(CheckpointError, match="no policy file"):
        policy_for(KITS["tsp"], tmp_path / "absent.safetensors")
    bare = replace(KITS["tsp"], policies=None)
    for named in (None, "tsp-100"):
        with pytest.raises(SettingsError, match="gumbeldore train tsp"):
            policy_for(bare, named)


def test_names_of_files_are_never_the_same(tmp_path):
    given = Instance({}, {})
    files = [(tmp_path / "a" / "x.tsp", 0), (tmp_path / "b" / "X.tsp", 0), (tmp_path / "set.npz", 0), (tmp_path / "set.npz", 1)]
    results = [Result(Job(KITS["tsp"], given, path, row), Found([])) for path, row in files]
    assert stems(results) == ["x", "X_2", "set-0", "set-1"]


def test_pictures_are_capped_with_a_message(weights, tmp_path):
    write_instances(tmp_path / "set.npz", TSPGenerator(5, 3, 1).generate())
    results = gumbeldore.solve_all([tmp_path / "set.npz"], policy=weights["tsp"], sampler=Greedy())
    folder = SolutionFolder(tmp_path / "out")
    with folder.reserved():
        lines = folder.save(results, pictures=2)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.name[0] != ".") == sorted(
        ["solutions.json", "set-0.png", "set-1.png", "set-0.tour", "set-1.tour", "set-2.tour"]
    )
    assert "Drew the first 2 of 3 instances: --pictures 3 draws all." in lines


def test_importing_the_package_does_not_import_the_room():
    code = "import sys, gumbeldore; assert 'gumbeldore.solving' not in sys.modules; gumbeldore.solve; assert 'gumbeldore.solving' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
