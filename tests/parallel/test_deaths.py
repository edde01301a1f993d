"""Workers that die: noticed at any time, replaced, and nothing lost or counted twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gumbeldore import Gumbeldore
from gumbeldore.parallel.pool import Worker, WorkerDeath, WorkerError, WorkerPool
from gumbeldore.parallel.processes import Processes, in_processes
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.training import TrainingSettings, self_improve_events

SETTINGS = TrainingSettings(epochs=2, instances=6, batches=3, batch_size=10, learning_rate=3e-3, sampling_batch=2, part_size=4)


def workers_of(parent: int) -> list[int]:
    """Worker processes that a process has started (not its resource tracker)."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def kill_one(*_: object) -> None:
    os.kill(workers_of(os.getpid())[0], signal.SIGKILL)


def trained(workers: int, kills: set[int]) -> tuple[TSPPolicy, list[float]]:
    """Weights and values of a short training in which workers are killed after some of its events."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy = TSPPolicy(d=16, layers=1, heads=2, ff=32)
    validation = TSP(7).generate(4, generator=torch.Generator().manual_seed(9))
    values = []
    events = self_improve_events(TSP(7), policy, Gumbeldore(4, 2), validation=validation, settings=SETTINGS, workers=workers)
    for number, event in enumerate(events):
        values.append(event.value if hasattr(event, "value") else event.loss)
        if number in kills:
            kill_one()
    return policy, values


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes through /proc")
def test_a_training_whose_workers_are_killed_ends_with_the_same_weights():
    undisturbed, expected = trained(0, set())
    killed, values = trained(2, {0, 2, 5, 9, 11})
    assert values == expected
    for name, weight in killed.state_dict().items():
        assert torch.equal(weight, undisturbed.state_dict()[name]), name


def die_once(path: str) -> int:
    """Kills its own process the first time."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return len(path)


def test_an_item_at_which_a_worker_died_is_done_again_and_only_once(tmp_path, caplog):
    items = {number: str(tmp_path / f"{number:03d}") for number in range(3)}
    results = list(in_processes(die_once, items, 2))
    assert sorted(results) == [(number, len(path)) for number, path in items.items()]
    assert len([r for r in caplog.records if "died at item" in r.getMessage() and "exit code -9" in r.getMessage()]) == 3


def test_an_item_that_kills_every_worker_is_an_error_that_names_it():
    with pytest.raises(WorkerError, match=r"died at item 5 \(exit code 3.*So did the 2 before it"):
        list(in_processes(os._exit, {5: 3}, 2))


def same(number: int) -> int:
    return number


def give_same():
    return same


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes through /proc")
def test_workers_killed_while_they_start_are_replaced():
    with Processes(give_same, 2) as pool:
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGKILL)
        assert sorted(pool.run({0: 5, 1: 6})) == [(0, 5), (1, 6)]


def test_what_is_given_to_a_worker_at_its_start_is_small_and_the_rest_waits_for_it():
    """More than a pipe holds: `Process.start` would wait for ever for a process that died."""
    with Processes(give_large, 1) as pool:
        assert list(pool.run({0: torch.ones(1 << 18)})) == [(0, 1 << 18)]


def give_large():
    return len


class Mortal(Worker):
    """A worker of this process that may be about to die."""

    def __init__(self, deaths: list[WorkerDeath]) -> None:
        self.deaths, self.item = deaths, None

    def give(self, item: int) -> None:
        self.item = item

    def answer(self):
        if self.ready and self.deaths:
            raise self.deaths.pop()
        return "", self.item

    def end(self) -> None:
        pass


class Village(WorkerPool[Mortal, int, int]):
    def __init__(self, deaths: list[WorkerDeath]) -> None:
        super().__init__()
        self.deaths = deaths

    def _start(self) -> Mortal:
        return Mortal(self.deaths)

    def _heard(self, workers):
        return workers

    def _wanted(self) -> int:
        return 2


def test_deaths_with_a_machine_never_count_against_an_item():
    deaths = [WorkerDeath("the power failed", with_machine=True) for _ in range(20)]
    assert sorted(Village(deaths).run({0: 5, 1: 6, 2: 7})) == [(0, 5), (1, 6), (2, 7)]
    with pytest.raises(WorkerError, match=r"died at item 0 \(of old age\). So did the 2 before it"):
        list(Village([WorkerDeath("of old age") for _ in range(20)]).run({0: 5}))


SCRIPT = """
import torch
from gumbeldore import Greedy, TrainingSettings, self_improve
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP

problem, policy = TSP(5), TSPPolicy(d=16, layers=1, heads=2, ff=32)
validation = problem.generate(2, generator=torch.Generator().manual_seed(1))
settings = TrainingSettings(epochs=1, instances=2, batches=1, batch_size=2)
for epoch in self_improve(problem, policy, Greedy(), validation=validation, settings=settings, workers=2):
    print(epoch.index)
"""


def test_a_script_without_a_guard_gets_the_line_that_explains_it(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True)
    *_, last = done.stderr.strip().splitlines()
    assert 'if __name__ == "__main__":' in last
    assert "set `workers` to 0" in last
    assert done.stderr.count("Traceback") == 1  # that of the error, none of the workers
    assert done.returncode == 1
