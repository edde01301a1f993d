"""Solutions of other programs in the same table."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from gumbeldore.cli import main
from gumbeldore.errors import SettingsError
from gumbeldore.evaluation.elsewhere import SolutionsMethod, fingerprint
from gumbeldore.io.instance_files import write_instances
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.registry import kit_named


@pytest.fixture
def solved() -> InstanceSet:
    kind = kit_named("tsp").instances
    points = np.random.default_rng(0).random((3, 6, 2))
    return InstanceSet(kind, {"coordinates": points}).labelled([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [2, 1, 3, 5, 4]], "by hand")


def test_their_costs_are_computed_anew_and_stand_beside_ours(tmp_path, solved):
    write_instances(tmp_path / "theirs.npz", solved)
    write_instances(tmp_path / "set.npz", InstanceSet(solved.kind, solved.arrays))
    assert pickle.loads(pickle.dumps(SolutionsMethod.of("theirs", (solved,)))).answers  # worker processes get it
    arguments = ["--sets", str(tmp_path / "set.npz"), "--solutions", f"theirs={tmp_path / 'theirs.npz'}"]
    folder = str(tmp_path / "out")
    assert main(["evaluate", "tsp", *arguments, "--baselines", "nearest-neighbour", "--workers", "0", "--folder", folder]) == 0
    rows = {row["method"]: row for row in json.loads((tmp_path / "out" / "table.json").read_text())["rows"]}
    assert rows["theirs"]["mean_cost"] == pytest.approx(-solved.labels.objective.mean(), rel=1e-9)
    assert rows["nearest-neighbour"]["mean_cost"] <= rows["theirs"]["mean_cost"]


def test_an_instance_that_they_did_not_solve_is_a_failure(solved):
    method = SolutionsMethod.of("theirs", (solved,))
    other = {"coordinates": np.zeros((6, 2))}
    known, unknown = method.solve([fingerprint(solved.instance(1)), fingerprint(other)])
    assert known.actions == (5, 4, 3, 2, 1)
    assert "no solution" in unknown.reason


def test_the_type_of_the_numbers_does_not_matter(solved):
    single = {"coordinates": solved.arrays["coordinates"][0].astype(np.float32)}
    assert fingerprint(single) == fingerprint({"coordinates": single["coordinates"].astype(np.float64)})


def test_instances_without_solutions_are_refused(solved):
    with pytest.raises(SettingsError, match="without solutions"):
        SolutionsMethod.of("theirs", (InstanceSet(solved.kind, solved.arrays),))


def test_solutions_without_a_label_are_refused(tmp_path, capsys):
    assert main(["evaluate", "tsp", "--sets", "tsp20", "--solutions", "theirs.npz"]) == 2
    assert "label=FILE" in capsys.readouterr().err
