"""What a user sees while instances are solved: better solutions as they come, and one bar."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

import numpy as np
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from gumbeldore.bars import Bars
from gumbeldore.solving.results import number
from gumbeldore.solving.running import Better, Event, Failure, Solving

_LINES = 4
"""Up to so many instances every better solution is a line of its own."""


class Display(Bars):
    """A bar that asks how far things are whenever it is drawn. Ctrl-C ends what is shown, if there are solutions already."""

    def __init__(self, solving: Solving, console: Console | None = None) -> None:
        self.solving, self.lines, self.stopped = solving, len(solving.jobs) <= _LINES, False
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        super().__init__(*columns, console=console)
        self.bar = self.add_task(self._description(), total=len(solving.jobs), note="")

    def __exit__(  # type: ignore[override]
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        super().__exit__(kind, error, trace)
        self.stopped = isinstance(error, KeyboardInterrupt) and bool(self.solving.so_far())
        return self.stopped

    def get_renderables(self) -> Iterable[RenderableType]:
        if hasattr(self, "bar"):
            self.update(self.bar, completed=self.solving.completed, description=self._description(), note=self._note())
        yield from super().get_renderables()

    def show(self, event: Event) -> None:
        """Called for everything that happens."""
        if isinstance(event, Better) and self.lines:
            self.console.print(self._line(event), highlight=False)
        if isinstance(event, Failure):
            self.console.print(f"[red]Not solved:[/red] {escape(event.line)}", highlight=False, soft_wrap=True)

    def _line(self, event: Better) -> str:
        job, found = self.solving.jobs[event.number], event.found
        parts = [f"{found.seconds:7.2f} s", f"{job.kit.cost} {number(job.shown(found.cost))}"]
        if (more := job.gap(found.cost)) is not None:
            parts.append(f"gap {100 * more:.2f} %")
        parts.append(f"by {found.by}")
        if len(self.solving.jobs) > 1:
            parts.insert(1, escape(job.name))
        return "  ".join(parts)

    def _description(self) -> str:
        done = len(self.solving.done)
        return "solving" if len(self.solving.jobs) == 1 else f"solved {done} of {len(self.solving.jobs)}"

    def _note(self) -> str:
        """The mean gap of what is known so far, or the mean cost."""
        found = [(self.solving.jobs[place], each) for place, each in self.solving.so_far().items()]
        gaps = [more for job, each in found if (more := job.gap(each.cost)) is not None]
        if gaps:
            return f"gap so far {100 * np.mean(gaps):.2f} %"
        return f"best so far {np.mean([job.shown(each.cost) for job, each in found]):.4f}" if found else "first solution"
