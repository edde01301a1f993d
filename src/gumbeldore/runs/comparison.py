"""What a report says about runs, evaluations and solved instances, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gumbeldore.kits.measure import Measure
from gumbeldore.runs.durations import duration
from gumbeldore.runs.evaluations import evaluation_section
from gumbeldore.runs.folders import Found, Line, RunRecord, flat, seconds_of
from gumbeldore.runs.page import Cell, Chart, Curve, Gallery, Picture, Point, Section, Table

_MISSING = "(none)"
_CURVES = (
    ("validation", None, "Greedy {cost} on validation instances"),
    ("sampled", None, "{cost} of the solutions learnt from"),
    ("loss", 1, "Loss (next-action cross-entropy)"),
    ("seconds", 1, "Seconds per epoch"),
    ("learning_rate", 1, "Learning rate"),
)
"""What is drawn, its sign (None: that of the objective), and the title."""


def sections(found: Sequence[Found], measures: Mapping[str, Measure], drawn: Mapping[str, Sequence[Picture]]) -> list[Section]:
    """The parts of a report. `measures` say what objectives are, by problem; `drawn` are pictures by the name of a folder."""
    runs = {each.name: each.run for each in found if each.run is not None}
    parts = [
        Section("Runs", tables=[_overview(runs)] if runs else []),
        *(_curves(problem, measures.get(problem), runs) for problem in sorted({run.problem for run in runs.values()})),
        evaluation_section({each.name: each.results for each in found if each.results}),
        Section("Solved instances", tables=[_solved(found)] if any(each.costs for each in found) else []),
        Section(
            "Solutions",
            galleries=[gallery for each in found if (gallery := _pictures(each, drawn.get(each.name, ()))).pictures],
        ),
        compared("Settings", {name: flat(run.settings) for name, run in runs.items()}),
        compared("Environment", {name: flat(run.environment) for name, run in runs.items() if run.environment}),
    ]
    return [part for part in parts if part.charts or part.tables or part.galleries]


def _overview(runs: Mapping[str, RunRecord]) -> Table:
    """One row per run."""
    head = ("run", "problem", "state", "epochs", "best greedy", "in epoch", "last loss", "time", "time per epoch")
    return Table(head, [_row(name, run) for name, run in runs.items()])


def _row(name: str, run: RunRecord) -> tuple[Cell, ...]:
    best, last = run.best or {}, run.metrics[-1] if run.metrics else {}
    value = best.get("validation")
    each = run.seconds / len(run.metrics) if run.metrics else None
    return (
        Cell(name),
        Cell(run.problem),
        Cell(run.state),
        Cell(f"{run.epochs} of {run.planned or '?'}", run.epochs),
        _number(None if value is None else run.measure.shown(value)),
        _number(best.get("epoch"), "g"),
        _number(last.get("loss")),
        Cell(duration(run.seconds), run.seconds),
        Cell("") if each is None else Cell(duration(each), each),
    )


def _number(value: float | None, form: str = ".4f") -> Cell:
    return Cell("") if value is None else Cell(f"{value:{form}}", value)


def _curves(problem: str, measure: Measure | None, runs: Mapping[str, RunRecord]) -> Section:
    """The curves of all runs of one problem, over epochs or over the time that training took."""
    mine = {name: run for name, run in runs.items() if run.problem == problem}
    measure = measure or next(iter(mine.values())).measure
    long = max(run.seconds for run in mine.values()) > 2 * 3600
    unit, seconds = ("hours", 3600.0) if long else ("minutes", 60.0)
    charts = []
    for name, sign, title in _CURVES:
        lines = [
            Curve(label, number, points)
            for number, (label, run) in enumerate(mine.items())
            if (points := _points(run.metrics, name, sign or measure.sign, seconds))
        ]
        if lines and not (name == "learning_rate" and all(_constant(line) for line in lines)):
            text = title.format(cost=measure.name)
            charts.append(Chart(text[0].upper() + text[1:], ("epoch", unit), lines))
    hint = "Hover or touch for values, drag to zoom, double-click to see all, click a name to hide it."
    return Section(f"Curves: {problem}", hint if charts else "", charts)


def _points(metrics: Sequence[Line], name: str, sign: int, unit: float) -> list[Point]:
    """Epoch, time of training so far, value."""
    points, seconds = list[Point](), 0.0
    for line in metrics:
        seconds += seconds_of(line)
        value = seconds_of(line) if name == "seconds" else line[name]
        if value is not None:
            points.append((line["epoch"] or 0.0, seconds / unit, sign * value))
    return points


def _constant(curve: Curve) -> bool:
    return len({point[-1] for point in curve.points}) == 1


def _solved(found: Sequence[Found]) -> Table:
    """One row per folder of solved instances."""
    rows = []
    for each in found:
        if costs := each.costs:
            mean = sum(costs) / len(costs)
            figures = tuple(_number(value) for value in (mean, min(costs), max(costs)))
            rows.append((Cell(each.name), Cell(str(len(costs)), len(costs)), *figures))
    return Table(("folder", "instances", "mean", "least", "largest"), rows)


def _pictures(found: Found, drawn: Sequence[Picture]) -> Gallery:
    """Those drawn for the report, then those in the folder."""
    return Gallery(found.name, [*drawn, *(Picture(path.read_bytes(), path.name) for path in found.pictures)])


def compared(title: str, columns: Mapping[str, Mapping[str, str]]) -> Section:
    """One column per run; values that are not the most common one are marked, rows without a difference can be hidden."""
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    rows, common = [], set()
    for number, name in enumerate(names):
        values = [column.get(name, _MISSING) for column in columns.values()]
        usual = max(values, key=values.count)
        if values.count(usual) == len(values) > 1:
            common.add(number)
        rows.append((Cell(name), *(Cell(value, marked=value != usual) for value in values)))
    table = Table(("name", *columns), rows, common=frozenset(common))
    return Section(title, tables=[table] if rows else [])
