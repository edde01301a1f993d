"""Ctrl-C, SIGTERM, a full disk: what a run says, saves and returns."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest
from small_runs import SMALL, new_run, resumed, weights, words

from gumbeldore.cli import main, signals
from gumbeldore.runs.recorder import Recorder
from gumbeldore.training.checkpoint import load_state, read_metrics
from gumbeldore.training.state import Training

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C works, even where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_at(monkeypatch, cls, name: str, call: int, number: int = signal.SIGINT) -> None:
    """Sends this process a signal when a method is called for the `call`-th time."""
    original, calls = getattr(cls, name), []

    def method(self, *arguments, **options):
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), number)
        return original(self, *arguments, **options)

    monkeypatch.setattr(cls, name, method)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["Ctrl-C", "SIGTERM", "a closed terminal"],
)
def test_a_stopped_run_says_so_by_its_code_and_what_is_saved_and_goes_on_to_the_same_weights(
    tmp_path, monkeypatch, capsys, number, code
):
    before = signal.signal(number, signal.default_int_handler)  # under nohup, a closed terminal is ignored, and stays so
    try:
        with monkeypatch.context() as patch:
            interrupt_at(patch, Training, "fit", 3, number)
            assert new_run(tmp_path / "run", 3) == code
    finally:
        signal.signal(number, before)
    shown = capsys.readouterr()
    assert "Epoch 2 is saved; --resume goes on" in words(shown.out)
    assert "Traceback" not in shown.err
    assert load_state(tmp_path / "run" / "checkpoint.pt")["epoch"] == 2
    assert resumed(tmp_path / "run", 3) == 0
    assert new_run(tmp_path / "whole", 3) == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


@pytest.mark.parametrize("method", ["validate", "fit"])
def test_a_run_stopped_in_its_first_epoch_names_no_files_that_do_not_exist(tmp_path, monkeypatch, capsys, method):
    with monkeypatch.context() as patch:
        interrupt_at(patch, Training, method, 1)
        assert new_run(tmp_path, 2) == 130
    shown = words(capsys.readouterr().out)
    assert "nothing to resume" in shown
    assert "policy.safetensors" not in shown
    assert not (tmp_path / "policy.safetensors").exists()
    assert new_run(tmp_path, 1) == 0  # nothing is in the way


def test_the_signal_handler_of_the_caller_is_restored():
    def own(*_):
        pass

    before = signal.signal(signal.SIGTERM, own)
    try:
        assert main(["--version"]) == 0
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


class Disk:
    """Full at the given calls of fsync."""

    def __init__(self, full: range) -> None:
        self.full, self.calls, self.fsync = full, 0, os.fsync

    def __call__(self, descriptor: int) -> None:
        self.calls += 1
        if self.calls in self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.fsync(descriptor)


def test_a_disk_that_is_full_for_a_while_costs_nothing(tmp_path, monkeypatch, capsys):
    """The calls before: settings, environment, metrics; then policy, checkpoint and picture of an epoch."""
    monkeypatch.setattr(os, "fsync", Disk(range(5, 8)))
    assert new_run(tmp_path / "run", 4) == 0
    monkeypatch.undo()
    shown = words(capsys.readouterr().out)
    assert "The disk is full" in shown
    assert "Training goes on and tries again" in shown
    assert new_run(tmp_path / "whole", 4) == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")
    assert load_state(tmp_path / "run" / "checkpoint.pt")["epoch"] == 4
    assert [line["epoch"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [1, 2, 3, 4]


def test_the_last_epoch_waits_for_room(tmp_path, monkeypatch, capsys):
    disk = Disk(range(5, 1000))

    def make_room(seconds: float) -> None:
        disk.full = range(0)

    monkeypatch.setattr(os, "fsync", disk)
    monkeypatch.setattr("gumbeldore.runs.recorder.pause", make_room)
    assert new_run(tmp_path, 2) == 0
    assert "Waiting" in words(capsys.readouterr().out)
    assert load_state(tmp_path / "checkpoint.pt")["epoch"] == 2


def test_a_disk_that_stays_full_is_an_error_that_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "fsync", Disk(range(5, 1000)))
    monkeypatch.setattr("gumbeldore.runs.recorder.pause", lambda seconds: None)
    assert new_run(tmp_path, 1) == 2
    assert "The disk is full" in words(capsys.readouterr().err)


def test_ctrl_c_with_an_epoch_that_found_no_room_saves_that_epoch_as_it_was(tmp_path, monkeypatch, capsys):
    """The weights have changed since."""
    disk = Disk(range(5, 1000))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk)
        original = Recorder.finish

        def finish(self, **options):
            disk.full = range(0)
            return original(self, **options)

        patch.setattr(Recorder, "finish", finish)
        interrupt_at(patch, Training, "judge", 2)
        assert new_run(tmp_path / "run", 3) == 130
    assert "Epoch 1 is saved" in words(capsys.readouterr().out)
    assert resumed(tmp_path / "run", 3) == 0
    assert new_run(tmp_path / "whole", 3) == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_a_file_size_limit_of_the_system_is_a_full_disk(tmp_path):
    """A real one: no file may grow beyond 30 KB, so that the checkpoint (66 KB) has no room, but the policy has."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY));"
    patch = "import gumbeldore.runs.recorder as r; r.RETRY_SECONDS = 0;"
    free = "r.pause = lambda s: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2);"
    code = f"import sys; {limit} {patch} {free} from gumbeldore.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["train", "tsp", "--folder", str(tmp_path / "run"), "--training.epochs", "1", *SMALL]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "The disk is full" in words(done.stdout)
    assert load_state(tmp_path / "run" / "checkpoint.pt")["epoch"] == 1


def test_a_run_that_diverged_leaves_the_step_and_goes_on_with_a_lower_rate(tmp_path, capsys):
    run, step = tmp_path / "run", tmp_path / "run" / "diverged.pt"
    assert new_run(run, 1) == 0
    assert resumed(run, 2, "--training.learning-rate", "1e30") == 2
    error = words(capsys.readouterr().err)
    assert "diverged in epoch 2, batch 2" in error
    assert f"gumbeldore check tsp --diverged {step}" in error
    assert main(["check", "tsp", "--diverged", str(step)]) == 0
    shown = words(capsys.readouterr().out)
    assert "Epoch 2, batch 2 of 8 examples" in shown
    assert "not finite" in shown
    assert resumed(run, 2, "--training.learning-rate", "0.001") == 0
    assert new_run(tmp_path / "whole", 2, "--training.learning-rate", "0.001") == 0
    assert weights(run) == weights(tmp_path / "whole")


def test_help_into_a_closed_pipe_is_quiet():
    code = "import sys; from gumbeldore.cli import main; sys.exit(main(sys.argv[1:]))"
    for arguments in (["--help"], ["train", "tsp", "--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
        os.close(writing)
        assert done.stderr == ""
        assert done.returncode in (0, 1)  # the latter by the library that prints


def test_a_command_in_another_thread_leaves_signals_alone(monkeypatch):
    monkeypatch.setattr(signals.threading, "main_thread", lambda: None)
    assert main(["--version"]) == 0
