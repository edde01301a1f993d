"""The table as files: CSV, JSON and Markdown, and every single answer as CSV."""

from __future__ import annotations

import csv
import io
import json
from math import isfinite, nan
from pathlib import Path
from typing import Any

from gumbeldore.evaluation.report import ALL_SETS, Report, Row
from gumbeldore.evaluation.statistics import Estimate
from gumbeldore.files import write_atomically

_FIGURES = ("gap in % (95 % interval)", "difference in % (95 % interval)", "seconds", "evaluations")
_NOTHING = "-"


def write_tables(folder: Path, report: Report) -> list[Path]:
    """table.csv, table.json, table.md, answers.csv and curves.csv."""
    texts = {
        "table.csv": _table_csv(report),
        "table.json": json.dumps(_table_json(report), indent=1) + "\n",
        "table.md": _table_markdown(report),
        "answers.csv": _answers_csv(report),
        "curves.csv": _curves_csv(report),
    }
    for name, text in texts.items():
        _write(folder / name, text)
    return [folder / name for name in texts]


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _record(row: Row, report: Report) -> dict[str, Any]:
    """A row as plain numbers; None where there is none."""
    plain: dict[str, Any] = {
        "set": row.named,
        "method": row.method,
        "instances": row.instances,
        "repeats": row.repeats,
        "mean_cost": row.cost,
        "gap": row.gap.mean,
        "gap_low": row.gap.low,
        "gap_high": row.gap.high,
        "gap_standard_error": row.gap_error,
        "difference": row.difference.mean,
        "difference_low": row.difference.low,
        "difference_high": row.difference.high,
        "seconds": row.seconds,
        "evaluations": row.evaluations,
        "reference": report.source(row.named),
        "against": report.against,
        "failure": row.failure,
    }
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in plain.items()}


def _table_json(report: Report) -> dict[str, Any]:
    """All rows and curves."""
    curves = [
        {"set": c.named, "method": c.method, "evaluations": c.evaluations.tolist(), "gap": c.gap.tolist()}
        for c in report.curves
    ]
    return {
        "format": "gumbeldore-evaluation-1",
        "cost": report.measure.name,
        "maximises": report.measure.maximises,
        "against": report.against,
        "references": {name: reference.source for name, reference in report.references.items()},
        "rows": [_record(row, report) for rows in report.tables.values() for row in rows],
        "curves": curves,
    }


def _table_csv(report: Report) -> str:
    return _csv([_record(row, report) for rows in report.tables.values() for row in rows])


def _answers_csv(report: Report) -> str:
    """One line per answer."""
    lines = []
    sets = {named.name: named for named in report.sets}
    for cell in (cell for cell in report.cells if not cell.failures):
        named, reference = sets[cell.named], report.references[cell.named].costs
        for repeat, results in enumerate(cell.results):
            for index, result in enumerate(results):
                lines.append(
                    {
                        "set": cell.named,
                        "instance": named.instances[index].name or index,
                        "method": cell.method,
                        "repeat": repeat,
                        "cost": report.measure.shown(-result.cost),
                        "reference": report.measure.shown(-float(reference[index])),
                        "seconds": result.seconds,
                        "evaluations": result.evaluations,
                    }
                )
    return _csv(lines)


def _curves_csv(report: Report) -> str:
    lines = [
        {"set": curve.named, "method": curve.method, "round": index + 1, "evaluations": float(evaluations), "gap": float(gap)}
        for curve in report.curves
        for index, (evaluations, gap) in enumerate(zip(curve.evaluations, curve.gap, strict=True))
    ]
    return _csv(lines)


def _csv(records: list[dict[str, Any]]) -> str:
    if not records:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _table_markdown(report: Report) -> str:
    """A section for each set, and one for all of them."""
    parts = []
    for name, rows in report.tables.items():
        heads = headings(report)
        lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
        lines += ["| " + " | ".join(text.replace("|", "\\|") for text in shown(row, report)) + " |" for row in rows]
        parts.append("\n".join([f"## {name}", "", caption(name, report), "", *lines]))
    return "\n\n".join(parts) + "\n"


def caption(name: str, report: Report) -> str:
    """What the figures of a set are."""
    rows = report.tables[name]
    repeats = max(row.repeats for row in rows)
    again = f", {repeats} repeats (± standard error over them)" if repeats > 1 else ""
    costs = "" if name == ALL_SETS else f" {report.measure.kind}: {report.measure.name};"
    count = f"{rows[0].instances} instance{'s' if rows[0].instances > 1 else ''}"
    return f"{count}{again}; gap to {report.source(name)};{costs} difference of gaps to {report.against}."


def headings(report: Report) -> tuple[str, ...]:
    """What stands above the columns."""
    return ("method", f"mean {report.measure.kind}", *_FIGURES)


def shown(row: Row, report: Report) -> tuple[str, ...]:
    """A row's texts under the headings."""
    if row.failure:
        return (row.method, row.failure, *[""] * len(_FIGURES))
    return (
        row.method,
        _cost(row.cost),
        _percent(row.gap, error=row.gap_error),
        _NOTHING if row.method == report.against else _percent(row.difference, "+"),
        f"{row.seconds:.3f}" if row.seconds >= 0.001 else "< 0.001",
        f"{row.evaluations:.0f}" if row.evaluations else _NOTHING,
    )


def _cost(cost: float) -> str:
    return (f"{cost:.4f}" if abs(cost) < 1000 else f"{cost:.1f}") if isfinite(cost) else _NOTHING


def _percent(estimate: Estimate, sign: str = "", error: float = nan) -> str:
    """Mean, standard error over repeats and interval, as far as there are such."""
    parts = [f"{100 * estimate.mean:{sign}.2f}"]
    if isfinite(error):
        parts.append(f"± {100 * error:.2f}")
    if isfinite(estimate.low):
        parts.append(f"({100 * estimate.low:{sign}.2f}..{100 * estimate.high:{sign}.2f})")
    return " ".join(parts)
