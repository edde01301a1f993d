"""What stays on the screen of a training: a line for the untrained policy and for every epoch, and a warning where one is due."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from gumbeldore.kits.measure import COST, Measure
from gumbeldore.runs.advice import advice
from gumbeldore.runs.settings import RunSettings
from gumbeldore.training.algorithm import Epoch
from gumbeldore.training.state import Progress


class News:
    """Hears of all events and prints what is worth a line."""

    def __init__(self, settings: RunSettings, console: Console, measure: Measure, *, sampling: bool) -> None:
        self.settings, self.console, self.measure, self.sampling = settings, console, measure, sampling
        self._untrained: float | None = None  # its validation, before that is printed
        self._greedy: float | None = None  # the last validation
        self._warned = False

    def __call__(self, event: Progress | Epoch) -> None:
        if isinstance(event, Epoch):
            self.console.print(line(event, self.measure), highlight=False)
            self._warn(event)
            self._greedy = event.validation
        elif event.epoch == 0 and event.done == event.total:
            self._untrained = self._greedy = event.value
            if not self.sampling:
                self._start(None)
        elif event.epoch == 1 and event.phase == "sampling" and event.done == event.total:
            self._start(event.value)

    def _start(self, sampled: float | None) -> None:
        """The policy that the training begins with: in the first epoch it is the one that samples."""
        if self._untrained is not None:
            what = "" if sampled is None else f"  sampled {self.measure.shown(sampled):.4f}"
            greedy = self.measure.shown(self._untrained)
            self.console.print(f"epoch    0  before training{what}  greedy {greedy:.4f}", highlight=False)

    def _warn(self, epoch: Epoch) -> None:
        """Once is enough."""
        if not self._warned and (text := advice(epoch, self._greedy, self.settings, self.measure)):
            self._warned = True
            self.console.print(f"[yellow]Note:[/yellow] {escape(text)}", highlight=False, soft_wrap=True)


def line(epoch: Epoch, measure: Measure = COST) -> str:
    """What is left of an epoch on the screen."""
    star = " [green]new best[/green]" if epoch.improved else ""
    seconds = sum(epoch.seconds.values())
    stage = f" (stage {epoch.stage})" if epoch.stage > 1 else ""
    sampled = "" if epoch.sampled is None else f"  sampled {measure.shown(epoch.sampled):.4f}"
    greedy = f"greedy {measure.shown(epoch.validation):.4f}"
    return f"epoch {epoch.index:4d}{stage}  loss {epoch.loss:.4f}{sampled}  {greedy}  {seconds:.1f} s{star}"
