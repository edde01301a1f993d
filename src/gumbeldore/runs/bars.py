"""Live progress of work that is counted: how many of how many are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gumbeldore.bars import Bars


@contextmanager
def counter(console: Console, what: str, done: int, total: int) -> Iterator[Callable[[int, str], None]]:
    """A live bar; to be told how many are done, and a note."""
    columns = (
        what,
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Bars(*columns, console=console) as progress:
        task = progress.add_task("", total=total, completed=done, note="starting")
        yield lambda count, note: progress.update(task, completed=count, note=note)
