"""Every block of Python on every page runs, at smoke scale. Notebooks run when the site is built."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "generated", "jupyter_execute"} & set(page.parts)]

GPT2 = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(vocab_size=5, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0, pad_token_id=0))
inputs = {"input_ids": torch.tensor([[1, 2]]), "attention_mask": torch.ones(1, 2, dtype=torch.long)}
"""
"""A model of transformers."""

SEQUENCES = """
from examples.sequences_gru import GRU


class tokenizer:
    batch_decode = staticmethod(lambda sequences, skip_special_tokens: [str(tokens) for tokens in sequences])


network, prompt_ids, other_ids, score_of_strings = GRU(5), [1, 2], [3], lambda texts: [float(len(text)) for text in texts]
"""

BEFORE = {
    "README.md": GPT2
    + "log_probs = lambda prefixes: torch.zeros(len(prefixes), 5)\nscore = lambda sequences: [float(len(s)) for s in sequences]",
    "docs/how-to/sequences.md": GPT2 + SEQUENCES,
    "docs/how-to/solve.md": "from gumbeldore.kits.registry import kit_named\nkit = kit_named('jssp')\ntimes, machines = [[1, 2], [2, 1]], [[0, 1], [1, 0]]",
    "docs/how-to/compare.md": "import pathlib, shutil\npathlib.Path('my-shops').mkdir()\nshutil.copy('ft06.txt', 'my-shops')",
    "docs/how-to/own-problem.md": "from examples.flow_shop import *",
    "docs/reference/files.md": "import torch\ncoordinates = torch.rand(2, 5, 2).double().numpy()\ntours = [[0, 2, 1, 4, 3]] * 2",
    "docs/reference/formats.md": "actions = list(range(1, 52))",
}
"""What a page takes for granted."""

SMALLER = {
    "docs/how-to/sequences.md": [
        ("max_new_tokens=40", "max_new_tokens=4"),
        ("epochs=6, instances=32, batches=30", "epochs=1, instances=2, batches=2"),
    ],
    "README.md": [
        ("max_length=40", "max_length=4"),
        ("max_new_tokens=40", "max_new_tokens=4"),
        (
            '"runs/first", epochs=5',
            '"runs/first", preset="plain", epochs=1, problem={"cities": 5}, policy={"d": 8, "heads": 2, "layers": 1, "ff": 8}, training={"instances": 2, "batches": 1, "batch_size": 2}, validation={"instances": 2}, workers=0',
        ),
        ("cities=20", "cities=5"),
        ("d=64, layers=3, ff=256", "d=8, layers=1, ff=8"),
        ("generate(500", "generate(4"),
        ("epochs=5, instances=100, batches=100, batch_size=256", "epochs=1, instances=2, batches=1, batch_size=2"),
    ],
    "docs/how-to/compare.md": [
        ("repeats=5", "repeats=1"),
        ("workers=2", "workers=0"),
        ('"taillard-15x15")', '"taillard-15x15", first=1)'),
        ("Gumbeldore(32, 4", "Gumbeldore(2, 2"),
    ],
    "docs/how-to/solve.md": [("time_limit=60", "time_limit=0.2"), ("workers=2", "time_limit=0.3")],
}
"""Sizes that a test cannot wait for."""

NEEDS_MACHINES = {"docs/notebooks/cluster.md"}


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code(page: Path) -> str:
    """All of a page's Python, made small."""
    text = "\n".join(blocks(page, "python"))
    for large, small in SMALLER.get(named(page), []):
        assert large in text, f"{named(page)} no longer holds {large!r}: change SMALLER"
        text = text.replace(large, small)
    return text


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder with what pages name."""
    shutil.copytree(ROOT / "tests/data/instances", tmp_path / "tests/data/instances")
    for file in (ROOT / "tests/data/instances").iterdir():
        shutil.copy(file, tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
@pytest.mark.slow
def test_python_runs(page, place):
    text = f"{BEFORE.get(named(page), '')}\n{code(page)}"
    compile(text, named(page), "exec")
    if named(page) not in NEEDS_MACHINES:
        exec(compile(text, named(page), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=named)
def test_toml_can_be_read(page):
    for block in blocks(page, "toml"):
        tomllib.loads(block)


def test_every_page_with_python_is_known():
    assert {*BEFORE, *SMALLER, *NEEDS_MACHINES} <= {named(page) for page in PAGES if blocks(page, "python")}
