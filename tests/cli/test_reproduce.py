"""`gumbeldore reproduce` as a user calls it: every table and figure at smoke scale."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from gumbeldore.cli import main
from gumbeldore.reproduction import EXPERIMENTS
from gumbeldore.reproduction import workshop as steps
from gumbeldore.runs import labelling

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Labels are made in this process."""

    def serially(function, items, workers):
        for key, item in items.items():
            yield key, function(item)

    monkeypatch.setattr(labelling, "in_processes", serially)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What all experiments share."""
    return tmp_path_factory.mktemp("trained")


def run(what, folder, trained, *arguments) -> int:
    places = ["--folder", str(folder), "--trained", str(trained)]
    return main(["reproduce", what, "--scale", "smoke", "--workers", "0", "--device", "cpu", *places, *arguments])


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("what", EXPERIMENTS)
def test_every_table_and_figure_can_be_made(what, tmp_path, trained, capsys):
    for module in ("pyvrp", "hygese"):
        pytest.importorskip(module)
    assert run(what, tmp_path, trained) == 0
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [row for row in rows if row["ours"]]
    assert {row["scale"] for row in rows} == {"smoke"}
    assert (tmp_path / "figure.png").stat().st_size > 5000
    page = (tmp_path / "table.md").read_text()
    assert page.startswith(f"# {EXPERIMENTS[what].title}")
    assert "mean nothing" in page
    assert "## What it took" in page
    plan = words(capsys.readouterr().out)
    assert plan.index("Estimated from the network's operations") < plan.index("1 of ")


def test_what_is_done_is_not_done_again_and_gives_the_same_table(tmp_path, trained, monkeypatch):
    assert run("theory", tmp_path, trained, "--only", "tsp-late") == 0
    before = (tmp_path / "table.csv").read_text()
    monkeypatch.setattr(steps, "TrainingRun", None)
    monkeypatch.setattr("gumbeldore.evaluation.running._solve", None)
    assert run("theory", tmp_path, trained, "--only", "tsp-late") == 0
    assert (tmp_path / "table.csv").read_text() == before


def test_a_training_that_was_killed_goes_on_and_gives_the_same_policy(tmp_path, monkeypatch):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    arguments = ["--only", "gomoku-gd"]
    assert run("gomoku", tmp_path / "a", whole, *arguments) == 0
    training = steps.TrainingRun

    def interrupted(entry, settings, folder, options):
        training(entry, replace(settings, training=replace(settings.training, epochs=1)), folder, options).finish()
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, "TrainingRun", interrupted)
    assert run("gomoku", tmp_path / "b", killed, *arguments) == 130
    assert not (killed / "gomoku-gd-0.safetensors").exists()
    monkeypatch.setattr(steps, "TrainingRun", training)
    assert run("gomoku", tmp_path / "b", killed, *arguments) == 0
    first, second = (folder / "gomoku-gd-0.safetensors" for folder in (whole, killed))
    assert first.read_bytes() == second.read_bytes()


def test_a_plan_is_printed_and_nothing_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run("table-2", tmp_path / "a", tmp_path / "b", "--plan") == 0
    assert list(tmp_path.iterdir()) == []
    text = words(capsys.readouterr().out)
    assert "jssp-gd-intermediate jssp gumbeldore, 1 epochs" in text
    assert "5 methods on tiny (2), 2 repeats" in text


def test_a_policy_that_ships_can_be_used_instead_of_a_training(tmp_path, capsys):
    given = ["--only", "tsp-late", "--use", "tsp-gd=tsp-small"]
    assert run("theory", tmp_path / "a", tmp_path / "b", *given) == 0
    assert not (tmp_path / "b" / "runs").exists()
    assert "Policies that were not trained for this, but given: tsp-small for tsp-gd." in (tmp_path / "a/table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table-9"], "`WHAT` must be one of table-1, table-2, sampling"),
        (["gomoku", "--only", "chess"], "`only` must name parts of gomoku-wr-0, gomoku-gd-0, got chess"),
        (["gomoku", "--use", "gomoku-gd-0"], "`use` must have the form NAME=POLICY, got 'gomoku-gd-0'"),
        (["gomoku", "--use", "a=b"], "`use` must name policies of the plan (gomoku-wr-0, gomoku-gd-0), got a"),
    ],
)
def test_wrong_input_gets_one_line(arguments, message, capsys):
    assert main(["reproduce", *arguments]) == 2
    assert message in words(capsys.readouterr().err)


def test_without_a_name_all_are_listed(capsys):
    assert main(["reproduce"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in EXPERIMENTS)
