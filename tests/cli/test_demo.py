"""The demonstration removes nothing but its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_runs import new_run, words

from gumbeldore.cli import main
from gumbeldore.runs.presets import entry
from gumbeldore.runs.records import as_plain

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture
def calls(monkeypatch) -> list[bool]:
    """Whether each training that the demonstration asks for is a resumed one; it ends there."""
    seen: list[bool] = []

    def run(entry, settings, folder, options):
        seen.append(options.resume)
        raise KeyboardInterrupt

    monkeypatch.setattr("gumbeldore.runs.demonstration.TrainingRun", run)
    return seen


def old_demonstration(folder: Path) -> None:
    """Files as a demonstration leaves them, and some of the user's."""
    folder.mkdir()
    settings = {"problem_name": "tsp", **as_plain(entry("tsp").settings("demo"))}
    (folder / "settings.json").write_text(json.dumps(settings))
    for name in (
        "checkpoint.pt",
        "checkpoint.previous.pt",
        "metrics.jsonl",
        "tours.png",
        "gaps.json",
        ".checkpoint.pt.7.part",
        ".lock",
    ):
        (folder / name).touch()
    (folder / "thesis.tex").write_text("years of work")
    (folder / "photos").mkdir()
    (folder / "photos" / "tours.png").write_text("of last summer")


def test_fresh_removes_the_runs_own_files_only(tmp_path, calls):
    old_demonstration(tmp_path / "demo")
    assert main(["demo", "--folder", str(tmp_path / "demo"), "--fresh"]) == 130
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "demo", "demo/photos", "demo/photos/tours.png", "demo/thesis.tex",
    ]  # fmt: skip
    assert calls == [False]


def test_without_fresh_the_training_goes_on(tmp_path, calls):
    old_demonstration(tmp_path / "demo")
    assert main(["demo", "--folder", str(tmp_path / "demo")]) == 130
    assert calls == [True]


def test_fresh_in_an_empty_folder_or_none_is_no_mistake(tmp_path, calls):
    for folder in (tmp_path, tmp_path / "none"):
        assert main(["demo", "--folder", str(folder), "--fresh"]) == 130
    assert calls == [False, False]


def test_fresh_removes_no_other_run(tmp_path, calls, capsys):
    assert new_run(tmp_path, 1) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["demo", "--folder", str(tmp_path), "--fresh"]) == 2
    assert "another --folder" in words(capsys.readouterr().err)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert calls == []


def test_fresh_removes_no_file_that_happens_to_be_called_like_one_of_a_run(tmp_path, calls):
    (tmp_path / "settings.json").write_text('{"editor": "vi"}')
    assert main(["demo", "--folder", str(tmp_path), "--fresh"]) == 2
    assert (tmp_path / "settings.json").read_text() == '{"editor": "vi"}'
    assert calls == []
