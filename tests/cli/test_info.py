"""What a policy's file says about itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from small_runs import new_run, words

from gumbeldore.cli import main
from gumbeldore.io.policy_files import read_weights, save_policy
from gumbeldore.policies import TSPPolicy

pytestmark = pytest.mark.usefixtures("no_pictures")


def test_a_run_s_policy_names_problem_network_sizes_and_version(tmp_path, capsys):
    assert new_run(tmp_path / "run", 1) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "run"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["problem"] == "tsp"
    assert facts["network"].startswith("TSPPolicy(d=16, layers=1")
    assert facts["trained_on"]["problem"]["cities"] == 6
    assert {"weights", "epoch", "version", "format"} <= set(facts)


def test_a_shipped_policy_shows_its_manifest_by_name(capsys):
    assert main(["info", "tsp-small"]) == 0
    text = words(capsys.readouterr().out)
    for word in ("TSPPolicy(d=", "trained", "results", "gap"):
        assert word in text


def test_a_policy_without_any_history_is_described_all_the_same(tmp_path, capsys):
    save_policy(tmp_path / "mine.safetensors", TSPPolicy(d=8, layers=1, heads=2, ff=16))
    assert main(["info", str(tmp_path / "mine.safetensors")]) == 0
    assert "TSPPolicy(d=8, layers=1, heads=2, ff=16" in words(capsys.readouterr().out)


def test_what_is_no_policy_or_has_a_broken_manifest_is_one_line(tmp_path, capsys):
    (tmp_path / "text.safetensors").write_text("no weights")
    save_policy(tmp_path / "mine.safetensors", TSPPolicy(d=8, layers=1, heads=2, ff=16))
    (tmp_path / "mine.json").write_text("[1]")
    for name, message in (
        ("text.safetensors", "not a readable safetensors file"),
        ("none.safetensors", "There is no policy file"),
        ("mine.safetensors", "must hold a JSON object, got a list"),
    ):
        assert main(["info", str(tmp_path / name)]) == 2
        assert message in words(capsys.readouterr().err)


@pytest.mark.parametrize("field", ["config", "trained_on"])
@pytest.mark.parametrize("value", ["null", "[1]", "{bad", '"x"', "3"])
def test_a_header_that_holds_no_record_is_one_line(field, value, tmp_path, capsys):
    given = Path(__file__).parents[1] / "data" / "policies" / "older-tsp-plain.safetensors"
    file = tmp_path / "wrong.safetensors"
    save_file(load_file(given), file, metadata={**read_weights(given)[1], field: value})
    assert main(["info", str(file)]) == 2
    assert f"Error: `{field}` in the header of {file} must be a JSON object, " in capsys.readouterr().err
    assert main(["info", str(given)]) == 0
    assert "TSPPolicy(d=16, layers=1, heads=2, ff=16, features=[])" in words(capsys.readouterr().out)


def test_a_policy_of_a_newer_version_is_refused_with_the_way_out(tmp_path, capsys):
    save_policy(tmp_path / "new.safetensors", TSPPolicy(d=8, layers=1, heads=2, ff=16), format="gumbeldore-2")
    assert main(["info", str(tmp_path / "new.safetensors")]) == 2
    assert "pip install --upgrade gumbeldore" in words(capsys.readouterr().err)


def test_the_list_of_policies_cuts_no_name_off(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["policies"]) == 0
    text = capsys.readouterr().out
    assert "tsp-small: trained on" in text
    assert "…" not in text
