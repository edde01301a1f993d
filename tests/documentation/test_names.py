"""What the pages say of the code is there: functions, tests, and messages."""

from __future__ import annotations

import importlib
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
METHOD = (ROOT / "docs/explanation/method.md").read_text().partition("## ")[0]
MESSAGES = (ROOT / "docs/how-to/troubleshoot.md").read_text()


def found(name: str) -> object:
    """What a dotted name below `gumbeldore` stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(["gumbeldore", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(f"there is no gumbeldore.{name}")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", METHOD))))
def test_an_equation_is_implemented_where_the_page_says(name):
    assert found(name) is not None


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_/]+/test_\w+\.py)`", METHOD))))
def test_an_equation_is_tested_where_the_page_says(name):
    assert (ROOT / "tests" / name).exists()


@cache
def strings() -> str:
    """All strings of the source, those that stand side by side joined, without the marks of formatting."""
    joined: list[str] = []
    for path in sorted((ROOT / "src/gumbeldore").rglob("*.py")):
        with path.open("rb") as file:
            joined.append("\n")
            for token in tokenize.tokenize(file.readline):
                if token.type == tokenize.STRING:
                    joined.append(re.sub(r"^[frb]*(\"\"\"|\"|')(.*)\1$", r"\2", token.string, flags=re.DOTALL))
                elif token.type not in (tokenize.NL, tokenize.COMMENT):
                    joined.append("\n")
    return "".join(joined)


@pytest.mark.parametrize("message", re.findall(r"^\| `([^`]+)` \|", MESSAGES, re.MULTILINE))
def test_a_message_of_the_troubleshooting_page_is_in_the_source(message):
    assert message in strings()


@cache
def identifiers() -> set[str]:
    """All names in the source, and its folders and files."""
    root = ROOT / "src/gumbeldore"
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*")]
    words = {word for path in root.rglob("*.py") for word in re.findall(r"\w+", path.read_text())}
    return words | {*paths, *(f"{path}/" for path in paths)}


def of_the_glossary() -> list[str]:
    """What its last column names."""
    rows = re.findall(r"^\| (?!term|word).*\| ([^|]*) \|$", (ROOT / "docs/reference/glossary.md").read_text(), re.MULTILINE)
    return sorted({name for cell in rows for name in re.findall(r"`([^`]+)`", cell)})


@pytest.mark.parametrize("name", of_the_glossary())
def test_the_glossary_names_what_the_code_has(name):
    words = [name] if "/" in name else re.split(r"[. ]", name.rstrip("=").replace("-", "_"))
    assert set(words) <= identifiers()


def test_the_glossary_names_something():
    assert len(of_the_glossary()) > 30
