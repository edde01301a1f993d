"""Our values beside the paper's, as text and as curves."""

from __future__ import annotations

import csv
from dataclasses import replace
from math import isnan

import numpy as np
import pytest

from gumbeldore.evaluation.report import Cell, Report, Result, report
from gumbeldore.evaluation.sets import NamedSet
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.reproduction import EXPERIMENTS, Evaluate, Instances, Method, Plan, Results, Table, Train, Value
from gumbeldore.reproduction.differences import Pair, by_set, by_training
from gumbeldore.reproduction.figures import draw
from gumbeldore.reproduction.gomoku import epochs_to_win
from gumbeldore.reproduction.paper import published
from gumbeldore.reproduction.results import beside, comma_separated, markdown
from gumbeldore.reproduction.sampling import panels

OURS = [Value("GD", "N = 100", 1.234, 1.0, 1.5, 0.02, instances=3, repeats=2), Value("GD", "N = 50", 2.0)]
PAPER = [Value("GD", "N = 100", paper=0.5), Value("POMO", "N = 100", paper=0.14)]


def table() -> Table:
    return Table("TSP", beside(OURS, PAPER))


def test_the_papers_numbers_stand_beside_ours_and_their_other_rows_below():
    text = markdown("Title", "Caption.", [table()], [("a", "b", "1 h", "2.0")])
    assert "| GD | 1.23 ± 0.02 (1.00..1.50) \\| 0.5 | 2.00 \\| - |" in text
    assert "| POMO | - \\| 0.14 |  |" in text
    assert "| a | b | 1 h | 2.0 |" in text


def test_a_line_of_csv_holds_a_value_with_all_that_belongs_to_it():
    lines = list(csv.DictReader(comma_separated([table()], "cpu").splitlines()))
    assert [line["row"] for line in lines] == ["GD", "GD", "POMO"]
    assert (lines[0]["ours"], lines[0]["paper"], lines[0]["scale"], lines[0]["repeats"]) == ("1.234", "0.5", "cpu", "2")
    assert (lines[2]["ours"], lines[2]["paper"]) == ("", "0.14")


@pytest.mark.parametrize(
    ("what", "title", "evaluation"),
    [
        ("table-1", "TSP", "tsp"),
        ("table-1", "CVRP", "cvrp"),
        ("table-2", "Taillard", "jssp"),
        ("lehd", "TSP", "tsp"),
        ("inference-cvrp", "CVRP", "cvrp"),
        ("inference-jssp", "Taillard", "jssp"),
    ],
)
def test_at_paper_scale_every_cell_of_ours_has_one_of_the_paper(what, title, evaluation):
    step = EXPERIMENTS[what].plan("paper").step(evaluation)
    assert isinstance(step, Evaluate)
    theirs = {(value.row, value.column) for value in published(what, title)}
    assert {(method.name, given.name) for method in step.methods for given in step.sets} <= theirs


def test_the_papers_tables_are_complete():
    assert len(published("table-1", "TSP")) == len(published("table-1", "CVRP")) == 11 * 4
    assert len(published("table-2", "Taillard")) == 11 * 8
    assert len(published("inference-cvrp", "CVRP")) == 9 * 4
    assert len(published("inference-jssp", "Taillard")) == 6 * 8
    assert len(published("lehd", "TSP")) == 3 * 4
    assert {value.paper for value in published("gomoku", "Gomoku") if value.column == "epochs"} == {60.2, 47.7}


