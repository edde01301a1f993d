"""Wrong input, as a user types it: one line that names it, and no traceback."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import SMALL, new_run, words

from gumbeldore.cli import main
from gumbeldore.training.checkpoint import load_state, save_state

pytestmark = pytest.mark.usefixtures("no_pictures")

TRAIN = ["train", "tsp", "--folder", "new", "--training.epochs", "1", *SMALL]
JSSP, GOMOKU, LEHD = (["train", problem, "--folder", "new", "--workers", "0"] for problem in ("jssp", "gomoku", "tsp-lehd"))
RESUME = ["train", "tsp", "--resume", "--training.epochs", "3", "--workers", "0", "--folder"]
GENERATE = ["generate", "tsp", "--out"]
LABEL = ["label", "tsp", "--count", "2", "--cities", "5", "--out"]
IMITATE = ["imitate", "tsp", "--folder", "new", "--labels"]
HUGE = str(10**30)

WRONG: list[tuple[list[str], str]] = [
    *[([*TRAIN, "--device", name], f"`device` must be auto, cpu, .* got '{name}'") for name in ("gpu", "cuda:77", "meta", "cpu:x", "")],
    *[([*TRAIN, f"--policy.{name}", "0"], f"`{name}` must be at least 1, got 0") for name in ("d", "layers", "heads", "ff")],
    *[([*JSSP, f"--policy.{name}", "-1"], f"`{name}` must be at least 1, got -1") for name in ("d", "pairs", "heads", "ff")],
    *[([*GOMOKU, f"--policy.{name}", "0"], "must be at least 1, got 0") for name in ("channels", "blocks", "head-channels", "hidden")],
    ([*LEHD, "--policy.layers", "-1"], "`layers` must be at least 1, got -1"),
    ([*TRAIN, "--policy.heads", "3"], "`d` must be a multiple of `heads`"),
    ([*TRAIN, "--policy.features", "frames"], "`features`: unknown `frames`. Known: distance-bias, frame, bounds"),
    ([*TRAIN, "--policy.features", "bounds:tries=many"], "`features`: `tries` of `bounds` must be a whole number, got 'many'"),
    ([*TRAIN, "--policy.features", "frame", "frame"], "`features` must differ, but `frame` comes twice"),
    ([*TRAIN, "--policy.features", "distance-bias", "--policy.heads", "8"], "`distance-bias` needs heads of a width of at least 3"),
    ([*JSSP, "--policy.successor-weight", "-1"], "`successor_weight` must be a number from 0 on"),
    ([*TRAIN, "--policy.d", "100000000"], "Memory ran out"),
    ([*TRAIN, "--training.seed", "-1"], "`seed` must lie in 0 .*got -1"),
    ([*TRAIN, "--training.seed", HUGE], "`seed` must lie in 0"),
    ([*TRAIN, "--training.instances", str(10**13)], "Memory ran out"),
    ([*TRAIN, "--training.instances", HUGE], "Memory ran out"),
    ([*TRAIN, "--validation.instances", str(10**13)], "Memory ran out"),
    ([*TRAIN, "--validation.instances", HUGE], "Memory ran out"),
    ([*TRAIN, "--problem.cities", "100000000000"], "Memory ran out"),
    ([*TRAIN, "--problem.cities", HUGE], "Memory ran out"),
    ([*TRAIN, "--training.learning-rate", "nan"], "`learning_rate` must be a positive number"),
    ([*TRAIN, "--max-time", "soon"], "must be a time like 90s"),
    ([*TRAIN, "--workers", "-1"], "`workers` must be at least 0"),
    (["train", "tsp", "--folder", "file", *SMALL], "`--folder` must be where files can be written"),
    (["train", "tsp", "--folder", "file/below", *SMALL], "`--folder` must be where files can be written"),
    (["train", "tsp", "--folder", "x" * 300, *SMALL], "`--folder` must be where files can be written"),
    *[([*TRAIN, "--settings", f"{name}.json"], f"{name}.json") for name in ("list", "cut", "binary", "deep", "none")],
    ([*TRAIN, "--settings", "seed.toml"], "`seed` must lie in 0 .*got -1"),
    ([*TRAIN, "--settings", "text.toml"], r"`training.epochs` must be of type int"),
    ([*TRAIN, "--settings", "null.json"], "`training`"),
    (["train", "--settings", "null.json"], "Name a problem"),
    *[([*TRAIN, "--from", name], name) for name in ("file", "none", "run/checkpoint.pt")],
    ([*TRAIN, "--preset", ""], "Unknown preset `` for tsp"),
    ([*RESUME, "none"], "no checkpoint in none"),
    *[([*RESUME, f"without_{key}"], f"`{key}` is missing") for key in ("settings", "epoch", "policy", "optimizer", "generator", "dataset")],
    *[([*RESUME, f"wrong_{key}"], "does not fit this run|must be a table") for key in ("settings", "epoch", "policy", "generator")],
    ([*RESUME, "strange"], "is not a checkpoint of this library"),
    *[([*GENERATE, name], "`--out` must be where files can be written") for name in ("file/a.npz", "file/a/b.npz")],
    ([*GENERATE, "a.txt"], r"`out` must end in .npz"),
    ([*GENERATE, "folder.npz"], "exists already"),
    *[([*GENERATE, "a.npz", "--count", count], "too many, or too large") for count in (str(10**12), str(10**18), HUGE)],
    (["generate", "cvrp", "--out", "a.npz", "--count", str(10**12)], "too many, or too large"),
    (["generate", "jssp", "--out", "a.npz", "--count", str(10**12)], "too many, or too large"),
    ([*GENERATE, "a.npz", "--seed", "-1"], "`seed` must lie in 0"),
    ([*LABEL, "file/a.npz"], "`--out` must be where files can be written"),
    ([*LABEL, "a.npz", "--count", str(10**12)], "too many, or too large"),
    ([*LABEL, "a.npz", "--workers", "0"], "`workers` must be at least 1"),
    ([*LABEL, "a.npz", "--solver", "magic"], "`solver` for tsp must be"),
    *[([*IMITATE, f"{name}.npz"], f"{name}.npz cannot be read") for name in ("empty", "text", "objects")],
    ([*IMITATE, "folder.npz"], r"no file of instances folder.npz"),
    (["demo", "--folder", "file"], "`--folder` must be where files can be written"),
    (["demo", "--folder", "run", "--fresh"], "--fresh removes the files of a demonstration"),
    (["demo", "--sampled", "0"], "`sampled`"),
    (["demo", "--instances", str(10**13)], "too many, or too large, instances"),
    (["check", "tsp", "--seed", "-1"], "`seed` must lie in 0"),
    (["check", "tsp", "--diverged", "run/checkpoint.pt"], "holds no step that diverged"),
    (["check", "tsp", "--diverged", "none"], "no checkpoint none"),
    (["check", "absent.py:KIT"], "absent.py"),
    (["check", ":"], ":"),
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_pictures) -> Path:
    """A folder with a run and many strange files."""
    folder = tmp_path_factory.mktemp("wrong")
    assert new_run(folder / "run", 2) == 0
    (folder / "file").write_text("a file")
    texts = {"list.json": "[1]", "cut.json": "{", "deep.json": "[" * 100_000, "null.json": '{"training": null}'}
    texts |= {
        "seed.toml": "[training]\nseed = -1",
        "text.toml": '[training]\nepochs = "x"',
        "text.npz": "hello",
        "empty.npz": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "binary.json").write_bytes(bytes(range(128, 256)))
    (folder / "folder.npz").mkdir()
    np.savez(folder / "objects.npz", format=np.array({"a": 1}, dtype=object))
    state = load_state(folder / "run" / "checkpoint.pt")
    for key in ("settings", "epoch", "policy", "optimizer", "generator", "dataset"):
        _with_checkpoint(folder, f"without_{key}", {name: value for name, value in state.items() if name != key})
        _with_checkpoint(folder, f"wrong_{key}", {**state, key: "strange"})
    shutil.copytree(folder / "run", folder / "strange")
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        torch.save({"a": 1}, folder / "strange" / name)
    return folder


def _with_checkpoint(folder: Path, name: str, state: dict[str, object]) -> None:
    shutil.copytree(folder / "run", folder / name)
    save_state(folder / name / "checkpoint.pt", state)


@pytest.mark.parametrize(
    ("arguments", "message"), WRONG, ids=lambda value: " ".join(value)[:90] if isinstance(value, list) else ""
)
@pytest.mark.usefixtures("unchecked")
def test_wrong_input_is_named_in_one_line(place, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(place)
    before = sorted(os.listdir())
    try:
        code = main(list(arguments))
    except SystemExit as stop:  # the parser's own way
        code = stop.code
    shown = capsys.readouterr()
    error = words(shown.err)
    assert code == 2, words(shown.out)
    assert re.search(message, words(re.sub(r"[│╭╮╰╯─|]|-{4,}", "", error))), error
    for word in ("Traceback", "weights_only", "allow_pickle", "RuntimeError"):
        assert word not in error
    assert set(os.listdir()) - set(before) <= {"new"}
    shutil.rmtree("new", ignore_errors=True)
