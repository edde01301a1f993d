"""Settings under the names of earlier versions."""

from __future__ import annotations

import json
import logging

import pytest
from small_runs import new_run, resumed, weights

from gumbeldore.errors import SettingsError, notice
from gumbeldore.runs.presets import CATALOGUE
from gumbeldore.runs.records import read_settings
from gumbeldore.runs.renamed import renewed
from gumbeldore.training.checkpoint import load_state, save_state

OLD = {
    "polish": 3,
    "recoveries": 4,
    "window": 8,
    "averaging": 0.9,
    "generate_with_best": False,
    "dataset_grows": True,
    "gradient_norm": 1.0,
    "bf16": False,
    "tf32": True,
}
NEW = {
    "local_search": 3,
    "relabel": 4,
    "replay_window": 8,
    "ema": 0.9,
    "generating": "current",
    "precision": "tf32",
}


def test_old_names_are_read_with_one_line_that_says_so(caplog):
    notice.cache_clear()
    with caplog.at_level(logging.WARNING, "gumbeldore"):
        for _ in range(2):
            assert renewed({"training": OLD}, "old.toml") == {"training": NEW}
    (told,) = caplog.messages
    assert "Old names of settings in old.toml" in told
    assert "`training.polish` is `training.local_search` now" in told


def test_todays_names_are_read_without_a_word(caplog):
    settings = {"training": NEW, "problem_name": "tsp", "stages": [{"epochs": 3}]}
    assert renewed(settings) == settings
    assert not caplog.messages


def test_a_dataset_that_did_not_grow_is_a_window_of_one_epoch():
    assert renewed({"training": {"dataset_grows": False}}) == {"training": {"replay_window": 1}}


def test_a_setting_that_is_no_more_is_refused_at_another_value():
    with pytest.raises(SettingsError, match=r"`training.gradient_norm` = 0.5 is no longer possible: all is done with 1.0"):
        renewed({"training": {"gradient_norm": 0.5}})


def test_a_file_of_settings_may_have_old_names(tmp_path):
    path = tmp_path / "old.toml"
    path.write_text("[training]\npolish = 3\n\n[problem]\ncities = 5\n")
    assert read_settings(path) == {"training": {"local_search": 3}, "problem": {"cities": 5}}
    assert CATALOGUE["tsp"].settings("small", read_settings(path)).training.local_search == 3


@pytest.mark.usefixtures("no_pictures")
def test_a_run_of_an_earlier_version_goes_on_to_the_same_weights(tmp_path):
    """Its settings.json and its checkpoint have the old names."""
    options = ["--training.replay-window", "2", "--training.generating", "current", "--training.ema", "0.5"]
    assert new_run(tmp_path / "run", 2, *options) == 0
    assert new_run(tmp_path / "whole", 3, *options) == 0
    older = {"replay_window": "window", "ema": "averaging", "local_search": "polish", "relabel": "recoveries"}

    def aged(training: dict) -> dict:
        kept = {older.get(name, name): value for name, value in training.items() if name not in ("generating", "precision")}
        return kept | {"generate_with_best": False, "dataset_grows": True, "gradient_norm": 1.0, "bf16": False, "tf32": False}

    settings = json.loads((tmp_path / "run/settings.json").read_text())
    record = settings | {"training": aged(settings["training"])}
    record["validation"] = {**record["validation"], "seed": 4321}
    record["problem"] = {**record["problem"], "nearest": None}
    (tmp_path / "run/settings.json").write_text(json.dumps(record))
    state = load_state(tmp_path / "run/checkpoint.pt")
    save_state(tmp_path / "run/checkpoint.pt", {**state, "run": record, "settings": aged(state["settings"])})
    assert resumed(tmp_path / "run", 3) == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")
    assert json.loads((tmp_path / "run/settings.json").read_text())["training"]["replay_window"] == 2
