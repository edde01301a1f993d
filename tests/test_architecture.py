"""Who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
ENGINE = ["problem", "policy", "gumbel", "trie", "evaluator", "search", "samplers", "replacement", "advantage", "solutions"]


def file_of(module: str) -> Path | None:
    base = SOURCE.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def imports(module: str) -> set[str]:
    """The package's own modules that a module imports anywhere in its text, not those of its parent packages."""
    path = file_of(module)
    assert path is not None
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            levels = package.split(".")
            prefix = ".".join(levels[: len(levels) - node.level + 1]) + "." if node.level else ""
            origin = (prefix + (node.module or "")).rstrip(".")
            found |= {origin} | {f"{origin}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "gumbeldore" and name != "gumbeldore" and file_of(name)}


def reachable(module: str) -> set[str]:
    seen, todo = set(), [module]
    while todo:
        for name in imports(todo.pop()) - seen:
            seen.add(name)
            todo.append(name)
    return seen


@pytest.mark.parametrize("name", ENGINE)
def test_the_engine_imports_no_problem_and_no_network(name):
    assert not {m for m in reachable(f"gumbeldore.{name}") if m.split(".")[1] in ("problems", "policies", "training", "cli")}


def test_the_walk_over_imports_sees_them():
    """Otherwise the test above could not fail."""
    assert "gumbeldore.gumbel" in reachable("gumbeldore.samplers")
    assert "gumbeldore.trie" in imports("gumbeldore.search")
    assert any(m.startswith("gumbeldore.") for m in imports("gumbeldore.problems.tsp"))


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("gumbel", "trie"), ("trie", "search"), ("search", "samplers"), ("problem", "search"), ("advantage", "samplers")],
)
def test_imports_point_one_way(lower, higher):
    assert f"gumbeldore.{lower}" in reachable(f"gumbeldore.{higher}")
    assert f"gumbeldore.{higher}" not in reachable(f"gumbeldore.{lower}")


def test_importing_the_package_loads_nothing_heavy_and_prints_nothing():
    heavy = ["tyro", "rich", "matplotlib", "ortools", "pydantic", "scipy", "pandas"]
    code = f"import sys, torch; before = set(sys.modules); import gumbeldore; print([m for m in {heavy} if m in set(sys.modules) - before])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_importing_the_package_does_not_touch_global_randomness_or_gradients():
    code = (
        "import torch; torch.manual_seed(5); a = torch.get_rng_state(); threads = torch.get_num_threads(); import gumbeldore;"
        "assert torch.equal(a, torch.get_rng_state()) and torch.is_grad_enabled() and threads == torch.get_num_threads();"
        "assert torch.get_default_dtype() == torch.float32"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
