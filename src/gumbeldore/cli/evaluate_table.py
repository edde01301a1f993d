"""The tables that `gumbeldore evaluate` shows."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gumbeldore.evaluation import Report
from gumbeldore.evaluation.tables import caption, headings, shown

_WIDE = 120
"""Columns of a window in which a row fits into one line."""
_NARROW = ("gap in %\n(95 %)", "difference\nin % (95 %)", "sec-\nonds", "evalu-\nations")
"""Headings of figures in any other."""


def show(report: Report, console: Console) -> None:
    """A table for each set, and one over all; in a narrow window with intervals below their means."""
    wide = console.width >= _WIDE
    for name, rows in report.tables.items():
        table = Table(title=name, caption=caption(name, report), caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        table.collapse_padding = not wide
        heads = headings(report)
        method, *others = heads if wide else (heads[0], heads[1].replace(" ", "\n"), *_NARROW)
        table.add_column(method, overflow="fold")
        for heading in others:
            table.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(text if wide else text.replace(" (", "\n(") for text in shown(row, report)))
        console.print(table)
