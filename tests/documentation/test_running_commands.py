"""Every command that the README and the documentation print runs, at smoke scale: the sizes below instead of the page's.

What a command needs is made by the commands that the pages print, in the same way: a run to go on from, labels to learn from.
"""

from __future__ import annotations

import pickle
import re
import shlex
import shutil
from collections import OrderedDict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from printed import ROOT, commands

from gumbeldore.cli import main
from gumbeldore.policies import TSPPolicy

ONLY_PARSED = {
    "--cluster": "a Ray cluster; tests/parallel and tests/cli/test_cluster_options.py start one",
    "l50.npz": "labels of 50 and of 100 customers; learning from labels is tried with those of tours",
    "runs/rivals": "the file is another program's",
    "trained-cpu": "goes on from what an hour and a half of `reproduce` made",
}
"""By a word of the command: why it is only parsed, in test_commands.py."""

TINY = {"training.epochs": "1", "training.instances": "2", "training.batches": "1", "training.batch-size": "4"}
TINY |= {"validation.instances": "2", "workers": "0"}
SIZES = {
    "tsp": {"problem.cities": "5"},
    "atsp": {"problem.cities": "5"},
    **{name: {"problem.customers": "5"} for name in ("cvrp", "vrptw", "op")},
    "gomoku": {},
    "examples/orienteering.py:KIT": {"problem.places": "5"},
    **{name: {"problem.jobs": "3", "problem.machines": "2"} for name in ("jssp", "fjsp", "pfsp", "examples/flow_shop.py:KIT")},
}
SMALLER = {
    "solve": {"workers": "0"},
    "evaluate": {"workers": "0", "first": "1"},
    "label": {"workers": "1", "count": "2", "cities": "5", "work": "1"},
    "generate": {"count": "2"},
}
"""Options that are set, whatever the page says."""

CHEAPER = [
    (r"(beam|wr|adaptive):(\d)\d*", r"\1:\2"),
    (r"(gd|step|wor|outcome):\d+x\d+", r"\1:4x2"),
    (r"evaluations=(\d+)0\b", r"evaluations=\1"),
    (r"work=\d+", "work=2"),
    (r"cpsat:\d+s", "cpsat:work=5"),
    (r":\d+s\b", ":1s"),
    (r"preset:fast", "adaptive:4"),
    (r"preset:(balanced|best)", "adaptive:8"),
]
"""Of samplers and baselines."""

NEEDED = {
    "runs/paper": "train tsp --preset paper --folder runs/paper",
    "labels.npz": "label tsp --cities 5 --count 2 --solver gumbeldore --work 1 --out labels.npz",
    "runs/second": "train tsp --preset plain --folder runs/second",
    "runs/small": "train tsp --folder runs/small",
    "runs/imitation": "train cvrp --folder runs/imitation",
    "runs/cvrp20": "train cvrp --preset small --folder runs/cvrp20",
    "runs/evaluate": "evaluate tsp --sets tsp20 --policies tsp-small --folder runs/evaluate",
}
"""Commands for what pages take as given."""


def smaller(words: list[str]) -> list[str]:
    """The same command at smoke scale."""
    command, problem = words[0], words[1] if len(words) > 1 else ""
    changes = dict(SMALLER.get(command, {}))
    if command in ("train", "imitate"):
        changes = {**TINY, **({} if "--resume" in words else SIZES[problem])}
        changes |= {} if command == "imitate" or "--resume" in words or "--sampler" in words else {"sampler": "gd:2x2"}
    if command == "solve":
        changes |= {} if "--sampler" in words else {"time-limit": "0.2"}
        changes |= {"count": "2"} if "--count" in words else {}
    if command == "reproduce" and problem:  # its smallest scale takes minutes
        changes = {"scale": "smoke"}
        words += ["--plan"] if "--plan" not in words else []
    for name, value in changes.items():
        if command == "imitate" and name in ("training.instances", *SIZES[problem]):
            continue
        if f"--{name}" in words:
            words[words.index(f"--{name}") + 1] = value
        else:
            words += [f"--{name}", value]
    if "--sets" in words:  # the first one alone
        first = words.index("--sets") + 2
        last = next((place for place in range(first, len(words)) if words[place].startswith("--")), len(words))
        del words[first:last]
    return [word if word.startswith("runs/") else cheaper(word) for word in words]


def cheaper(word: str) -> str:
    for pattern, instead in CHEAPER:
        word = re.sub(pattern, instead, word)
    return word


def own(words: list[str]) -> str:
    """What a command writes."""
    return next((words[words.index(name) + 1] for name in ("--folder", "--out") if name in words), "")


def needs(words: list[str]) -> list[str]:
    """What it reads and no clone has: runs and files made by other commands."""
    found = [match[0] for word in words for match in [re.match(r"runs/[\w-]+|[\w-]+\.(npz|pt|pickle)$", word)] if match]
    return sorted({each for each in found if each != own(words) or "--resume" in words})


@cache
def made(name: str, shelf: Path) -> Path:
    """What a command needs, made by the first command that writes it."""
    place = shelf / name.replace("/", "-")
    place.mkdir()
    if name.endswith(".pt"):
        torch.save({"best_model_weights": OrderedDict(TSPPolicy(d=128, layers=1, heads=8, ff=64).state_dict())}, place / name)
    elif name.endswith(".pickle"):
        square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
        record = {"inst": square, "tour": [0, 1, 2, 3], "sol": np.float64(4.0)}
        (place / name).write_bytes(pickle.dumps([record]))
    else:
        printed = [shlex.split(line) for line in [*NEEDED.values(), *commands()]]
        command = next(words for words in printed if own(words) == name and "--resume" not in words)
        run(command, place, shelf)
    return place / name


def run(words: list[str], place: Path, shelf: Path) -> None:
    """A command in a folder with what it needs."""
    for name in ("docs", "examples", "tests"):
        (place / name).symlink_to(ROOT / name)
    for file in (ROOT / "tests/data/instances").iterdir():
        shutil.copy(file, place)
    for name in needs(words):
        target, source = place / name, made(name, shelf)
        target.parent.mkdir(exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    with pytest.MonkeyPatch.context() as changed:
        changed.chdir(place)
        assert main(smaller(list(words))) in (None, 0)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("made")


def left_out(line: str) -> str | None:
    return next((reason for word, reason in ONLY_PARSED.items() if word in line), None)


@pytest.mark.parametrize("line", [line for line in commands() if left_out(line) is None])
def test_a_printed_command_runs(line, shelf, tmp_path):
    if "--baselines" in line:
        pytest.importorskip("pyvrp")
    run(shlex.split(line), tmp_path, shelf)


def test_every_reason_is_needed():
    assert all(any(word in line for line in commands()) for word in ONLY_PARSED)
