"""All trials, one after the other, and a journal of them: what was tried is not tried again."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trials import cases
from trials.verdicts import Ended, Verdict, ended, refused, stopped, survived, worked
from trials.warm import imported

INPUTS: dict[str, Callable[[Path], Iterator[list[str]]]] = {
    "wrong values of options": cases.wrong_values,
    "wrong commands": cases.wrong_commands,
    "wrong files": cases.wrong_files,
    "kits with a fault": cases.wrong_kits,
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


@dataclass(frozen=True)
class Trial:
    """Something to do, and what is right then."""

    group: str
    name: str  # within its group, the same in every run
    attempt: Callable[[], Ended]
    judge: Callable[[Ended], Verdict]


def trials(folder: Path, count: int, seed: int) -> list[Trial]:
    """All of them. Their files lie in the folder."""
    return [*inputs(folder), *damages(folder, seed), *terminals(folder), *signals(folder, count, seed)]


def inputs(folder: Path) -> Iterator[Trial]:
    for group, make in INPUTS.items():
        for arguments in make(folder):
            yield Trial(group, named(arguments, folder), lambda a=arguments: ended(a), refused)  # type: ignore[misc]


def damages(folder: Path, seed: int) -> Iterator[Trial]:
    for name, arguments in cases.damaged_files(folder, random.Random(seed)):
        yield Trial("damaged files", name, lambda a=arguments: ended(a), survived)  # type: ignore[misc]


def terminals(folder: Path) -> Iterator[Trial]:
    commands = (["--version"], ["--help"], ["train", "tsp", "--help"], ["policies"], ["info", "tsp-small"])
    small = ["train", "tsp", "--folder", str(folder / "run"), "--training.epochs", "1", "--workers", "0", *cases.TINY]
    for place, environment in TERMINALS.items():
        for arguments in (*commands, small):
            attempt = lambda a=arguments, e=environment: ended(a, cold=True, **e)  # type: ignore[misc] # noqa: E731
            yield Trial("terminals and environments", f"{place}: {named(arguments, folder)}", attempt, worked)


def signals(folder: Path, count: int, seed: int) -> Iterator[Trial]:
    """Every command gets each signal `count` times: half of them within its first two seconds."""
    draw = random.Random(seed)
    for number, code in SIGNALS.items():
        for arguments in cases.stoppable(folder):
            for turn in range(count):
                after = draw.uniform(0.05, 2.0) if turn % 2 == 0 else draw.uniform(2.0, 12.0)
                attempt = lambda a=arguments, s=after, n=number: ended(a, cold=True, after=s, number=n)  # type: ignore[misc] # noqa: E731
                name = f"{named(arguments, folder)} after {after:.2f} s"
                yield Trial(signal.Signals(number).name, name, attempt, lambda end, c=code: stopped(end, c))  # type: ignore[misc]


def named(arguments: list[str], folder: Path) -> str:
    return " ".join(arguments).replace(str(folder), "@").replace(str(cases.ROOT), "")


def run(folder: Path, journal: Path, count: int, seed: int, minutes: float, only: str) -> list[Verdict]:
    """Goes on where the journal ends, for so many minutes. All verdicts so far; a last line says what is left."""
    imported()
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        signal.signal(number, handler)  # also below nohup, where what is started would ignore them
    known = {(verdict.group, verdict.name): verdict for verdict in journalled(journal)}
    until, chosen = time.monotonic() + 60 * minutes, [t for t in trials(folder, count, seed) if only in t.group]
    left = [trial for trial in chosen if (trial.group, trial.name) not in known]
    while left and time.monotonic() < until:
        trial = left.pop(0)
        verdict = trial.judge(trial.attempt()).of(trial.group, trial.name)
        known[trial.group, trial.name] = verdict
        with open(journal, "a") as handle:
            print(json.dumps(vars(verdict)), file=handle)
        if not verdict.fine:
            print(verdict, flush=True)
        cleared(folder)
    print(f"{len(left)} of {len(chosen)} trials are left" + (": the same command goes on with them" if left else ""))
    return list(known.values())


def journalled(path: Path) -> list[Verdict]:
    return [Verdict(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def cleared(folder: Path) -> None:
    """Nothing of a trial is in the way of the next one."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != cases.DAMAGED:
            shutil.rmtree(path)
        elif path.suffix == ".npz" and not path.name.startswith("wrong"):
            path.unlink()
