"""The table as a picture: gaps with their intervals, and gaps against evaluations of the policy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from gumbeldore.evaluation.report import Report, Row
from gumbeldore.figure import colours, saved_figure

ROW, LEAST = 0.28, 2.6
"""Inches per method, and at least."""


def draw_report(path: Path, report: Report) -> None:
    """A row of panels for each set. Baselines are horizontal lines in the panel of curves, which is left out if there are none."""
    methods = list(dict.fromkeys(row.method for row in report.rows))
    colour = dict(zip(methods, colours(len(methods)), strict=True))
    height = max(LEAST, 1.2 + ROW * len(methods))
    columns = 2 if report.curves else 1
    with saved_figure(path, len(report.references), columns, (6.2, height)) as panels:
        for name, (left, *right) in zip(report.references, np.reshape(panels, (-1, columns)), strict=True):
            _draw_gaps(left, name, report, colour)
            for panel in right:
                _draw_curves(panel, name, report, colour)


def _draw_gaps(panel: Any, name: str, report: Report, colour: dict[str, Any]) -> None:
    rows = [row for row in report.rows if row.named == name and _has_gap(row)]
    for place, row in enumerate(rows):
        low, high = np.nan_to_num([row.gap.mean - row.gap.low, row.gap.high - row.gap.mean]).clip(min=0)
        panel.errorbar(
            100 * row.gap.mean,
            place,
            xerr=[[100 * low], [100 * high]],
            fmt="o",
            markersize=5,
            capsize=3,
            color=colour[row.method],
        )
    panel.set_yticks(range(len(rows)), [row.method for row in rows])
    panel.invert_yaxis()
    panel.set(title=f"{name}: mean gap and 95 % interval", xlabel=f"% above {_short(report.references[name].source)}")
    panel.grid(alpha=0.3)


def _has_gap(row: Row) -> bool:
    """Whether there are figures; there is no gap to a best cost of 0."""
    return not row.failure and math.isfinite(row.gap.mean)


def _draw_curves(panel: Any, name: str, report: Report, colour: dict[str, Any]) -> None:
    curves = {curve.method: curve for curve in report.curves if curve.named == name}
    for row in (row for row in report.rows if row.named == name and _has_gap(row)):
        if curve := curves.get(row.method):
            panel.plot(curve.evaluations, 100 * curve.gap, marker="o", markersize=4, color=colour[row.method], label=row.method)
        else:
            panel.axhline(100 * row.gap.mean, linestyle="--", linewidth=1, color=colour[row.method], label=row.method)
    if panel.lines:
        number_by_powers(panel)
    panel.set(title="Gap against work", xlabel="policy evaluations per instance", ylabel="mean gap in %")
    panel.grid(alpha=0.3, which="both")
    panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))


def number_by_powers(panel: Any) -> None:
    """A logarithmic axis with plain numbers at 1, 2, 5, 10, 20, ..."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
