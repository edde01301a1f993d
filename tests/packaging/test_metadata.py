"""Versions agree, extras exist, and workflows call targets that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_the_citation_names_the_version_of_the_package():
    assert f"version: {PROJECT['version']}" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{PROJECT['version']}}}" in (ROOT / "docs/reference/citing.md").read_text()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_the_makefile_has(workflow):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"run: make ([a-z-]+)", workflow.read_text())) <= targets


def test_extras_that_pages_name_exist():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("[!_]*/*.md")]
    named = {
        name for page in pages for names in re.findall(r"gumbeldore\[([\w,]+)\]", page.read_text()) for name in names.split(",")
    }
    assert named
    assert named <= set(PROJECT["optional-dependencies"])


def test_type_checkers_are_told_that_the_package_is_typed():
    assert (ROOT / "src/gumbeldore/py.typed").is_file()
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["gumbeldore"]
    assert "py.typed" in data
