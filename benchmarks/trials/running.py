"""All trials, one after the other."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trials import cases
from trials.verdicts import Tally, ended, refused, stopped

INPUTS: dict[str, Callable[[Path], Iterator[list[str]]]] = {
    "values of options": cases.wrong_values,
    "commands": cases.wrong_commands,
    "files": cases.wrong_files,
    "kits": cases.wrong_kits,
}

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
"""And the exit codes that say so."""

TERMINALS = {
    "COLUMNS=0": {"COLUMNS": "0"},
    "COLUMNS=1": {"COLUMNS": "1"},
    "COLUMNS=x": {"COLUMNS": "x"},
    "MPLBACKEND of a notebook": {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
    "TERM=dumb": {"TERM": "dumb"},
    "LC_ALL=C": {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    "RANK without WORLD_SIZE": {"RANK": "3"},
    "ranks without an address": {"RANK": "0", "WORLD_SIZE": "2"},
}
"""Environments in which all commands should work, or say what is wrong."""


def wrong_inputs(folder: Path, share: float, draw: random.Random) -> list[Tally]:
    tallies = []
    for name, make in INPUTS.items():
        tally = Tally(f"wrong {name}")
        for arguments in _sampled(list(make(folder)), share, draw):
            refused(tally, ended(arguments))
            _cleared(folder)
        tallies.append(tally)
        _told(tally)
    return tallies


def signals(folder: Path, count: int, draw: random.Random) -> list[Tally]:
    """Every command gets each signal `count` times: half of them within its first two seconds."""
    tallies = []
    for number, code in SIGNALS.items():
        tally = Tally(signal.Signals(number).name)
        for arguments in cases.stoppable(folder):
            for turn in range(count):
                after = draw.uniform(0.05, 2.0) if turn % 2 == 0 else draw.uniform(2.0, 12.0)
                stopped(tally, ended(arguments, after=after, number=number), code)
                _cleared(folder)
        tallies.append(tally)
        _told(tally)
    return tallies


def terminals(folder: Path) -> list[Tally]:
    tally = Tally("terminals and environments")
    commands = (["--version"], ["--help"], ["train", "tsp", "--help"], ["policies"], ["info", "tsp-small"])
    small = ["train", "tsp", "--folder", str(folder / "run"), "--training.epochs", "1", "--workers", "0", *cases.TINY]
    for environment in TERMINALS.values():
        for arguments in (*commands, small):
            end = ended(arguments, **environment)
            fine = end.code is not None and not end.traceback and (end.code == 0 or len(end.lines) == 1)
            tally.add(end, "worked" if end.code == 0 and fine else "one line" if fine else "went wrong", fine=fine)
            _cleared(folder)
    _told(tally)
    return [tally]


def _sampled(trials: Sequence[list[str]], share: float, draw: random.Random) -> list[list[str]]:
    """Some of them, in their order."""
    return [arguments for arguments in trials if draw.random() < share]


def _cleared(folder: Path) -> None:
    """Nothing of a trial is in the way of the next one."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix == ".npz" and not path.name.startswith("wrong"):
            path.unlink()


def _told(tally: Tally) -> None:
    print(f"{tally.name}: {dict(tally.counts)}", flush=True)
    for fault in tally.faults:
        print(f"    {fault}", flush=True)
