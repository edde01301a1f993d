"""The folder of a run: nothing in it gets lost, whatever is resumed, damaged or started beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from small_runs import SMALL, new_run, resumed, weights, words

from gumbeldore.cli import main
from gumbeldore.files import locked
from gumbeldore.training.checkpoint import load_state, read_metrics, save_state

pytestmark = pytest.mark.usefixtures("no_pictures")

NEWEST, PREVIOUS = "checkpoint.pt", "checkpoint.previous.pt"


@pytest.fixture(scope="module")
def finished(tmp_path_factory, no_pictures) -> Path:
    """A run of two epochs."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert new_run(folder, 2) == 0
    return folder


@pytest.fixture(scope="module")
def third(finished, tmp_path_factory) -> Path:
    """The same after its third epoch."""
    folder = tmp_path_factory.mktemp("runs") / "third"
    shutil.copytree(finished, folder)
    assert resumed(folder, 3) == 0
    return folder


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def old_format(folder: Path) -> None:
    """As runs were written before there were checksums, two checkpoints and environment.json."""
    state = load_state(folder / NEWEST)
    del state["run"]
    torch.save(state, folder / NEWEST)
    for name in (PREVIOUS, "environment.json", ".lock"):
        (folder / name).unlink()


@pytest.mark.parametrize("changes", [["--training.batches", "4"], ["--problem.cities", "7"], ["--training.seed", "1"]], ids=str)
def test_a_refused_resume_changes_no_file(run, capsys, changes):
    before = content(run)
    assert resumed(run, 3, *changes) == 2
    assert changes[0].removeprefix("--").partition(".")[0 if "problem" in changes[0] else 2] in capsys.readouterr().err
    assert content(run) == before
    assert resumed(run, 3) == 0


def test_the_learning_rate_may_change(run, third):
    rates = ["--training.learning-rate", "0.0005", "--training.final-learning-rate", "0.0001"]
    assert resumed(run, 3, *rates) == 0
    assert [line["learning_rate"] for line in read_metrics(run / "metrics.jsonl")][2] == pytest.approx(0.0001)
    assert load_state(run / NEWEST)["optimizer"]["param_groups"][0]["lr"] == pytest.approx(0.0001)
    assert not torch.equal(*(load_state(f / NEWEST)["policy"]["policy_linear_out.weight"] for f in (run, third)))


DAMAGE = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "flipped": lambda path: path.write_bytes(path.read_bytes()[:-3000] + b"!" + path.read_bytes()[-2999:]),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_costs_an_epoch_and_no_more(run, third, capsys, damage):
    damage(run / NEWEST)
    assert resumed(run, 3) == 0
    shown = words(capsys.readouterr().out)
    assert "Going on from the checkpoint before it" in shown
    assert "epoch 2" in shown
    assert weights(run) == weights(third)
    assert [load_state(run / name)["epoch"] for name in (NEWEST, PREVIOUS)] == [3, 2]


def test_two_damaged_checkpoints_lead_to_another_folder_and_not_to_an_overwritten_run(run, capsys):
    for name in (NEWEST, PREVIOUS):
        (run / name).write_bytes(b"damaged")
    before = content(run)
    assert resumed(run, 3) == 2
    error = words(capsys.readouterr().err)
    assert "another --folder" in error
    assert f"--from {run / 'policy.safetensors'}" in error
    assert content(run) == before


@pytest.mark.parametrize("kept", ["policy.safetensors", "metrics.jsonl"])
def test_a_folder_with_results_but_no_checkpoint_is_neither_reused_nor_resumed(run, capsys, kept):
    for path in list(run.iterdir()):
        if path.name != kept:
            path.unlink()
    before = content(run)
    for arguments in (["--training.epochs", "1", *SMALL], ["--resume"]):
        assert main(["train", "tsp", "--folder", str(run), *arguments]) == 2
        error = words(capsys.readouterr().err)
        assert "another --folder" in error
        assert ("--from" in error) == (kept == "policy.safetensors")
        assert {name: text for name, text in content(run).items() if name != ".lock"} == before


