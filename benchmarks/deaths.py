"""Workers killed at random instants of a real training, also while they start; it must end like an undisturbed one.

python benchmarks/deaths.py --count 30 --workers 2       Linux only: finds the processes in /proc
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from reliability import TINY, finished, result, training


def workers_of(parent: int) -> list[int]:
    """The worker processes of a process, without its resource tracker."""
    with suppress(OSError):
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return []


def deaths(where: Path, count: int, epochs: int, workers: int, seed: int) -> None:
    """Trains again and again while workers are killed, until `count` of them are dead."""
    options = ["--training.epochs", str(epochs), "--workers", str(workers), *TINY]
    began = time.monotonic()
    finished(where / "whole", *options)
    whole, draw, killed, runs = time.monotonic() - began, random.Random(seed), 0, 0
    while killed < count:
        runs, folder, before = runs + 1, where / f"run-{runs}", killed
        process = training(folder, *options)
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(draw.uniform(whole / 4, whole / 2))
            if killed < count and (there := workers_of(process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(there), signal.SIGKILL)
                    killed += 1
        printed, _ = process.communicate()
        same = process.returncode == 0 and result(folder) == result(where / "whole")
        print(f"run {runs}: {killed - before} workers killed, {'the same result' if same else 'ANOTHER RESULT'}", flush=True)
        if not same:
            raise SystemExit(printed)
    print(f"{killed} workers killed in {runs} runs: policies and metrics equal those of the undisturbed run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"count": 30, "epochs": 12, "workers": 2, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    with tempfile.TemporaryDirectory() as where:
        deaths(Path(where), **vars(parser.parse_args()))


if __name__ == "__main__":
    main()
