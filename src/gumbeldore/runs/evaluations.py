"""The tables and curves of evaluations (`table.json`, docs/reference/files.md), side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gumbeldore.runs.folders import finite
from gumbeldore.runs.page import Cell, Chart, Curve, Point, Section, Table

_HEAD = ("method", "mean", "gap", "95 % interval", "difference", "seconds", "evaluations", "instances")


def evaluation_section(results: Mapping[str, dict[str, Any]]) -> Section:
    """A table and a chart for every set, with the methods of all evaluations. `results` are by the name of a folder."""
    rows, curves = ([*_records(results, part)] for part in ("rows", "curves"))
    sets = list(dict.fromkeys(_text(record.get("set")) for _, record in rows))
    tables = [_table(name, [row for row in rows if _text(row[1].get("set")) == name]) for name in sets]
    charts = [_chart(name, [curve for curve in curves if _text(curve[1].get("set")) == name]) for name in sets]
    return Section("Evaluations", charts=[chart for chart in charts if chart.curves], tables=tables)


Labelled = tuple[str, dict[str, Any]]  # the method's name in the page, and its record


def _records(results: Mapping[str, dict[str, Any]], part: str) -> Iterator[Labelled]:
    """All records of one part of the results; with several evaluations, a method is named with the folder."""
    for folder, result in results.items():
        records = result.get(part)
        for record in records if isinstance(records, list) else []:
            if isinstance(record, dict):
                method = _text(record.get("method"))
                yield method if len(results) == 1 else f"{method} ({folder})", record


def _table(name: str, rows: Sequence[Labelled]) -> Table:
    """The least gap, or without gaps the least cost, is marked."""
    references = dict.fromkeys(_text(record.get("reference")) for _, record in rows)
    gaps = [gap for _, record in rows if (gap := finite(record.get("gap"))) is not None]
    made = [_row(label, record, min(gaps, default=None)) for label, record in rows]
    return Table(_HEAD, made, f"{name}: gaps to {' and '.join(references)}")


def _row(label: str, record: dict[str, Any], least: float | None) -> tuple[Cell, ...]:
    gap, low, high = (finite(record.get(name)) for name in ("gap", "gap_low", "gap_high"))
    if failure := _text(record.get("failure")):
        return (Cell(label), Cell(failure), *(Cell("") for _ in _HEAD[2:]))
    interval = Cell("") if low is None or high is None else Cell(f"{100 * low:.3f} to {100 * high:.3f} %", low)
    return (
        Cell(label),
        _number(record.get("mean_cost"), "{:.4f}"),
        Cell("") if gap is None else Cell(f"{100 * gap:.3f} %", gap, marked=gap == least),
        interval,
        _number(record.get("difference"), "{:+.3%}"),
        _number(record.get("seconds"), "{:.3g}"),
        _number(record.get("evaluations"), "{:,.0f}"),
        _number(record.get("instances"), "{:,.0f}"),
    )


def _chart(name: str, curves: Sequence[Labelled]) -> Chart:
    lines = []
    for number, (label, record) in enumerate(curves):
        points: list[Point] = [(x, 100 * y) for x, y in _pairs(record.get("evaluations"), record.get("gap"))]
        if points:
            lines.append(Curve(label, number, points))
    return Chart(f"{name}: mean gap in percent", ("evaluations of the policy per instance",), lines)


def _pairs(across: Any, down: Any) -> list[tuple[float, float]]:
    if not isinstance(across, list) or not isinstance(down, list):
        return []
    pairs = [(finite(x), finite(y)) for x, y in zip(across, down, strict=False)]
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def _number(value: Any, form: str) -> Cell:
    number = finite(value)
    return Cell("") if number is None else Cell(form.format(number), number)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
