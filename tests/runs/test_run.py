"""A training as an object: iterated, stopped, resumed, reported."""

from __future__ import annotations

import dataclasses

import pytest
from small_runs import TINY, new_run, weights

import gumbeldore
from gumbeldore import CheckpointError, SettingsError, TrainingRun, TrainingSettings
from gumbeldore.io.policy_files import read_weights
from gumbeldore.problems.tsp.kit import KIT
from gumbeldore.runs.folders import read_run
from gumbeldore.training.checkpoint import read_metrics

pytestmark = pytest.mark.usefixtures("no_pictures")


def small(folder, **more) -> TrainingRun:
    return gumbeldore.train("tsp", folder, **{**TINY, "workers": 0, "device": "cpu", "progress": False, **more})


def test_a_run_trains_when_it_is_iterated_and_not_before(tmp_path):
    run = small(tmp_path / "run", epochs=2)
    assert not (tmp_path / "run").exists()
    assert [epoch.index for epoch in run] == [1, 2]
    assert [line["epoch"] for line in run.history] == [1, 2]
    assert run.best["epoch"] == float(read_weights(tmp_path / "run/policy.safetensors")[1]["epoch"])
    assert run.best["validation"] == list(read_metrics(tmp_path / "run/metrics.jsonl"))[-1]["best_validation"]
    assert run.record.state == "finished"


def test_it_does_what_the_command_does_bit_for_bit(tmp_path):
    small(tmp_path / "python", epochs=2).finish()
    assert new_run(tmp_path / "command", 2) == 0
    assert weights(tmp_path / "python") == weights(tmp_path / "command")
    assert read_run(tmp_path / "python").settings == read_run(tmp_path / "command").settings


def test_leaving_the_loop_stops_the_run_which_goes_on_to_the_same_weights(tmp_path):
    run = small(tmp_path / "run", epochs=3)
    for epoch in run:
        if epoch.index == 2:
            break
    assert run.record.state == "stopped"
    assert [epoch.index for epoch in run.resume()] == [3]
    small(tmp_path / "whole", epochs=3).finish()
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_a_run_is_resumed_for_more_epochs_or_by_its_folder(tmp_path):
    run = small(tmp_path, epochs=1)
    run.finish()
    assert [epoch.index for epoch in run.resume(epochs=2)] == [2]
    again = gumbeldore.train("tsp", tmp_path, resume=True, epochs=3, workers=0, progress=False)
    assert [epoch.index for epoch in again] == [3]


def test_only_some_settings_may_change_when_a_run_goes_on(tmp_path):
    run = small(tmp_path, epochs=1)
    run.finish()
    with pytest.raises(CheckpointError, match="batch_size"):
        run.resume(batch_size=4, epochs=2).finish()
    with pytest.raises(SettingsError, match=r"Unknown setting `training\.nonsense`"):
        run.resume(nonsense=4)


def test_groups_of_settings_are_tables_or_records(tmp_path):
    record = TrainingSettings(epochs=7, instances=6)
    assert small(tmp_path, training=record).settings.training == record
    assert small(tmp_path, training={"epochs": 5}).settings.training.epochs == 5
    assert small(tmp_path, problem=dataclasses.replace(KIT.problem, cities=9)).settings.problem.cities == 9
    with pytest.raises(SettingsError, match="`problem` must be a table or a record"):
        small(tmp_path, problem=3)


def test_a_kit_is_as_good_as_its_name(tmp_path):
    assert gumbeldore.train(KIT, tmp_path).settings == gumbeldore.train("tsp", tmp_path).settings


def test_the_policy_is_the_best_so_far_and_asked_for_too_early_an_error(tmp_path):
    run = small(tmp_path, epochs=1)
    with pytest.raises(CheckpointError, match="no policy yet"):
        _ = run.policy
    trained = run.finish()
    assert trained.config == run.policy.config


def test_a_report_is_one_page(tmp_path):
    run = small(tmp_path / "run", epochs=1)
    with pytest.raises(SettingsError, match="holds no run yet"):
        run.report(tmp_path / "page.html")
    run.finish()
    assert "Gumbeldore: run" in run.report(tmp_path / "page.html", solutions=0).read_text()


def test_labels_are_imitated(tmp_path):
    labels = tmp_path / "labels.npz"
    from gumbeldore.cli import main

    assert (
        main(["label", "tsp", "--cities", "6", "--count", "6", "--solver", "gumbeldore", "--work", "2", "--out", str(labels)])
        == 0
    )
    settings = {name: group for name, group in TINY.items() if name in ("policy", "training", "validation")}
    run = gumbeldore.imitate("tsp", labels, tmp_path / "run", epochs=2, workers=0, progress=False, **settings)
    assert run.settings.problem.cities == 6
    assert [epoch.sampled for epoch in run] == [None, None]
    again = gumbeldore.imitate("tsp", folder=tmp_path / "run", resume=True, epochs=3, workers=0, progress=False)
    assert [epoch.index for epoch in again] == [3]
    with pytest.raises(SettingsError, match="must name at least one file"):
        gumbeldore.imitate("tsp", folder=tmp_path / "other")


def test_the_best_epoch_is_that_of_the_policy_file_also_where_none_was_better_than_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr("gumbeldore.training.Training.judge", lambda self, value: False)
    run = small(tmp_path, epochs=2)
    run.finish()
    assert run.best["epoch"] == 0
    assert read_weights(tmp_path / "policy.safetensors")[1]["epoch"] == "0"
