"""What a command did that was given something wrong, or was stopped: by its exit code, what it printed and how long it took."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trials.warm import copied

HANG = 180.0
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

    def verdict(self, text: str, *, fine: bool = False) -> Verdict:
        return Verdict("", "", text, fine, self.code, " / ".join(self.lines[-2:])[:300], round(self.seconds, 2))


@dataclass(frozen=True)
class Verdict:
    """On a trial, as it stands in the journal."""

    group: str
    name: str
    verdict: str
    fine: bool
    code: int | None
    said: str
    seconds: float

    def of(self, group: str, name: str) -> Verdict:
        return replace(self, group=group, name=name)

    def __str__(self) -> str:
        return f"{self.verdict} ({self.code}, {self.seconds} s): {self.group}: {self.name}: {self.said}"


def ended(
    arguments: Sequence[str], *, cold: bool = False, after: float | None = None, number: int = signal.SIGINT, **more: str
) -> Ended:
    """Runs the program `gumbeldore`; `after` so many seconds it gets a signal. `more` goes into its environment.

    What is neither stopped nor about its start needs no new interpreter, unless it is to be `cold`.
    """
    if not cold:
        return Ended(tuple(arguments), *copied(arguments, HANG))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "gumbeldore", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip
    code: int | None = None
    try:
        if after is not None:
            try:
                out, err = process.communicate(timeout=after)
                return Ended(tuple(arguments), process.returncode, out, err, time.monotonic() - began)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        out, err = process.communicate(timeout=HANG)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return Ended(tuple(arguments), code, out, err, time.monotonic() - began)


def broken(end: Ended) -> str:
    """What is wrong in any case."""
    if end.code is None:
        return "hang"
    if end.traceback:
        return "traceback"
    return "died by a signal" if end.code < 0 else ""


def refused(end: Ended) -> Verdict:
    """A wrong input should be one clear line and exit code 2 (a mistyped option shows how it is written: some lines)."""
    if what := broken(end):
        return end.verdict(what)
    if end.code == 0:
        return end.verdict("accepted")
    return end.verdict("one line" if len(end.lines) <= 1 else "longer", fine=True)


def survived(end: Ended) -> Verdict:
    """A damaged file may still be one; if it is none, that is a line or two."""
    if what := broken(end):
        return end.verdict(what)
    if end.code == 0:
        return end.verdict("worked", fine=True)
    return end.verdict("one line" if len(end.lines) <= 1 else "longer", fine=len(end.lines) <= LONG)


def worked(end: Ended) -> Verdict:
    """In an odd terminal a command works, or says in one line what is wrong."""
    if what := broken(end):
        return end.verdict(what)
    if end.code == 0:
        return end.verdict("worked", fine=True)
    return end.verdict("one line" if len(end.lines) == 1 else "longer", fine=len(end.lines) == 1)


def stopped(end: Ended, wanted: int) -> Verdict:
    """A stopped command should say so by its exit code, quietly; it may have been finished before."""
    if end.code is not None and end.code < 0 and "in main" not in end.err:
        return end.verdict("while Python itself started", fine=True)
    if what := broken(end):
        return end.verdict(what)
    if end.code == 0:
        return end.verdict("finished before", fine=True)
    return end.verdict("stopped with its code", fine=True) if end.code == wanted else end.verdict("another exit code")


def table(verdicts: Sequence[Verdict]) -> str:
    """How many of each group ended how, as a table of Markdown."""
    groups = list(dict.fromkeys(verdict.group for verdict in verdicts))
    kinds = [*dict.fromkeys(v.verdict for v in sorted(verdicts, key=lambda v: not v.fine)), "traceback", "hang"]
    kinds = list(dict.fromkeys(kinds))
    counts = Counter((verdict.group, verdict.verdict) for verdict in verdicts)
    rows = [
        f"| {group} | {sum(counts[group, kind] for kind in kinds)} | {' | '.join(str(counts[group, kind] or '') for kind in kinds)} |"
        for group in groups
    ]
    sums = [sum(counts[group, kind] for group in groups) for kind in kinds]
    last = f"| **all** | **{len(verdicts)}** | {' | '.join(f'**{each}**' for each in sums)} |"
    return "\n".join([f"| trials | tried | {' | '.join(kinds)} |", "|---|" + "---:|" * (1 + len(kinds)), *rows, last])


def wrote(path: Path, content: bytes | str) -> str:
    """A file with this content; returns its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)
