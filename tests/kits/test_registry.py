"""How kits are found, and what becomes of those that cannot be."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from kits import KITS
from safetensors.torch import save_file

from gumbeldore.cli import main
from gumbeldore.errors import CheckpointError, SettingsError
from gumbeldore.io.policy_files import load_policy
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.names import problem_names
from gumbeldore.kits.registry import BUILT_IN, kit_at, kit_named, policy_class
from gumbeldore.problems.tsp.bq import TSPPolicy
from gumbeldore.runs.presets import entry

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FLOW_SHOP = f"{EXAMPLES / 'flow_shop.py'}:KIT"
TINY = ["--training.epochs", "1", "--training.instances", "4", "--training.batches", "2", "--training.batch-size", "8"]
TINY += ["--problem.jobs", "4", "--problem.machines", "2", "--validation.instances", "4", "--policy.d", "16"]


@pytest.mark.parametrize("kit", KITS.values(), ids=list(KITS))
def test_what_is_compared_can_be_sent_to_worker_processes(kit):
    for method in (*kit.baselines.values(), *kit.experts.values()):
        pickle.dumps(method)


def test_our_kits_are_found_by_name_and_by_place():
    for name in BUILT_IN:
        assert kit_named(name).name == name
        assert kit_at(f"gumbeldore.problems.{name}.kit:KIT") is kit_named(name)


def test_an_architecture_is_named_after_its_kit_unless_it_is_the_usual_one():
    expected = ["tsp", "tsp-lehd", "atsp", "cvrp", "cvrp-lehd", "vrptw", "jssp", "fjsp", "pfsp", "op", "gomoku"]
    assert problem_names()[:11] == expected
    assert [entry(name).name for name in problem_names()] == problem_names()
    assert entry("tsp-lehd").kit is KITS["tsp"]


def test_the_class_of_a_network_is_found_by_its_name():
    assert policy_class("TSPPolicy") is TSPPolicy
    assert policy_class("NoSuchPolicy") is None


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("tps", "Unknown problem `tps`. Known: tsp, atsp, cvrp"),
        ("tsp-x", "Unknown problem `tsp-x`. Known: tsp, tsp-lehd"),
        ("nowhere.py:KIT", "There is no file nowhere.py"),
        ("no_such_module:KIT", "`no_such_module` cannot be imported: ModuleNotFoundError"),
        ("gumbeldore.problems.tsp.kit:draw", "must name a `Kit`, got function. It holds `gumbeldore.problems.tsp.kit:KIT`"),
        (":KIT", "`path/to/file.py:KIT`"),
    ],
)
def test_a_kit_that_is_not_there_gets_one_clear_line(place, message):
    with pytest.raises(SettingsError) as caught:
        entry(place)
    assert message in str(caught.value)


def test_a_file_that_fails_is_named_with_its_error(tmp_path):
    (tmp_path / "broken_kit.py").write_text("one = 1\none / 0\n")
    with pytest.raises(SettingsError, match=r"`broken_kit` cannot be imported \(broken_kit.py, line 2\): ZeroDivisionError"):
        kit_at(f"{tmp_path / 'broken_kit.py'}:KIT")


def test_a_kit_that_is_called_as_one_of_ours_is_refused(tmp_path):
    text = Path(EXAMPLES / "flow_shop.py").read_text().replace('"flowshop"', '"tsp"')
    (tmp_path / "flow_shop_by_another_name.py").write_text(text)
    with pytest.raises(SettingsError, match="is called `tsp`, as one of ours is"):
        kit_at(f"{tmp_path / 'flow_shop_by_another_name.py'}:KIT")


def test_a_file_whose_name_is_taken_is_not_confused_with_the_module(tmp_path):
    (tmp_path / "json.py").write_text("KIT = None\n")
    with pytest.raises(SettingsError, match="another module is called `json`"):
        kit_at(f"{tmp_path / 'json.py'}:KIT")


def test_a_kit_needs_a_name_and_a_network():
    with pytest.raises(SettingsError, match="must have at least one architecture"):
        Kit("empty", "nothing", KITS["tsp"].problem, {})
    with pytest.raises(SettingsError, match="must be one word, got 'two-words'"):
        Kit("two-words", "nothing", KITS["tsp"].problem, KITS["tsp"].architectures)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["generate", "--out", "x.npz"], "There are no instance files for `flowshop`: its kit leaves `instances` out."),
        (["label", "--out", "x.npz"], "There are no instance files for `flowshop`"),
        (["imitate", "--labels", "x.npz"], "There are no instance files for `flowshop`"),
    ],
)
def test_a_command_says_in_one_line_what_a_kit_lacks(command, message, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([command[0], FLOW_SHOP, *command[1:]]) == 2
    assert message in capsys.readouterr().err


def test_our_example_is_checked_trained_and_solved_from_its_file(tmp_path, capsys):
    assert main(["check", FLOW_SHOP]) == 0
    assert "8 solutions of an untrained network are confirmed by its verifier" in " ".join(capsys.readouterr().out.split())
    run = tmp_path / "run"
    assert main(["train", FLOW_SHOP, "--folder", str(run), "--workers", "2", *TINY]) == 0
    assert main(["train", FLOW_SHOP, "--folder", str(run), "--workers", "0", "--resume", "--training.epochs", "2"]) == 0
    size = ["--problem.jobs", "4", "--problem.machines", "2", "--count", "2", "--folder", str(tmp_path / "solved")]
    assert main(["solve", FLOW_SHOP, "--policy", str(run / "policy.safetensors"), *size]) == 0
    records = json.loads((tmp_path / "solved/solutions.json").read_text())
    assert [sorted(record["order"]) for record in records] == [[0, 1, 2, 3]] * 2
    assert (tmp_path / "solved/flowshop-0.png").stat().st_size > 1000


def test_settings_of_a_run_never_name_the_file_of_a_kit(tmp_path):
    """Resuming asks the user for the kit again; nothing that lies in a folder is executed."""
    assert main(["train", FLOW_SHOP, "--folder", str(tmp_path), "--workers", "0", *TINY]) == 0
    assert json.loads((tmp_path / "settings.json").read_text())["problem_name"] == "flowshop"
    assert main(["train", "flowshop", "--folder", str(tmp_path), "--resume"]) == 2


def test_neither_a_policys_header_nor_a_runs_settings_execute_a_file(tmp_path, capsys):
    """Both may come from anywhere. Only what a user types is imported."""
    trap = tmp_path / "trap_kit.py"
    trap.write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    policy, run = TSPPolicy(16, 1, 2, 32), tmp_path / "run"
    weights = {name: tensor.contiguous() for name, tensor in policy.state_dict().items()}
    for place in (f"{trap}:KIT", "trap_kit:KIT", "trap_kit.KIT"):
        header = {"format": "gumbeldore-1", "policy": place, "problem": place, "config": json.dumps(policy.config)}
        save_file(weights, tmp_path / "trap.safetensors", metadata=header)
        with pytest.raises(CheckpointError, match="is in no kit that is installed"):
            load_policy(tmp_path / "trap.safetensors")
        assert main(["solve", "tsp", "--policy", str(tmp_path / "trap.safetensors")]) == 2
        run.mkdir(exist_ok=True)
        (run / "settings.json").write_text(json.dumps({"problem_name": place}))
        (run / "checkpoint.pt").write_bytes(b"")
        assert main(["train", "tsp", "--folder", str(run), "--resume"]) == 2
        assert "These settings are not for `tsp`" in capsys.readouterr().err
    assert not (tmp_path / "executed").exists()
    with pytest.raises(SettingsError, match="must name a `Kit`"):
        kit_at(f"{trap}:KIT")
    assert (tmp_path / "executed").exists()  # so the trap works


@pytest.mark.slow
def test_an_installed_package_announces_its_kit(tmp_path):
    """A real package in an environment of its own, which sees what is installed here."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "my_flow_shop.py").write_text((EXAMPLES / "flow_shop.py").read_text())
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "my-flow-shop"\nversion = "1.0"\n[tool.setuptools]\npy-modules = ["my_flow_shop"]\n'
        '[project.entry-points."gumbeldore.kits"]\nflowshop = "my_flow_shop:KIT"\n'
    )
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env/bin/python"
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    (site / "host.pth").write_text("\n".join(path for path in sys.path if path.endswith(("site-packages", "src"))) + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, str(package)], check=True)
    run = str(tmp_path / "run")

    def gumbeldore(*arguments: str) -> str:
        code = "import sys; from gumbeldore.cli import main; sys.exit(main())"
        done = subprocess.run([str(python), "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "flowshop" in gumbeldore("train", "--help")
    gumbeldore("train", "flowshop", "--folder", run, "--workers", "0", *TINY)
    shown = gumbeldore(
        "solve", "flowshop", "--policy", f"{run}/policy.safetensors", "--problem.jobs", "4", "--problem.machines", "2"
    )
    assert "makespan" in shown
