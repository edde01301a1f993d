"""`gumbeldore new`: a kit to begin with works as it is."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import pytest

import gumbeldore
import gumbeldore.kits
from gumbeldore.cli import main
from gumbeldore.errors import SettingsError
from gumbeldore.kits.new import write_kit
from gumbeldore.kits.registry import argument, kit_at, kit_named


def test_a_new_kit_checks_trains_solves_and_is_compared_at_once(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "first_kit"]) == 0
    assert "gumbeldore train first_kit/first_kit.py:KIT" in capsys.readouterr().out
    kit = "first_kit/first_kit.py:KIT"
    assert main(["check", kit]) == 0
    small = [
        "--training.instances",
        "8",
        "--training.batches",
        "4",
        "--training.batch-size",
        "8",
        "--validation.instances",
        "8",
    ]
    assert main(["train", kit, "--folder", "runs/a", "--training.epochs", "1", "--workers", "0", *small]) == 0
    assert main(["evaluate", kit, "--random", "3", "--baselines", "earliest-due", "--workers", "0"]) == 0
    assert main(["label", kit, "--count", "4", "--solver", "gumbeldore", "--work", "5", "--out", "labels.npz"]) == 0
    labelled = ["--labels", "labels.npz", "--folder", "runs/b", "--training.epochs", "1", "--workers", "0"]
    assert main(["imitate", kit, *labelled, "--training.batches", "2", "--validation.instances", "8"]) == 0


def test_commands_that_messages_name_are_those_of_its_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_kit("sixth_kit", tmp_path)
    kit = "sixth_kit.py:KIT"
    assert main(["solve", kit, "--count", "1"]) == 2
    assert f"Train one (gumbeldore train {kit} --folder runs/mine)" in " ".join(capsys.readouterr().err.split())
    assert main(["imitate", kit]) == 2
    assert f"gumbeldore imitate {kit} --labels FILE.npz" in " ".join(capsys.readouterr().err.split())
    for command in ("check", "solve", "evaluate", "generate", "label", "train"):
        with pytest.raises(SystemExit):
            main([command, kit, "--nonsense"])
        assert f"gumbeldore {command} {kit} --help" in " ".join(capsys.readouterr().err.replace("│", "").split())
    assert argument(kit_named("tsp")) == "tsp"


def test_its_own_test_passes(tmp_path):
    files = write_kit("second_kit", tmp_path)
    assert [path.name for path in files[:2]] == ["second_kit.py", "test_second_kit.py"]
    code = "import test_second_kit as t; t.test_it_keeps_the_contract(); t.test_the_verifier_agrees_with_the_problem(); t.test_an_incomplete_order_is_infeasible()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_its_files_are_read_and_no_others(tmp_path):
    kit = kit_at(f"{write_kit('third_kit', tmp_path)[0]}:KIT")
    path = tmp_path / "three.txt"
    path.write_text("third_kit\n1 2 3\n2 4 1\n")
    (form,) = kit.formats
    (instance,) = form.read(path)
    assert instance.arrays["due"].tolist() == [2, 4]
    assert form.claims(path.read_bytes())
    assert not form.claims(b"NAME: berlin52\n")


def test_its_expert_is_better_than_its_baseline(tmp_path):
    kit = kit_at(f"{write_kit('fourth_kit', tmp_path)[0]}:KIT")
    instance = kit.generator(count=1).generate().instance(0)
    limit = gumbeldore.kits.Limit(None, 50)
    (expert,), (baseline,) = kit.experts.values(), kit.baselines.values()
    costs = [
        -kit.instances.verify(instance, actions).objective
        for actions in (expert(instance, limit, 0).actions, baseline.solve(instance, limit, 0))
    ]
    assert costs[0] < costs[1]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("My", "small letters"),
        ("a-b", "one word"),
        ("class", "one word"),
        ("tsp", "a kit called `tsp`"),
        ("json", "a Python module called"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(tmp_path, name, what):
    with pytest.raises(SettingsError, match=what):
        write_kit(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path):
    write_kit("fifth_kit", tmp_path)
    with pytest.raises(SettingsError, match="is there already"):
        write_kit("fifth_kit", tmp_path)


def test_all_that_a_kit_needs_can_be_imported_from_one_place():
    for name in gumbeldore.kits.__all__:
        assert getattr(gumbeldore.kits, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gumbeldore.kits.nonsense


@pytest.mark.parametrize(
    "record",
    [
        gumbeldore.kits.Architecture,
        gumbeldore.kits.Baseline,
        gumbeldore.kits.Export,
        gumbeldore.kits.Format,
        gumbeldore.kits.Instance,
        gumbeldore.kits.InstanceSchema,
        gumbeldore.kits.Kit,
        gumbeldore.kits.Limit,
        gumbeldore.kits.SolutionFormat,
        gumbeldore.kits.Solved,
    ],
)
def test_every_field_is_described_where_help_shows_it(record):
    for field in dataclasses.fields(record):
        assert re.search(rf"^ +{field.name}: \w", record.__doc__, re.MULTILINE), field.name
