"""What a user sees while instances are solved: better solutions as they come, one bar, and a table at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gumbeldore.solving.found import POLICY
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.results import Result, number
from gumbeldore.solving.running import Better, Event, Failure, Solving

SHOWN = 50
"""Rows of the table."""
LINES = 4
"""Up to so many instances every better solution is a line of its own."""


class Display(Progress):
    """A bar that asks how far things are whenever it is drawn."""

    def __init__(self, solving: Solving, console: Console) -> None:
        self.solving, self.lines = solving, len(solving.jobs) <= LINES
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


def show_notes(console: Console, notes: Sequence[str | None], jobs: Sequence[Job]) -> None:
    """What a user should know before anything is solved: about the jobs, and in general."""
    about_jobs = [f"{job.name}: {note}" for job in jobs[:SHOWN] for note in job.given.notes]
    for note in filter(None, [*about_jobs, *notes]):
        console.print(escape(note), highlight=False, soft_wrap=True)


def show_results(console: Console, results: Sequence[Result]) -> None:
    """A table with who found each solution, what the policy found by itself, and the means."""
    names = {each.job.kit.cost for each in results}
    cost = names.pop() if len(names) == 1 else "cost"
    several = any(len(each.shares) > 1 for each in results)
    heads = ["known", "gap", *(["found by", "policy alone"] if several else ["sequences"]), "evaluations", "seconds"]
    table = Table(title=f"Best solutions found: {cost}", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("instance", overflow="fold", min_width=8)
    for head in ["cost" if cost == "cost" or len(cost) > 12 else cost, *heads]:
        table.add_column(head, justify="right", min_width=max(map(len, head.split())))
    for place, each in enumerate(results[:SHOWN]):
        table.add_row(*_row(each, place, several))
    console.print(table)
    if len(results) > SHOWN:
        console.print(f"... and {len(results) - SHOWN} more.", highlight=False)
    if len(results) == 1 and several:
        _show_shares(console, results[0])
    for line in filter(None, (_mean_costs(results, cost), _mean_gaps(results))):
        console.print(line, highlight=False)
    for each in results[:SHOWN]:
        for note in each.notes[len(each.job.given.notes) :]:
            console.print(f"{escape(each.name)}: {escape(note)}", highlight=False, soft_wrap=True)


def _row(each: Result, place: int, several: bool) -> list[str]:
    alone = each.cost_of(POLICY)
    return [
        escape(each.name) or str(place),
        number(each.cost),
        "" if each.known is None else number(each.known),
        "" if each.gap is None else f"{100 * each.gap:.2f} %",
        *([each.by, "" if alone is None else number(alone)] if several else [f"{each.found.sequences:,}"]),
        f"{each.found.evaluations:,}",
        f"{each.seconds:.1f}",
    ]


def _show_shares(console: Console, result: Result) -> None:
    """Who spent which time and found what."""
    table = Table(title="Who found what", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    for place, head in enumerate(("part", "its best", "improvements", "gain", "turns", "seconds")):
        table.add_column(head, justify="left" if place == 0 else "right")
    for share in result.shares:
        count = sum(each.by == share.by for each in result.improvements)
        cost = "" if share.cost is None else number(share.cost)
        table.add_row(share.by, cost, str(count), number(share.gain), str(share.turns), f"{share.seconds:.2f}")
    console.print(table)


def _mean_costs(results: Sequence[Result], cost: str) -> str:
    if len(results) < 2 or cost == "cost":
        return ""
    return f"Mean {cost} of {len(results)} instances: {np.mean([each.cost for each in results]):.4f}"


def _mean_gaps(results: Sequence[Result]) -> str:
    """Of all, and of what the policy found by itself."""
    known = [each for each in results if each.gap is not None]
    if len(known) < 2:
        return ""
    means = [f"{100 * np.mean([each.gap for each in known]):.3f} %"]
    alone = [each.job.gap(each.job.shown(cost)) for each in known if (cost := each.cost_of(POLICY)) is not None]
    if len(alone) == len(known) and any(len(each.shares) > 1 for each in known):
        means.append(f"of the policy alone {100 * np.mean(np.array(alone, dtype=float)):.3f} %")
    return f"Mean gap of {len(known)} instances: {', '.join(means)}"


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
