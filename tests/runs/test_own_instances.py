"""Training on a user's own instances, of any sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import SMALL, TINY, resumed

import gumbeldore
from gumbeldore.cli import main
from gumbeldore.errors import CheckpointError, SettingsError
from gumbeldore.problems import TSP
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.runs.folder import START
from gumbeldore.runs.folders import read_run
from gumbeldore.training.given import GivenInstances

pytestmark = pytest.mark.usefixtures("no_pictures")


def files(folder: Path) -> Path:
    """Two sizes, in units of their own."""
    folder.mkdir()
    for number, cities in enumerate((5, 5, 7)):
        np.savetxt(folder / f"{number}.csv", 1000 * np.random.RandomState(number).uniform(size=(cities, 2)), delimiter=",")
    return folder


def states(*sizes: tuple[int, int]) -> GivenInstances:
    generator = torch.Generator().manual_seed(0)
    return GivenInstances(tuple(TSP(cities).generate(count, generator=generator) for cities, count in sizes))


def test_instances_are_drawn_evenly_and_those_of_one_size_together():
    drawn = states((5, 3), (7, 2)).draw(10, torch.Generator().manual_seed(1))
    assert [state.coordinates.shape[1:] for state in drawn] == [(5, 2), (7, 2)]
    assert [state.row_count for state in drawn] == [6, 4]
    assert len(drawn[0].coordinates.unique(dim=0)) == 3


def test_fewer_than_there_are_have_no_repeats():
    (drawn,) = states((5, 6)).draw(4, torch.Generator().manual_seed(1))
    assert len(drawn.coordinates.unique(dim=0)) == 4


def test_a_folder_of_files_of_several_sizes_is_trained_on_and_resumed(tmp_path):
    folder = files(tmp_path / "mine")
    options = ["--instances", str(folder), "--training.epochs", "2", *SMALL[2:]]
    assert main(["train", "tsp", "--folder", str(tmp_path / "run"), *options]) == 0
    run = read_run(tmp_path / "run")
    assert run.epochs == 2
    assert run.settings["problem"]["cities"] == 7
    assert run.settings["instances"] == [str(folder)]
    assert resumed(tmp_path / "run", 3) == 0
    np.savetxt(folder / "0.csv", np.random.RandomState(9).uniform(size=(5, 2)), delimiter=",")
    assert resumed(tmp_path / "run", 4) == 2


def test_sets_in_memory_are_trained_on(tmp_path):
    given = [TSPGenerator(cities=5, count=3).generate(), TSPGenerator(cities=6, count=2).generate()]
    settings = {**TINY, "workers": 0, "progress": False}
    settings.pop("problem")
    run = gumbeldore.train("tsp", tmp_path, instances=given, epochs=1, **settings)
    (epoch,) = run
    assert epoch.dataset_size == 6
    with pytest.raises(SettingsError, match="arrays in memory: give them again"):
        gumbeldore.train("tsp", tmp_path, resume=True)


def test_a_folder_without_instances_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SettingsError, match="holds no files of tsp instances"):
        gumbeldore.train("tsp", tmp_path / "run", instances=tmp_path / "empty")


def test_a_policy_that_ships_goes_on_by_its_name(tmp_path):
    folder = files(tmp_path / "mine")
    shipped = gumbeldore.load_policy("tsp-small")
    tiny = {"training": {"instances": 4, "batches": 1, "batch_size": 4}, "sampler": "gd:2x1", "workers": 0, "progress": False}
    run = gumbeldore.train("tsp", tmp_path / "run", instances=folder, start="tsp-small", epochs=1, **tiny)
    assert run.finish().config == shipped.config
    assert run.record.settings[START].endswith("tsp-small.safetensors")
    assert gumbeldore.load_policy(tmp_path / "run").config == shipped.config
    with pytest.raises(CheckpointError, match="`gumbeldore policies` lists those that ship"):
        gumbeldore.load_policy("tsp-smal")