def sampled() -> tuple[Plan, Results]:
    """A search of two rounds, and two searches of one and two rounds that are points of one curve; the reference is 10."""
    given = Instances("few", recipe={"cities": 5, "count": 2, "seed": 0})
    methods = (
        Method("WOR", "p", "wor:4x2", 4),
        Method("GD @1", "p", "gd:4x1", 4, point_of="GD"),
        Method("GD @2", "p", "gd:4x2", 4, point_of="GD"),
    )
    plan = Plan((Train("p", "tsp", "small", 1), Evaluate("tsp-late", "tsp", (given,), methods, 2)), "")

    def cell(method: str, *curves: list[float]) -> Cell:
        rows = [[Result(curve[-1], 0.1, np.array([[8.0 * (i + 1), c] for i, c in enumerate(curve)]))] * 2 for curve in curves]
        return Cell("few", method, rows, [])

    cells = [cell("WOR", [12.0, 11.0], [14.0, 11.0]), cell("GD @1", [12.0], [12.0]), cell("GD @2", [12.5, 10.5], [12.5, 10.5])]
    named = NamedSet.of("few", TSPGenerator(5, 2, 0).generate(), np.array([10.0, 10.0]), "us")
    return plan, Results({"tsp-late": report("length", [named], cells)})


def test_every_round_of_a_search_is_a_point_unless_the_search_is_one_point_itself():
    found, _ = panels(*sampled())
    assert found.title == "tsp-late, few"
    points = [(v.row, v.column, v.ours) for v in found.values]
    assert points == [
        ("WOR", "4", pytest.approx(30)),
        ("WOR", "8", pytest.approx(10)),
        ("GD", "4", pytest.approx(20)),
        ("GD", "8", pytest.approx(5)),
    ]


def test_curves_that_the_paper_compares_are_compared_instance_by_instance_where_both_have_a_point():
    plan, results = sampled()
    report_of = results.reports["tsp-late"]
    renamed = {"WOR": "Sample WOR", "GD @1": "GD @1", "GD @2": "GD @2"}
    cells = [replace(cell, method=renamed[cell.method]) for cell in report_of.cells]
    evaluate = plan.step("tsp-late")
    methods = [replace(m, name=renamed[m.name], point_of="Gumbeldore" if m.point_of else "") for m in evaluate.methods]
    plan = Plan((plan.steps[0], replace(evaluate, methods=tuple(methods))), "")
    _, found = panels(plan, Results({"tsp-late": replace(report_of, cells=cells)}))
    assert not found.drawn
    points = [(v.row, v.column, v.ours) for v in found.values]
    assert points == [
        ("Gumbeldore - Sample WOR", "4", pytest.approx(-10)),
        ("Gumbeldore - Sample WOR", "8", pytest.approx(-5)),
    ]


def test_differences_of_rows_stand_beside_those_of_the_papers_rows():
    costs = {"ours": [[11.0, 13.0]], "theirs": [[12.0, 12.0], [12.0, 14.0]]}
    named = NamedSet.of("few", TSPGenerator(5, 2, 0).generate(), np.array([10.0, 10.0]), "us")
    none = np.empty((0, 2))
    cells = [Cell("few", name, [[Result(c, 0.1, none) for c in row] for row in rows], []) for name, rows in costs.items()]
    paper = [Value("ours", "few", paper=0.5), Value("theirs", "few", paper=0.75)]
    pairs = [Pair("ours", "theirs"), Pair("ours", "absent")]
    (value,) = by_set("T", report("length", [named], cells), pairs, paper).values
    assert (value.row, value.column, value.ours) == ("ours - theirs", "few", pytest.approx(-5))
    assert (value.low, value.high, value.paper) == (pytest.approx(-10), pytest.approx(0), -0.25)


