"""Live progress of a training: all epochs, and the phase of the current one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from gumbeldore.bars import Bars
from gumbeldore.training.algorithm import Epoch
from gumbeldore.training.state import Progress as Event

_LABELS = {"sampling": "sampled", "training": "loss", "validating": "greedy"}


class Share:
    """Which share of an epoch is done. Phases take as long as in the epoch before; at first, all take equally long."""

    def __init__(self, phases: tuple[str, ...]) -> None:
        self.seconds = dict.fromkeys(phases, 1.0)

    def learn(self, epoch: Epoch) -> None:
        self.seconds = dict(epoch.seconds)

    def of(self, event: Event) -> float:
        before = list(self.seconds)[: list(self.seconds).index(event.phase)]
        done = sum(self.seconds[phase] for phase in before) + self.seconds[event.phase] * event.done / event.total
        return done / max(sum(self.seconds.values()), 1e-9)


@contextmanager
def bars(
    console: Console | None,
    epochs: int,
    done: int,
    *,
    sampling: bool,
    shown: Callable[[float], float] = lambda objective: objective,
) -> Iterator[Callable[[Event | Epoch], None]]:
    """Two live bars; the upper one moves within an epoch, so that the time left is known from the first seconds. `shown` is an objective as a user sees it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    share = Share(("sampling", "training", "validating") if sampling else ("training", "validating"))
    with Bars(*columns, console=console) as progress:
        overall = progress.add_task("epochs", total=epochs, completed=done, note="")
        phase = progress.add_task("", total=None, note="")

        def show(event: Event | Epoch) -> None:
            if isinstance(event, Epoch):
                share.learn(event)
                progress.update(overall, completed=event.index)
                return
            if event.epoch > done:  # before the first epoch the initial policy is judged
                progress.update(overall, completed=event.epoch - 1 + share.of(event))
            _restart_when_new(progress, phase, event.phase)
            value = event.value if event.phase == "training" else shown(event.value)
            note = f"{_LABELS[event.phase]} {value:.4f}"
            progress.update(phase, description=event.phase, completed=event.done, total=event.total, note=note)

        yield show


def _restart_when_new(progress: Bars, task: TaskID, phase: str) -> None:
    if progress.tasks[task].description != phase:
        progress.reset(task)
