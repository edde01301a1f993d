"""`gumbeldore status` and `gumbeldore report`, as a user types them."""

from __future__ import annotations

import json
import os
import signal
from types import SimpleNamespace

import pytest

from gumbeldore.cli import main, status

SMALL = [
    "--problem.cities", "6", "--policy.d", "16", "--policy.layers", "1", "--policy.heads", "2", "--policy.ff", "32",
    "--training.instances", "6", "--training.batches", "3", "--training.batch-size", "8", "--validation.instances", "8",
    "--training.epochs", "2", "--sampler", "gd:4x2", "--device", "cpu", "--workers", "0",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run, with event files for TensorBoard where that is installed."""
    pytest.importorskip("tensorboard")
    folder = tmp_path_factory.mktemp("runs") / "first"
    assert main(["train", "tsp", "--folder", str(folder), "--tensorboard", *SMALL]) == 0
    return folder


@pytest.fixture
def stranger(tmp_path, run):
    """The files of a run that someone else made, with a problem that names a file to execute."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')\nKIT = None\n")
    settings = json.loads((run / "settings.json").read_text()) | {"problem_name": f"{tmp_path / 'trap.py'}:KIT"}
    (folder / "settings.json").write_text(json.dumps(settings))
    for name in ("metrics.jsonl", "policy.safetensors"):
        (folder / name).write_bytes((run / name).read_bytes())
    return folder


def test_status_shows_state_epochs_best_cost_and_curves(run, capsys):
    assert main(["status", str(run)]) == 0
    shown = capsys.readouterr().out
    assert "finished" in shown
    assert "2 of 2" in shown
    assert "best tour length" in shown
    assert "loss" in shown


def test_status_as_json_is_for_scripts(run, capsys):
    assert main(["status", str(run), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert (about["state"], about["epochs"], about["planned"]) == ("finished", 2, 2)
    assert about["best"] > 1
    assert about["memory_mb"] > 10


def test_following_a_finished_run_ends(run, capsys):
    assert main(["status", str(run), "--follow"]) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_following_a_run_at_work_ends_by_a_signal_and_says_so_by_its_code(run, capsys, monkeypatch, number, code):
    monkeypatch.setattr(status, "read_run", lambda folder: SimpleNamespace(state="running"))
    monkeypatch.setattr(status.time, "sleep", lambda seconds: os.kill(os.getpid(), number))
    before = signal.signal(number, signal.default_int_handler)  # under nohup, a closed terminal is ignored, and stays so
    try:
        assert main(["status", str(run), "--follow"]) == code
    finally:
        signal.signal(number, before)
    assert capsys.readouterr().err == "Stopped.\n"


def test_tensorboard_gets_the_metrics_of_every_epoch(run):
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = loading.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [event.step for event in events.Scalars("loss")] == [1, 2]
    assert [event.value for event in events.Scalars("validation")] == pytest.approx([line["validation"] for line in lines])


def test_a_report_holds_curves_pictures_and_settings(run, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert main(["report", str(run), "--out", str(out), "--solutions", "2"]) == 0
    text = out.read_text()
    assert text.count("data:image/png;base64,") == 2
    assert "Greedy tour length on validation instances" in text
    assert "training.learning_rate" in text


def test_a_report_executes_nothing_that_a_run_names(stranger, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert main(["report", str(stranger), "--out", str(out)]) == 0
    assert main(["status", str(stranger)]) == 0
    assert not (tmp_path / "touched").exists()
    assert "--problem" in " ".join(capsys.readouterr().out.split())
    assert out.is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "absent"], "holds no run"),
        (["report", "absent"], "nothing to report on"),
        (["report", ".", "--out", "report.txt"], ".html"),
    ],
)
def test_mistakes_get_one_clear_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    shown = capsys.readouterr()
    assert message in " ".join((shown.out + shown.err).split())
