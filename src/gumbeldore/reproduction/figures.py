"""Tables as pictures: gaps with intervals beside the paper's, or curves with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from gumbeldore.figure import colours, saved_figure
from gumbeldore.reproduction.results import Table, Value

_WIDE = 3
"""Panels side by side at most."""


def draw(path: Path, title: str, tables: Sequence[Table]) -> None:
    """A panel for each table."""
    rows = ceil(len(tables) / _WIDE)
    columns = ceil(len(tables) / rows)
    with saved_figure(path, rows, columns, (5.2, 4.2)) as axes:
        panels = np.reshape(axes, -1)
        for panel, table in zip(panels, tables, strict=False):
            (_draw_curves if table.across else _draw_grid)(panel, table)
        for panel in panels[len(tables) :]:
            panel.axis("off")
        panels[0].figure.suptitle(title)


def _draw_curves(panel: Any, table: Table) -> None:
    """A line per row, with a band of one standard error; rows of a single point are horizontal lines."""
    for row, colour in zip(table.rows, colours(len(table.rows)), strict=True):
        values = sorted((v for v in table.values if v.row == row and isfinite(v.ours)), key=lambda v: float(v.column))
        if not values:
            continue
        x, y = [float(v.column) for v in values], np.array([v.ours for v in values])
        if len(values) == 1:
            panel.axhline(y[0], color=colour, linestyle=":", label=row)
            continue
        error = np.nan_to_num([v.error for v in values])
        panel.plot(x, y, marker="o", markersize=3, color=colour, label=row)
        panel.fill_between(x, y - error, y + error, color=colour, alpha=0.2, linewidth=0)
    panel.set(title=table.title, xlabel=table.across, ylabel=table.unit)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(fontsize=7)
    panel.grid(alpha=0.3)


def _draw_grid(panel: Any, table: Table) -> None:
    """Ours with intervals; the paper's as crosses. A colour per column. Rows and columns that are only the paper's are left out."""
    ours = [value for value in table.values if isfinite(value.ours)]
    names, columns = (list(dict.fromkeys(getattr(value, what) for value in ours)) for what in ("row", "column"))
    for column, colour in zip(columns, colours(len(columns)), strict=True):
        values = [value for value in table.values if value.column == column and value.row in names]
        places = [names.index(value.row) for value in values]
        panel.errorbar(
            [value.ours for value in values],
            places,
            xerr=_arms(values),
            fmt="o",
            markersize=4,
            capsize=2,
            color=colour,
            label=column,
        )
        panel.plot([value.paper for value in values], places, "x", color=colour)
    panel.set_yticks(range(len(names)), names, fontsize=7)
    panel.invert_yaxis()
    panel.set(title=table.title, xlabel=f"{table.unit}{' (cross: the paper)' if table.has_paper else ''}")
    panel.legend(fontsize=7)
    panel.grid(alpha=0.3)


def _arms(values: Sequence[Value]) -> Any:
    """From a value to the ends of its interval, or one standard error."""
    low = [v.ours - v.low if isfinite(v.low) else v.error for v in values]
    high = [v.high - v.ours if isfinite(v.high) else v.error for v in values]
    return np.nan_to_num([low, high]).clip(min=0)
