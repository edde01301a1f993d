"""The pulse of a run, and what its folder says."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from gumbeldore.runs import process_info as processes
from gumbeldore.runs.durations import duration
from gumbeldore.runs.folders import read_run
from gumbeldore.runs.heartbeat import Heartbeat
from gumbeldore.runs.pulse import FILE, read_pulse
from gumbeldore.training.algorithm import Epoch
from gumbeldore.training.state import Progress


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


EVENT = Progress(1, "training", 1, 2, 1.0)


def epoch(index: int) -> Epoch:
    return Epoch(index, 1, 0.5, -4.0, -3.0, -3.0, True, 10, 1e-3, {"sampling": 2.0}, dict)


@pytest.fixture
def folder(tmp_path):
    """A run that has settings and one finished epoch."""
    (tmp_path / "settings.json").write_text(json.dumps({"problem_name": "tsp", "training": {"epochs": 4}}))
    (tmp_path / "metrics.jsonl").write_text(json.dumps(epoch(1).metrics()) + "\n")
    return tmp_path


def beating(folder):
    """The content of progress.json while a training runs."""
    with Heartbeat(folder, 4) as beat:
        beat(EVENT)
        return json.loads((folder / FILE).read_text())


def test_a_pulse_says_phase_rate_and_memory(tmp_path):
    clock = Clock()
    with Heartbeat(tmp_path, 10, clock=clock) as beat:
        clock.now += 20
        beat(Progress(1, "sampling", 40, 100, -3.0))
        pulse = read_pulse(tmp_path / FILE)
    assert (pulse.epoch, pulse.epochs, pulse.phase, pulse.done, pulse.total) == (1, 10, "sampling", 40, 100)
    assert pulse.rate == pytest.approx(2.0)
    assert pulse.pid == os.getpid()
    assert pulse.memory_mb > 10


def test_the_rate_begins_anew_with_every_phase(tmp_path):
    clock = Clock()
    with Heartbeat(tmp_path, 10, clock=clock) as beat:
        clock.now += 100
        beat(Progress(1, "sampling", 100, 100, -3.0))
        clock.now += 10
        beat(Progress(1, "training", 50, 100, 1.0))
        assert beat.pulse.rate == pytest.approx(5.0)


def test_a_pulse_is_written_at_most_every_few_seconds(tmp_path):
    clock = Clock()
    with Heartbeat(tmp_path, 10, clock=clock) as beat:
        for step in range(100):
            clock.now += 0.01
            beat(Progress(1, "training", step, 100, 1.0))
        assert read_pulse(tmp_path / FILE).done == 0
        clock.now += 5
        beat(Progress(1, "training", 100, 100, 1.0))
        assert read_pulse(tmp_path / FILE).done == 100


@pytest.mark.parametrize(("error", "state"), [(None, "finished"), (KeyboardInterrupt, "stopped"), (ValueError, "failed")])
def test_a_pulse_says_how_the_run_ended(folder, error, state):
    def work():
        with Heartbeat(folder, 4) as beat:
            beat(EVENT)
            if error is not None:
                raise error("so it goes")

    if error is None:
        work()
    else:
        with pytest.raises(error):
            work()
    run = read_run(folder)
    assert run.state == state
    assert ("so it goes" in run.pulse.message) == (state == "failed")


def test_a_full_disk_does_not_stop_the_training(tmp_path):
    clock = Clock()
    (tmp_path / "file").write_text("not a folder")
    with Heartbeat(tmp_path / "file", 3, clock=clock) as beat:
        clock.now += 60
        beat(EVENT)


def test_a_training_that_never_began_leaves_the_last_pulse(folder):
    with Heartbeat(folder, 4) as beat:
        beat(EVENT)

    def refused():
        with Heartbeat(folder, 4):
            raise ValueError("other settings")

    with pytest.raises(ValueError, match="other settings"):
        refused()
    assert read_run(folder).state == "finished"


def test_a_living_process_is_running_and_a_dead_one_was_killed(folder):
    plain = beating(folder)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        (folder / FILE).write_text(json.dumps(plain | {"pid": child.pid, "born": processes.born(child.pid)}))
        assert read_run(folder).state == "running"
        child.kill()
    assert read_run(folder).state == "killed"


@pytest.mark.skipif(not processes.born(os.getpid()), reason="the system does not tell when a process began")
def test_a_later_process_of_the_same_number_is_not_taken_for_the_run(folder):
    plain = beating(folder)
    (folder / FILE).write_text(json.dumps(plain | {"born": "1"}))
    assert read_run(folder).state == "killed"


def test_a_run_on_another_machine_is_believed(folder):
    plain = beating(folder)
    (folder / FILE).write_text(json.dumps(plain | {"host": "elsewhere"}))
    run = read_run(folder)
    assert run.state == "running"
    assert run.pulse.lives is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"state": 5}', '{"state": "running", "pid": "x", "unknown": 1}']
)
def test_a_damaged_pulse_is_none(folder, text):
    (folder / FILE).write_text(text)
    assert read_pulse(folder / FILE) is None
    assert read_run(folder).state == "unknown"


def test_a_pulse_with_a_wrong_type_or_an_infinite_number_is_none(folder):
    plain = beating(folder)
    for change in ({"epoch": "one"}, {"rate": float("inf")}, {"state": None}):
        (folder / FILE).write_text(json.dumps(plain | change))
        assert read_pulse(folder / FILE) is None


def test_the_time_left_is_judged_by_the_last_epochs(folder):
    lines = [epoch(n).metrics() | {"seconds_sampling": 100.0 if n < 5 else 8.0} for n in range(1, 15)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Heartbeat(folder, 20, done=14, clock=lambda: 1000.0) as beat:
        beat(EVENT)
        run = read_run(folder)
        assert run.seconds_left(now=1000.0) == pytest.approx(48.0)
        assert run.seconds_left(now=1003.0) == pytest.approx(45.0)
        assert run.seconds_left(now=9999.0) == pytest.approx(40.0)
    assert read_run(folder).seconds_left(now=1000.0) is None


def test_lines_of_metrics_that_are_none_are_left_out(folder):
    with open(folder / "metrics.jsonl", "a") as handle:
        handle.write('[1]\n{"epoch": "x"}\n{"epoch": 2, "loss": "high", "validation": NaN}\n{"epoch": 3, "lo')
    run = read_run(folder)
    assert [line["epoch"] for line in run.metrics] == [1, 2]
    assert run.metrics[1]["loss"] is None
    assert run.best["epoch"] == 1


def test_the_best_epoch_is_the_last_that_improved(folder):
    judged = {"improved": False, "best_validation": -3.0}
    lines = [epoch(n).metrics() | {"stage": 1 + n // 3, "validation": -float(n), **judged} for n in range(1, 5)]
    lines[2]["improved"] = True
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(folder).best["epoch"] == 3


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0 s"),
        (4.24, "4.2 s"),
        (59.4, "59 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
        (59.7, "1 min 0 s"),
    ],
)
def test_lengths_of_time_are_easy_to_read(seconds, text):
    assert duration(seconds) == text


def test_threads_and_processes_that_end_while_memory_is_counted_do_no_harm(tmp_path, monkeypatch):
    """A thread is listed, but its file is gone; a child is listed, but the process is gone."""
    pages = {"7/statm": "1 1000", "8/statm": "1 500", "7/task/70/children": "8 9", "7/task/71/children": None}
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            (tmp_path / name).write_text(text)
    monkeypatch.setattr(processes, "PROC", tmp_path)
    assert processes.memory_mb(7) == pytest.approx(1500 * os.sysconf("SC_PAGE_SIZE") / 1e6)
    assert processes.memory_mb(9) == 0