def test_differences_of_several_trainings_are_averaged_over_seeds():
    named = NamedSet.of("few", TSPGenerator(5, 2, 0).generate(), np.array([10.0, 10.0]), "us")
    none = np.empty((0, 2))

    def of_seed(ours: list[float], theirs: list[float]) -> Report:
        cells = [
            Cell("few", name, [[Result(c, 0.1, none) for c in row]], []) for name, row in (("ours", ours), ("theirs", theirs))
        ]
        return report("length", [named], cells)

    reports = {
        "0": of_seed([11.0, 13.0], [12.0, 12.0]),
        "1": of_seed([11.0, 11.0], [12.0, 12.0]),
        "2": of_seed([11.0, 12.0], [11.0, 11.0]),
    }
    values = by_training("T", reports, [Pair("ours", "theirs")]).values
    assert [(v.row, v.ours) for v in values] == [
        ("ours - theirs, seed 0", pytest.approx(0)),
        ("ours - theirs, seed 1", pytest.approx(-10)),
        ("ours - theirs, seed 2", pytest.approx(5)),
        ("ours - theirs, mean over seeds", pytest.approx(-5 / 3)),
    ]
    arm = 4.3027 * np.std([0, -10, 5], ddof=1) / np.sqrt(3)
    assert (values[-1].low, values[-1].high) == (pytest.approx(-5 / 3 - arm, abs=1e-3), pytest.approx(-5 / 3 + arm, abs=1e-3))


def test_the_error_of_a_point_is_that_over_repeats():
    found, _ = panels(*sampled())
    assert found.values[0].error == pytest.approx(10)  # repeats of 20 and 40 percent
    assert found.values[1].error == 0


def test_both_kinds_of_tables_are_drawn(tmp_path):
    curves, _ = panels(*sampled())
    draw(tmp_path / "figure.png", "Title", [table(), curves])
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_the_epochs_of_a_run_that_never_wins_all_are_none():
    lost = [{"epoch": 1, "validation": -1.0}, {"epoch": 2, "validation": 79 / 81}]
    assert epochs_to_win(lost) is None
    assert epochs_to_win([*lost, {"epoch": 3, "validation": 1.0}, {"epoch": 4, "validation": 1.0}]) == 3


def test_gomoku_reports_the_runs_that_got_there_and_their_mean():
    runs = {"gomoku-wr-0": [1.0], "gomoku-wr-1": [0.0, 0.0, 1.0], "gomoku-gd-0": [0.5, 0.5], "gomoku-gd-1": [0.0]}
    metrics = {name: [{"epoch": i, "validation": v} for i, v in enumerate(values, 1)] for name, values in runs.items()}
    found, curves = EXPERIMENTS["gomoku"].tables(EXPERIMENTS["gomoku"].plan("smoke"), Results({}, metrics))
    by = {(value.row, value.column): value for value in found.values}
    assert (by["WR", "epochs"].ours, by["WR", "epochs"].paper, by["WR", "epochs"].error) == (2.0, 60.2, pytest.approx(1.0))
    assert (by["WR", "runs that won all"].ours, by["GD", "runs that won all"].ours) == (2.0, 0.0)
    assert isnan(by["GD", "epochs"].ours)
    assert by["WR", "epochs until 90% won"].ours == 2.0
    assert by["GD", "epochs until 50% won"].ours == 1.0
    assert ("GD", "epochs until 90% won") not in by  # no run got there
    assert by["GD", "won after the last epoch in %"].ours == pytest.approx((75 + 50) / 2)
    assert curves.rows == ["WR-0", "WR-1", "GD-0", "GD-1"]


def test_gomokus_difference_is_only_told_if_all_runs_won_from_every_opening():
    def found(**runs: list[float]) -> dict[str, Table]:
        metrics = {
            f"gomoku-{name.replace('_', '-')}": [{"epoch": i, "validation": v} for i, v in enumerate(values, 1)]
            for name, values in runs.items()
        }
        tables = EXPERIMENTS["gomoku"].tables(EXPERIMENTS["gomoku"].plan("smoke"), Results({}, metrics))
        return {table.title: table for table in tables}

    won = {"wr_0": [0.0, 0.0, 1.0], "wr_1": [0.0, 1.0], "gd_0": [0.0, 1.0], "gd_1": [1.0]}
    paired, apart = found(**won)["Gomoku: difference"].values
    assert (paired.ours, paired.low, paired.high, paired.paper) == (-1.0, -1.0, -1.0, -12.5)
    assert apart.ours == -1.0
    assert apart.low < -1.0 < apart.high
    assert "Gomoku: difference" not in found(**{**won, "gd_1": [0.0]})
