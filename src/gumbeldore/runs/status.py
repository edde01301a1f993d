"""Where runs stand, as plain data and as a picture for a terminal: phase, rate, time left, memory and curves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gumbeldore.runs import process_info as processes
from gumbeldore.runs.braille import chart
from gumbeldore.runs.durations import duration
from gumbeldore.runs.folders import RunRecord, read_run, seconds_of

_COLOURS = {"running": "green", "finished": "green", "stopped": "yellow", "killed": "red", "failed": "red", "unknown": "yellow"}
_QUIET = 120.0  # seconds without a word from a run after which that is mentioned
_HEIGHT = 8


def summary(run: RunRecord, now: float) -> dict[str, Any]:
    """What there is to say about a run, as plain data. The best is a cost, or a value where the problem maximises."""
    pulse, best, last = run.pulse, run.best, run.metrics[-1] if run.metrics else None
    about: dict[str, Any] = {
        "folder": str(run.folder),
        "problem": run.problem,
        "state": run.state,
        "epochs": run.epochs,
        "planned": run.planned,
        "seconds": round(run.seconds, 1),
        "seconds_left": run.seconds_left(now),
        "best": None if best is None else run.measure.shown(best["validation"] or 0.0),
        "best_epoch": None if best is None else best["epoch"],
        "loss": None if last is None else last["loss"],
    }
    if pulse is not None:
        names = ("epoch", "phase", "done", "total", "rate", "pid", "host", "written", "message")
        about |= {name: getattr(pulse, name) for name in names} | {"memory_mb": _memory(run)}
    return about


def _memory(run: RunRecord) -> float:
    """What the run's processes hold now, or held when last heard of."""
    assert run.pulse is not None
    return (processes.memory_mb(run.pulse.pid) if run.pulse.lives else 0.0) or run.pulse.memory_mb


def picture(folders: Sequence[Path], console: Console) -> Group:
    """All runs, one below the other."""
    now = time.time()
    return Group(*(part for folder in folders for part in _run(read_run(folder), now, console)))


def _run(run: RunRecord, now: float, console: Console) -> list[Any]:
    head = f"[bold]{escape(str(run.folder))}[/]  {escape(run.problem)}  [{_COLOURS[run.state]}]{run.state}[/]"
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(run, now):
        facts.add_row(name, value)
    return [Text.from_markup(head), facts, *_curves(run, console)]


def _facts(run: RunRecord, now: float) -> list[tuple[str, Any]]:
    facts: list[tuple[str, Any]] = [("epochs", f"{run.epochs} of {run.planned or '?'} finished in {duration(run.seconds)}")]
    if run.state == "running":
        facts += _live(run, now)
    if run.state == "killed" and run.pulse is not None:
        facts.append(
            ("ended", f"without a word, in epoch {run.pulse.epoch}; last heard of {_ago(run, now)}. Go on with --resume.")
        )
    if run.state == "failed" and run.pulse is not None:
        facts.append(("error", escape(run.pulse.message)))
    if run.best is not None:
        best = run.measure.shown(run.best["validation"] or 0.0)
        facts.append((f"best {run.measure.name}", f"{best:.4f} (greedy, epoch {run.best['epoch']:g})"))
    if run.metrics and (loss := run.metrics[-1]["loss"]) is not None:
        facts.append(("last epoch", f"loss {loss:.4f}, {duration(seconds_of(run.metrics[-1]))}"))
    return facts


def _live(run: RunRecord, now: float) -> list[tuple[str, Any]]:
    """Phase, rate, time left, memory."""
    pulse = run.pulse
    assert pulse is not None
    bar = Table.grid(padding=(0, 1))
    if pulse.total:
        speed = f"{pulse.rate:.3g} per second"
        bar.add_row(pulse.phase, ProgressBar(pulse.total, pulse.done, 24), f"{pulse.done} of {pulse.total}", speed)
    left, where = run.seconds_left(now), "" if pulse.lives else f" on {escape(pulse.host)}"
    facts: list[tuple[str, Any]] = [
        (f"epoch {max(pulse.epoch, 1)}", bar if pulse.total else "between phases"),
        ("time left", "known after the first epoch" if left is None else f"about {duration(left)}"),
        ("memory", f"{_memory(run):,.0f} MB, process {pulse.pid}{where}"),
    ]
    if now - pulse.written > _QUIET or not pulse.lives:
        facts.append(("last heard of", _ago(run, now)))
    return facts


def _ago(run: RunRecord, now: float) -> str:
    assert run.pulse is not None
    return f"{duration(now - run.pulse.written)} ago"


def _curves(run: RunRecord, console: Console) -> list[Text]:
    """Costs on the left, the loss on the right; one below the other where the terminal is narrow."""
    wide = console.width >= 100
    width = min(console.width // 2 - 2 if wide else console.width, 72)
    plain = not console.encoding.startswith("utf")
    sign, name = run.measure.sign, run.measure.name
    costs = chart(
        {f"{name}: greedy": _curve(run, "validation", sign), "sampled": _curve(run, "sampled", sign)}, width, _HEIGHT, plain
    )
    loss = chart({"loss": _curve(run, "loss", 1)}, width, _HEIGHT, plain)
    if not wide or not costs or not loss:
        return [Text.from_markup(line) for line in (*costs, *loss)]
    pairs = zip(map(Text.from_markup, costs), map(Text.from_markup, loss), strict=True)
    return [Text.assemble(left, " " * (width + 2 - len(left)), right) for left, right in pairs]


def _curve(run: RunRecord, name: str, sign: int) -> list[tuple[float, float]]:
    return [(line["epoch"] or 0.0, sign * value) for line in run.metrics if (value := line[name]) is not None]
