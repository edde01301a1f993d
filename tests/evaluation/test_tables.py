"""The table as files and as a picture."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from gumbeldore.evaluation.pictures import draw_report
from gumbeldore.evaluation.report import Cell, Result, report
from gumbeldore.evaluation.sets import NamedSet
from gumbeldore.evaluation.tables import write_tables
from gumbeldore.kits.measure import Measure
from gumbeldore.problems.tsp.instances import TSPGenerator

NONE = np.empty((0, 2))


def cell(named: str, method: str, costs: list[list[float]], curve=NONE, failures=()) -> Cell:
    return Cell(named, method, [[Result(cost, 0.5, curve) for cost in row] for row in costs], list(failures))


def lines(path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def table():
    instances = TSPGenerator(5, 3, 0).generate()
    known = NamedSet.of("known", instances, np.array([10.0, 20.0, 40.0]), "somebody")
    unknown = NamedSet.of("unknown", instances)
    curve = np.array([[4.0, 44.0], [8.0, 22.0]])
    cells = [
        cell("known", "a|b", [[11.0, 22.0, 44.0]]),
        cell("known", "drawn", [[10.0, 20.0, 40.0], [12.0, 24.0, 48.0]], curve),
        cell("known", "late", [[]], failures=["no time"] * 3),
        cell("unknown", "a|b", [[11.0, 22.0, 44.0]]),
        cell("unknown", "drawn", [[10.0, 30.0, 40.0], [12.0, 24.0, 48.0]], curve),
        cell("unknown", "late", [[9.0, 99.0, 99.0]]),
    ]
    return report("length", [known, unknown], cells)


def test_rows_hold_means_gaps_errors_and_differences(table):
    fixed, drawn, late = table.rows[:3]
    assert fixed.cost == pytest.approx(77 / 3)
    assert fixed.gap.mean == pytest.approx(0.1)
    assert fixed.difference.mean == 0
    assert drawn.gap.mean == pytest.approx(0.1)
    assert drawn.gap_error == pytest.approx(0.1)  # repeats of 0 and 0.2
    assert drawn.difference.mean == pytest.approx(0)
    assert (drawn.seconds, drawn.evaluations) == (0.5, 8)
    assert late.failure == "no answer to 3 of 3: no time"


def test_without_known_costs_the_best_of_all_methods_and_repeats_is_the_reference(table):
    assert table.references["unknown"].costs.tolist() == [9, 22, 40]


def test_several_sets_have_rows_over_all_their_instances(table):
    fixed, drawn, late = table.summary
    assert {row.named for row in table.summary} == {"all sets"}
    assert (fixed.instances, fixed.seconds) == (6, 0.5)
    assert np.isnan(fixed.cost)
    assert fixed.gap.mean == pytest.approx(np.mean([row.gap.mean for row in table.rows if row.method == "a|b"]))
    assert drawn.repeats == 2
    assert drawn.difference.mean == pytest.approx(drawn.gap.mean - fixed.gap.mean)
    assert late.failure == "no answer to 3 of 6: no time"
    assert [row.named for row in table.failures] == ["known"]


def test_one_set_needs_no_rows_over_all(table):
    assert report("length", table.sets[:1], table.cells[:3]).summary == []


def test_curves_are_mean_gaps_by_round(table):
    curve = table.curves[0]
    assert curve.evaluations.tolist() == [4, 8]
    assert curve.gap[1] == pytest.approx(np.mean([22 / 10 - 1, 22 / 20 - 1, 22 / 40 - 1]))


def test_the_files_hold_the_same_numbers(table, tmp_path):
    names = {path.name for path in write_tables(tmp_path, table)}
    assert names == {"table.csv", "table.json", "table.md", "answers.csv", "curves.csv"}
    rows = lines(tmp_path / "table.csv")
    plain = json.loads((tmp_path / "table.json").read_text())
    assert [float(row["gap"]) if row["gap"] else None for row in rows] == [row["gap"] for row in plain["rows"]]
    assert plain["rows"][2]["mean_cost"] is None
    assert plain["references"]["known"] == "somebody"
    assert [row["set"] for row in plain["rows"]] == ["known"] * 3 + ["unknown"] * 3 + ["all sets"] * 3
    assert rows[-1]["mean_cost"] == ""
    answers = lines(tmp_path / "answers.csv")
    assert len(answers) == 3 + 6 + 3 + 6 + 3
    assert answers[3] | {"seconds": ""} == {
        "set": "known",
        "instance": "known[0]",
        "method": "drawn",
        "repeat": "0",
        "cost": "10.0",
        "reference": "10.0",
        "seconds": "",
        "evaluations": "8.0",
    }
    assert len(lines(tmp_path / "curves.csv")) == 4


def test_markdown_says_what_the_reference_is_and_keeps_its_columns(table, tmp_path):
    write_tables(tmp_path, table)
    text = (tmp_path / "table.md").read_text()
    assert "gap to somebody" in text
    assert "gap to the best cost found by any of these methods" in text
    rows = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7}
    assert "10.00 ± 10.00 (10.00..10.00)" in text


def test_a_picture_is_drawn_with_and_without_curves(table, tmp_path):
    draw_report(tmp_path / "both.png", table)
    alone = report("length", table.sets[:1], [cell("known", "a", [[11.0, 22.0, 44.0]])])
    draw_report(tmp_path / "one.png", alone)
    assert (tmp_path / "both.png").stat().st_size > (tmp_path / "one.png").stat().st_size > 1000


def test_values_of_problems_that_maximise_are_positive(tmp_path):
    given = NamedSet.of("prizes", TSPGenerator(5, 2, 0).generate(), np.array([-10.0, -20.0]), "somebody")
    table = report(Measure("prize", maximises=True), [given], [cell("prizes", "rule", [[-9.0, -19.0]])])
    write_tables(tmp_path, table)
    (row,) = lines(tmp_path / "table.csv")
    assert float(row["mean_cost"]) == 14
    assert float(row["gap"]) == pytest.approx(0.075)
    assert [(float(each["cost"]), float(each["reference"])) for each in lines(tmp_path / "answers.csv")] == [(9, 10), (19, 20)]
    assert "14.0000" in (tmp_path / "table.md").read_text()
