"""What a command did that was given something wrong, or was stopped: by its exit code, what it printed and how long it took."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HANG = 120.0
"""Seconds after which a command hangs; a busy machine is slow."""

LONG = 3
"""More lines of an error than so many are longer than they should be."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    arguments: tuple[str, ...]
    code: int | None  # None: it did not
    out: str
    err: str
    seconds: float

    @property
    def traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.out + self.err or "Exception ignored" in self.err

    @property
    def lines(self) -> list[str]:
        """Of the error."""
        return [line for line in self.err.splitlines() if line.strip()]


@dataclass
class Tally:
    """Verdicts on a group of trials, and the trials that went wrong."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, ended: Ended, verdict: str, *, fine: bool) -> None:
        self.counts[verdict] += 1
        if not fine:
            tail = " / ".join(ended.lines[-2:])
            self.faults.append(f"{verdict} ({ended.code}): {' '.join(ended.arguments)}: {tail[:300]}")

    @property
    def total(self) -> int:
        return self.counts.total()


def ended(arguments: Sequence[str], *, after: float | None = None, number: int = signal.SIGINT, **more: str) -> Ended:
    """Runs the program `gumbeldore`; `after` so many seconds it gets a signal. `more` goes into its environment."""
    command = [sys.executable, "-c", "import sys; from gumbeldore.cli import main; sys.exit(main())", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        if after is not None:
            try:
                out, err = process.communicate(timeout=after)
                return Ended(tuple(arguments), process.returncode, out, err, time.monotonic() - began)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        out, err = process.communicate(timeout=HANG)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return Ended(tuple(arguments), None, out, err, time.monotonic() - began)
    return Ended(tuple(arguments), process.returncode, out, err, time.monotonic() - began)


def refused(tally: Tally, end: Ended) -> None:
    """A wrong input should be one clear line and exit code 2 (a mistyped option shows how it is written: some lines)."""
    if end.code is None:
        tally.add(end, "hang", fine=False)
    elif end.traceback:
        tally.add(end, "traceback", fine=False)
    elif end.code < 0:
        tally.add(end, "died by a signal", fine=False)
    elif end.code == 0:
        tally.add(end, "accepted", fine=False)
    elif len(end.lines) <= 1:
        tally.add(end, "one line", fine=True)
    else:
        tally.add(end, "longer", fine=True)


def stopped(tally: Tally, end: Ended, wanted: int) -> None:
    """A stopped command should say so by its exit code, quietly; it may have been finished before."""
    if end.code is None:
        tally.add(end, "hang", fine=False)
    elif end.code < 0 and "in main" not in end.err:
        tally.add(end, "before our first line ran", fine=True)  # Python itself was starting
    elif end.traceback:
        tally.add(end, "traceback", fine=False)
    elif end.code == 0:
        tally.add(end, "finished before", fine=True)
    elif end.code == wanted:
        tally.add(end, "stopped", fine=True)
    else:
        tally.add(end, "another exit code", fine=False)


def table(tallies: Sequence[Tally]) -> str:
    """All tallies as a table of Markdown."""
    verdicts = list(dict.fromkeys(verdict for tally in tallies for verdict in sorted(tally.counts)))
    head = [f"| trials | tried | {' | '.join(verdicts)} |", "|---|" + "---:|" * (1 + len(verdicts))]
    counts = [" | ".join(str(tally.counts[verdict]) for verdict in verdicts) for tally in tallies]
    rows = [*head, *(f"| {tally.name} | {tally.total} | {each} |" for tally, each in zip(tallies, counts, strict=True))]
    return "\n".join(rows)


def wrote(path: Path, content: bytes | str) -> str:
    """A file with this content; returns its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)
