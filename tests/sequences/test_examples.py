"""The examples do what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_of_a_function_finds_a_palindrome(capsys):
    assert loaded("sequences_function").main() > 5
    assert "mean length" in capsys.readouterr().out


def test_the_example_of_a_gru_learns(capsys):
    module = loaded("sequences_gru")
    assert module.main(epochs=3) > 5
    assert "epoch 3" in capsys.readouterr().out


def test_the_example_of_a_gpt2_gives_different_samples(capsys):
    pytest.importorskip("transformers")
    assert loaded("sequences_gpt2").main() == 8
    assert "64 different strings" in capsys.readouterr().out


def test_the_notebook_runs_from_top_to_bottom(capsys):
    notebook = (EXAMPLES.parent / "docs" / "notebooks" / "sequences.md").read_text()
    names: dict[str, object] = {}
    for cell in notebook.split("```{code-cell} python3\n")[1:]:
        exec(cell.split("```")[0], names)
    assert "mean length" in capsys.readouterr().out


def test_the_first_lines_of_the_page_run():
    page = (EXAMPLES.parent / "docs" / "how-to" / "sequences.md").read_text()
    names: dict[str, object] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    assert len(names["samples"]) == 128
