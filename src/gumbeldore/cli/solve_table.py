"""What a user sees before and after instances are solved: notes, a table with who found what, and errors."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gumbeldore.solving.found import POLICY
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.results import Result, cost_of, mean_cost, mean_gap, number
from gumbeldore.solving.running import Failure

_SHOWN = 50
"""Rows of a table."""


def show_notes(console: Console, notes: Sequence[str | None], jobs: Sequence[Job]) -> None:
    """What a user should know before anything is solved: about the jobs, and in general."""
    about_jobs = [f"{job.name}: {note}" for job in jobs[:_SHOWN] for note in job.given.notes]
    for note in filter(None, [*about_jobs, *notes]):
        console.print(escape(note), highlight=False, soft_wrap=True)


def show_results(console: Console, results: Sequence[Result]) -> None:
    """A table with who found each solution, what the policy found by itself, and the means."""
    cost = cost_of(results)
    several = any(len(each.shares) > 1 for each in results)
    heads = ["known", "gap", *(["found by", "policy alone"] if several else ["sequences"]), "evaluations", "seconds"]
    table = Table(title=f"Best solutions found: {cost}", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("instance", overflow="fold", min_width=8)
    for head in ["cost" if cost == "cost" or len(cost) > 12 else cost, *heads]:
        table.add_column(head, justify="right", min_width=max(map(len, head.split())))
    for place, each in enumerate(results[:_SHOWN]):
        table.add_row(*_row(each, place, several))
    console.print(table)
    if len(results) > _SHOWN:
        console.print(f"... and {len(results) - _SHOWN} more.", highlight=False)
    if len(results) == 1 and several:
        _show_shares(console, results[0])
    for line in filter(None, (mean_cost(results), mean_gap(results))):
        console.print(line, highlight=False)
    for each in results[:_SHOWN]:
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


def show_failures(console: Console, failures: Sequence[Failure]) -> None:
    """One line each."""
    for failure in failures[:_SHOWN]:
        console.print(f"[red]Error:[/red] {escape(failure.line)}", highlight=False, soft_wrap=True)
    if len(failures) > _SHOWN:
        console.print(f"... and {len(failures) - _SHOWN} more errors.", highlight=False)
