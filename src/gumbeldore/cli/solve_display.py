"""What a user sees while files are solved: better solutions as they come, one bar, and a table at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gumbeldore.solving.jobs import Job
from gumbeldore.solving.results import POLICY, Result, cost_so_far, gap, shown
from gumbeldore.solving.running import Better, Event, Failure, Solving

SHOWN = 50
"""Rows of the table."""
LINES = 4
"""Up to so many instances every better solution is a line of its own, unless told otherwise."""


class Display(Progress):
    """A bar that asks how far things are whenever it is drawn."""

    def __init__(self, solving: Solving, console: Console, lines: bool | None = None) -> None:
        """`lines`: every better solution is a line of its own."""
        self.solving, self.lines = solving, len(solving.jobs) <= LINES if lines is None else lines
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        super().__init__(*columns, console=console, transient=True)
        self.bar = self.add_task(self._description(), total=len(solving.jobs), note="")

    def get_renderables(self) -> Iterable[RenderableType]:
        if hasattr(self, "bar"):
            self.update(self.bar, completed=self.solving.completed, description=self._description(), note=self._note())
        yield from super().get_renderables()

    def show(self, event: Event) -> None:
        """Called for everything that happens."""
        if isinstance(event, Better) and self.lines:
            self.console.print(self._line(event), highlight=False)
        if isinstance(event, Failure):
            self.console.print(f"[red]Not solved:[/red] {escape(_named(event))}", highlight=False, soft_wrap=True)

    def _line(self, event: Better) -> str:
        job, found = self.solving.jobs[event.number], event.found
        cost = cost_so_far(job, found)
        parts = [f"{found.seconds:7.1f} s", f"{job.kit.cost} {shown(cost)}"]
        if (more := gap(cost, job.given.known)) is not None:
            parts.append(f"gap {100 * more:.2f} %")
        parts += [f"{found.sequences} sequences", f"{found.evaluations:,} evaluations"]
        if len(self.solving.jobs) > 1:
            parts.insert(1, escape(job.name))
        return "  ".join(parts)

    def _description(self) -> str:
        done = len(self.solving.done)
        return "solving" if len(self.solving.jobs) == 1 else f"solved {done} of {len(self.solving.jobs)}"

    def _note(self) -> str:
        """The mean gap of what is known so far, or the mean cost."""
        found = self.solving.so_far()
        costs = {number: cost_so_far(self.solving.jobs[number], each) for number, each in found.items()}
        gaps = [
            more for number, cost in costs.items() if (more := gap(cost, self.solving.jobs[number].given.known)) is not None
        ]
        if gaps:
            return f"gap so far {100 * np.mean(gaps):.2f} %"
        return f"best so far {np.mean(list(costs.values())):.4f}" if costs else "first solution"


def show_notes(console: Console, notes: Sequence[str], jobs: Sequence[Job]) -> None:
    """What a user should know before anything is solved: about the jobs, and in general."""
    about_jobs = [f"{job.name}: {note}" for job in jobs[:SHOWN] for note in job.given.notes]
    for note in filter(None, [*about_jobs, *notes]):
        console.print(escape(note), highlight=False, soft_wrap=True)


def show_results(console: Console, results: Sequence[Result]) -> None:
    """A table with a column for everyone who worked on the solutions, and the mean gaps."""
    others = list(dict.fromkeys(stage.by for result in results for stage in result.stages[1:]))
    names = {result.job.kit.cost for result in results}
    cost = names.pop() if len(names) == 1 else "cost"
    table = Table(title=f"Best solutions found: {cost}", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("instance", overflow="fold", min_width=8)
    spent = ("evaluations", "seconds") if others else ("sequences", "evaluations", "seconds")
    for head in (POLICY, *(f"then {name}" for name in others), "known", "gap", *spent):
        table.add_column(head, justify="right", min_width=max(map(len, head.split())))
    for result in results[:SHOWN]:
        table.add_row(*_row(result, others))
    console.print(table)
    if len(results) > SHOWN:
        console.print(f"... and {len(results) - SHOWN} more.", highlight=False)
    if line := _mean_gaps(results, others):
        console.print(line, highlight=False)
    for result in results[:SHOWN]:
        for note in result.notes[len(result.job.given.notes) :]:
            console.print(f"{escape(result.name)}: {escape(note)}", highlight=False, soft_wrap=True)


def _row(result: Result, others: Sequence[str]) -> list[str]:
    stages = {stage.by: shown(stage.cost) for stage in result.stages[1:]}
    return [
        escape(result.name),
        shown(result.stages[0].cost),
        *(stages.get(name, "") for name in others),
        "" if result.known is None else shown(result.known),
        "" if result.gap is None else f"{100 * result.gap:.2f} %",
        *([] if others else [f"{result.found.sequences:,}"]),
        f"{result.found.evaluations:,}",
        f"{result.seconds:.1f}",
    ]


def _mean_gaps(results: Sequence[Result], others: Sequence[str]) -> str:
    """The policy's, and those after everyone else, who must not take its credit."""
    known = [result for result in results if result.gap is not None]
    if len(known) < 2 and not (known and others):
        return ""
    parts = []
    for place, by in enumerate((POLICY, *others)):
        gaps = [gap(result.stages[place].cost, result.known) or 0.0 for result in known if len(result.stages) > place]
        if gaps:
            parts.append(f"{'of the' if place == 0 else 'after'} {by} {100 * np.mean(gaps):.2f} %")
    return f"{'Gap' if len(known) == 1 else f'Mean gap of {len(known)} instances:'} {', '.join(parts)}"


def show_failures(console: Console, failures: Sequence[Failure]) -> None:
    """One line each."""
    for failure in failures[:SHOWN]:
        console.print(f"[red]Error:[/red] {escape(_named(failure))}", highlight=False, soft_wrap=True)
    if len(failures) > SHOWN:
        console.print(f"... and {len(failures) - SHOWN} more errors.", highlight=False)


def _named(failure: Failure) -> str:
    """The message, with the file if it does not name it."""
    name = "" if failure.file is None else str(failure.file)
    return failure.message if name in failure.message else f"{name}: {failure.message}"