def test_a_folder_in_which_no_epoch_was_finished_is_used_again(tmp_path):
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "metrics.jsonl").touch()
    assert new_run(tmp_path, 1) == 0


def test_a_run_from_before_there_were_checksums_goes_on(run, third):
    old_format(run)
    assert resumed(run, 3) == 0
    assert weights(run) == weights(third)


@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"\xff{")], ids=["lost", "damaged"]
)
def test_the_checkpoint_knows_the_settings_if_their_file_is_lost(run, third, damage):
    damage(run / "settings.json")
    assert resumed(run, 3) == 0
    assert weights(run) == weights(third)
    assert (run / "settings.json").read_bytes() == (third / "settings.json").read_bytes()


def test_settings_that_were_changed_by_hand_do_not_slip_in(run, capsys):
    settings = json.loads((run / "settings.json").read_text())
    settings["sampler"]["sigma"] = 0.31
    (run / "settings.json").write_text(json.dumps(settings))
    assert resumed(run, 3) == 2
    assert "sampler" in capsys.readouterr().err


@pytest.mark.parametrize("damage", [b"damaged", b""])
def test_a_damaged_policy_comes_back_from_the_checkpoint(run, third, finished, damage):
    (run / "policy.safetensors").write_bytes(damage)
    assert resumed(run, 2) == 0
    assert weights(run) == weights(finished)
    assert resumed(run, 3) == 0
    assert weights(run) == weights(third)


def test_damaged_metrics_do_not_stop_a_run(run, capsys):
    path = run / "metrics.jsonl"
    first = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(first + b"\xff\x00{{{\n")
    assert resumed(run, 3) == 0
    assert "1 lines" in words(capsys.readouterr().out)
    assert [line["epoch"] for line in read_metrics(path)] == [1, 3]


def test_lines_of_metrics_without_their_values_do_not_stop_a_run(run):
    (run / "metrics.jsonl").write_text('{"epoch": 1, "loss": "x"}\n{"epoch": 2}\n')
    assert resumed(run, 3) == 0


def test_resuming_a_finished_run_says_so_and_where_its_results_are(run, capsys, third):
    before = content(run)
    assert resumed(run, 2) == 0
    shown = words(capsys.readouterr().out)
    assert "This run is finished" in shown
    assert str(run / "policy.safetensors") in shown.replace(" ", "")
    assert content(run) == before


def test_two_processes_do_not_share_a_folder(run, tmp_path, capsys):
    with locked(run):
        assert resumed(run, 3) == 2
        assert "Another process" in capsys.readouterr().err
    assert load_state(run / NEWEST)["epoch"] == 2


def test_what_killed_writes_left_is_removed_by_the_next_run(run):
    strange = {".checkpoint.pt.77.part", ".policy.safetensors.8.part", ".settings.json.9.part"}
    for name in (*strange, ".mine.part"):
        (run / name).write_text("half")
    assert resumed(run, 3) == 0
    assert {path.name for path in run.glob(".*")} == {".lock", ".mine.part"}


@pytest.mark.parametrize("key", ["settings", "epoch", "policy", "optimizer", "generator", "dataset", "best_validation"])
def test_a_checkpoint_that_lacks_something_is_refused_by_name(run, capsys, key):
    state = load_state(run / NEWEST)
    del state[key]
    save_state(run / NEWEST, state)
    before = content(run)
    assert resumed(run, 3) == 2
    assert f"`{key}` is missing" in words(capsys.readouterr().err)
    assert content(run) == before


def test_a_run_stops_before_its_time_is_over_and_goes_on_later(tmp_path, third, capsys):
    folder = tmp_path / "run"
    assert new_run(folder, 3, "--max-time", "0.001s") == 0
    assert load_state(folder / NEWEST)["epoch"] == 1
    assert "--max-time" in words(capsys.readouterr().out)
    assert resumed(folder, 3, "--max-time", "1d") == 0
    assert weights(folder) == weights(third)
    assert "Finished." in capsys.readouterr().out
