"""What steps brought forth, and how it is written down: values beside those of the paper, as CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import Any

from gumbeldore.evaluation.report import Report
from gumbeldore.files import write_atomically

_NOTHING = "-"


@dataclass(frozen=True)
class Results:
    """Of all steps of a plan, by their names."""

    reports: Mapping[str, Report] = field(default_factory=dict)  # of evaluations
    metrics: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)  # of trainings: a record per epoch


@dataclass(frozen=True)
class Value:
    """A figure of ours, with the paper's beside it. NaN: there is none."""

    row: str
    column: str
    ours: float = nan
    low: float = nan  # 95 % interval over instances
    high: float = nan
    error: float = nan  # standard error over repeats
    paper: float = nan
    instances: int = 0
    repeats: int = 0
    reference: str = ""  # what gaps are to

    def __str__(self) -> str:
        if not isfinite(self.ours):
            return _NOTHING
        error = f" ± {self.error:.2f}" if isfinite(self.error) else ""
        interval = f" ({self.low:.2f}..{self.high:.2f})" if isfinite(self.low) else ""
        return f"{self.ours:.2f}{error}{interval}"


@dataclass(frozen=True)
class Table:
    """Values by row and column."""

    title: str
    values: tuple[Value, ...]
    unit: str = "gap in %"
    across: str = ""  # what columns are, if they are numbers: then the table is drawn as curves
    drawn: bool = True  # in the figure, too

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(value.row for value in self.values))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(value.column for value in self.values))

    @property
    def has_paper(self) -> bool:
        return any(isfinite(value.paper) for value in self.values)

    def at(self, row: str, column: str) -> Value | None:
        return next((value for value in self.values if (value.row, value.column) == (row, column)), None)


def beside(values: Iterable[Value], paper: Iterable[Value]) -> tuple[Value, ...]:
    """Our values with the paper's of the same row and column, then those of the paper that we have none for."""
    published = {(value.row, value.column): value for value in paper}
    merged = []
    for value in values:
        theirs = published.pop((value.row, value.column), value)
        merged.append(Value(**{**vars(value), "paper": theirs.paper}))
    return *merged, *published.values()


def markdown(title: str, caption: str, tables: Sequence[Table], work: Sequence[Sequence[str]]) -> str:
    """A page with all tables, and what they took."""
    parts = [f"# {title}", caption]
    for table in tables:
        parts += [
            f"## {table.title}",
            f"{table.unit[:1].upper()}{table.unit[1:]}{'; ours | paper' if table.has_paper else ''}.",
        ]
        parts.append(_grid(table))
    if work:
        parts += ["## What it took", _lines(("step", "what", "hours here", "seconds per epoch"), work)]
    return "\n\n".join(parts) + "\n"


def _grid(table: Table) -> str:
    lines = []
    for row in table.rows:
        cells = [_cell(table.at(row, column), table.has_paper) for column in table.columns]
        lines.append((row, *cells))
    return _lines((table.across, *table.columns), lines)


def _cell(value: Value | None, with_paper: bool) -> str:
    if value is None:
        return ""
    paper = f"{value.paper:g}" if isfinite(value.paper) else _NOTHING
    return f"{value} \\| {paper}" if with_paper else str(value)


def _lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = ["| " + " | ".join(headings) + " |", "|---" + "|---:" * (len(headings) - 1) + "|"]
    return "\n".join([*head, *("| " + " | ".join(row) + " |" for row in rows)])


def comma_separated(tables: Sequence[Table], scale: str) -> str:
    """One line per value."""
    text = io.StringIO()
    names = list(Value.__dataclass_fields__)
    writer = csv.DictWriter(text, ["table", "scale", *names, "unit"], lineterminator="\n")
    writer.writeheader()
    for table in tables:
        for value in table.values:
            plain = {name: "" if isinstance(v, float) and not isfinite(v) else v for name, v in vars(value).items()}
            writer.writerow({"table": table.title, "scale": scale, **plain, "unit": table.unit})
    return text.getvalue()


def write(path: Path, text: str) -> None:
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
