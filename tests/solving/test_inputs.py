"""Whatever a user gives becomes the same jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from kits import KITS

import gumbeldore
from gumbeldore import Greedy
from gumbeldore.errors import FormatError, SettingsError
from gumbeldore.io.instance_files import write_instances
from gumbeldore.io.reading import read_file
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.cvrp.instances import CVRPGenerator
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.solving.inputs import jobs_of, random_jobs

POINTS = [[0, 0], [3, 4], [6, 1], [2, 2], [5, 5]]


@pytest.mark.parametrize(
    "points", [POINTS, np.array(POINTS), torch.tensor(POINTS), {"coordinates": POINTS}], ids=lambda p: type(p).__name__
)
def test_points_are_cities_however_they_are_given(points):
    (job,) = jobs_of(points, KITS["tsp"])
    assert job.given.unit["coordinates"].max() == 1.0
    assert job.given.scale == 6.0
    found = gumbeldore.solve(points, kit=KITS["tsp"], parts=["local-search"], time_limit=0.05)
    assert sorted(found.solution.tour) == list(range(5))
    assert found.cost == pytest.approx(17.51, abs=0.01)


def test_a_file_an_instance_and_arrays_of_one_instance_are_the_same_job(instances):
    (job,) = jobs_of(instances / "A-n32-k5.vrp")
    (again,) = jobs_of(job.given, KITS["cvrp"])
    assert again.digest == job.digest
    (arrays,) = jobs_of(job.given.arrays, KITS["cvrp"])
    assert np.array_equal(arrays.given.unit["nodes"], job.given.unit["nodes"])
    assert arrays.digest != job.digest  # costs are rounded in the file


def test_arrays_of_several_instances_are_several_jobs():
    drawn = CVRPGenerator(6, 12, 3, 5).generate()
    jobs = jobs_of(drawn.arrays, KITS["cvrp"])
    alike = random_jobs(KITS["cvrp"], CVRPGenerator(6, 12, 3, 5))
    assert [job.digest for job in jobs] == [job.digest for job in alike]


def test_lists_of_sources_and_seeds(weights):
    options = {"policy": weights["tsp"], "sampler": gumbeldore.WithReplacement(2)}
    one, other, same = gumbeldore.solve_all([POINTS, POINTS, POINTS], seed=[1, 2, 1], **options)
    assert one.actions == same.actions
    assert {tuple(one.actions), tuple(other.actions)}
    with pytest.raises(SettingsError, match="`seed` must be one, or one for each of 2 instances, got 3"):
        gumbeldore.solve_all([POINTS, POINTS], seed=[1, 2, 3], **options)


def test_a_plain_function_is_a_policy():
    def nearest(state):
        here = state.coordinates[state.instance, state.current]
        return -torch.cdist(here[:, None], state.coordinates[state.instance]).squeeze(1)

    found = gumbeldore.solve(POINTS, policy=nearest, sampler=Greedy())
    assert found.solution.tour == [0, 3, 1, 4, 2]


@pytest.mark.parametrize(
    ("source", "kit", "message"),
    [
        ([[0, 1], [2]], None, "Points must be pairs of numbers"),
        ([["a", "b"]], None, "consists of numbers"),
        ([[0.0, float("nan")], [1, 1], [2, 2]], None, "finite numbers"),
        ({"coordinates": POINTS}, None, "Say which problem arrays belongs to"),
        ({"points": POINTS}, "tsp", "`coordinates` \\(city, 2\\)"),
        (POINTS, "cvrp", "given as arrays by name: `nodes`"),
    ],
)
def test_mistakes_get_one_clear_line(source, kit, message):
    with pytest.raises(SettingsError, match=message):
        jobs_of(source, kit and KITS[kit])


def test_labels_that_are_wrong_are_not_trusted(tmp_path):
    drawn = TSPGenerator(5, 2, 1).generate().labelled([[1, 2, 3, 4], [4, 3, 2, 1]], "dice")
    for fault, reason in (
        ({"objective": drawn.labels.objective + 0.5}, "worth"),
        ({"actions": drawn.labels.actions * 0 + 1}, "infeasible"),
    ):
        write_instances(tmp_path / "set.npz", replace(drawn, labels=replace(drawn.labels, **fault)))
        for given in read_file(tmp_path / "set.npz")[1]:
            assert given.known is None
            assert f"Its label is not used, because it is {reason}" in given.notes[-1]
    write_instances(tmp_path / "set.npz", drawn)
    assert read_file(tmp_path / "set.npz")[1][0].known == pytest.approx(-drawn.labels.objective[0])


@pytest.mark.parametrize("text", ["6 6\n", "0 0\n", "1 1\n0 3\n"])
def test_the_beginning_of_a_job_shop_is_no_tour(text, tmp_path):
    (tmp_path / "shop.txt").write_text(text)
    with pytest.raises(FormatError, match="job"):
        read_file(tmp_path / "shop.txt")
    (tmp_path / "cities.txt").write_text("x y\n" + text)
    assert read_file(tmp_path / "cities.txt")[0].name == "tsp"


def test_a_solution_better_than_the_best_known_value_is_pointed_out(instances):
    (job,) = jobs_of(instances / "berlin52.tsp")
    found = gumbeldore.solve(replace(job.given, known=8000.0), kit=job.kit, parts=["local-search"], time_limit=0.1)
    assert found.gap < 0
    assert "Better than the best known value" in found.notes[-1]


def test_an_instance_needs_a_kit():
    with pytest.raises(SettingsError, match="by `kit`"):
        jobs_of(Instance({}, {}))
