"""Who may import whom."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import gumbeldore

SOURCE = Path(__file__).resolve().parents[1] / "src"
CONTRACTS = ["errors", "problem", "policy", "solutions", "hashing", "files", "figure", "memory", "bars"]
"""What everyone may import."""


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


def modules(room: str) -> list[str]:
    """All modules of a room, or the one file at the top of that name."""
    if (SOURCE / "gumbeldore" / f"{room}.py").is_file():
        return [f"gumbeldore.{room}"]
    paths = (SOURCE / "gumbeldore" / room).rglob("*.py")
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in paths]


def rooms(module: str) -> set[str]:
    """The rooms and top-level files that a module needs, directly or through others."""
    return {name.split(".")[1] for name in reachable(module)}


ARROW = {
    "search": set(),
    "networks": set(),
    "local_search": set(),
    "conformance": set(),
    "parallel": set(),
    "training": {"search", "parallel"},
    "sequences": {"search", "training"},
    "kits": {"training"},  # a set of labelled instances can turn itself into training's `Dataset`
    "solvers": {"kits"},
    "io": {"kits"},
    "problems": {"kits", "io", "solvers", "networks", "local_search"},
    "policies": {"networks", "problems"},
    "solving": {"kits", "io", "search", "parallel", "local_search", "networks"},
    "evaluation": {"kits", "io", "search", "parallel", "training", "solving"},
    "runs": {"kits", "io", "search", "parallel", "training", "networks", "local_search", "conformance"},
    "reproduction": {"kits", "io", "search", "evaluation", "training", "solving", "runs"},
}
"""What each package imports itself, beside the contracts and itself. The command line may import everything."""


FACADES = {"gumbeldore.kits"}
"""Where names of several packages can be imported from, each when it is first used."""


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_contract_knows_only_contracts(contract):
    assert rooms(f"gumbeldore.{contract}") <= set(CONTRACTS)


@pytest.mark.parametrize("room", ARROW)
def test_imports_follow_the_arrow(room):
    names = set(modules(room)) - FACADES
    assert names
    for name in names:
        beyond = {m for m in imports(name) if m.split(".")[1] not in {room, *CONTRACTS, *ARROW[room]}}
        assert not beyond, name


def test_the_arrow_points_one_way():
    """No two packages import each other, directly or through others."""
    below = {room: set(known) for room, known in ARROW.items()}
    for _ in below:
        below = {room: known.union(*(below[each] for each in known)) for room, known in below.items()}
    assert not [room for room, known in below.items() if room in known]


@pytest.mark.parametrize("room", ["search", "networks", "conformance", "parallel", "local_search", "training"])
def test_the_engine_knows_no_problem(room):
    for name in modules(room):
        assert rooms(name) <= {"search", "networks", "conformance", "parallel", "local_search", "training", *CONTRACTS}, name


def test_every_room_is_walked():
    """A new package, or a new file at the top, needs a rule here."""
    known = {*ARROW, "cli", "start", "__init__", "__main__", *CONTRACTS}
    found = {
        path.stem for path in (SOURCE / "gumbeldore").iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert found - {"problems"} == known - {"problems"}


@pytest.mark.parametrize("room", sorted(path.name for path in (SOURCE / "gumbeldore/problems").iterdir() if path.is_dir()))
def test_a_problem_knows_no_other_problem(room):
    for name in modules(f"problems/{room}") if room != "__pycache__" else []:
        strangers = {m for m in imports(name) if file_of(m) and m.split(".")[1:2] == ["problems"] and m.count(".") >= 2}
        folders = {m.split(".")[2] for m in strangers if (SOURCE / "gumbeldore/problems" / m.split(".")[2]).is_dir()}
        assert folders <= {room}, name


@pytest.mark.parametrize("room", ["evaluation", "solving", "runs", "reproduction", "cli"])
def test_problems_are_known_by_their_kits_only(room):
    for name in modules(room):
        own = {module.split(".")[2] for module in imports(name) if module.startswith("gumbeldore.problems.")}
        assert not [room for room in own if (SOURCE / "gumbeldore/problems" / room).is_dir()], name


def test_the_walk_over_imports_sees_them():
    """Otherwise the tests above could not fail."""
    assert "gumbeldore.search.gumbel" in reachable("gumbeldore.search.samplers")
    assert "gumbeldore.search.trie" in imports("gumbeldore.search.expansion")
    assert "gumbeldore.problems.tsp.problem" in reachable("gumbeldore.problems.tsp.kit")
    assert {"networks", "problem"} <= rooms("gumbeldore.problems.tsp.bq")


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("search.gumbel", "search.trie"),
        ("search.trie", "search.expansion"),
        ("search.expansion", "search.samplers"),
        ("problem", "search.expansion"),
        ("search.advantage", "search.samplers"),
    ],
)
def test_imports_point_one_way(lower, higher):
    assert f"gumbeldore.{lower}" in reachable(f"gumbeldore.{higher}")
    assert f"gumbeldore.{higher}" not in reachable(f"gumbeldore.{lower}")


HEAVY = ["torch", "numpy", "tyro", "rich", "matplotlib", "tensorboard", "ortools", "pydantic", "scipy", "pandas"]


def test_importing_the_package_loads_nothing_heavy_and_prints_nothing():
    code = f"import sys; import gumbeldore; print([m for m in {HEAVY} if m in sys.modules])"
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


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []], ids=str)
def test_version_and_help_load_nothing_heavy(arguments):
    code = (
        "import sys; from gumbeldore.cli import main; code = main(sys.argv[1:]);"
        f"sys.exit(code or any(m in sys.modules for m in {HEAVY}))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_every_public_name_is_there_and_type_checkers_are_told_the_same():
    tree = ast.parse((SOURCE / "gumbeldore" / "__init__.py").read_text())
    told = {
        (str(node.module).removeprefix("gumbeldore."), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("gumbeldore.")
        for alias in node.names
    }
    assert told == {(home, name) for home, names in gumbeldore.HOMES.items() for name in names}
    for name in gumbeldore.__all__:
        assert getattr(gumbeldore, name) is not None
    assert gumbeldore.__version__
    assert set(gumbeldore.__all__) <= set(dir(gumbeldore))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gumbeldore.nonsense


@pytest.mark.parametrize("command", ["train", "imitate", "evaluate"])
def test_what_a_command_does_python_can_do_without_the_command_line(command):
    code = f"import sys, gumbeldore; gumbeldore.{command}; sys.exit('gumbeldore.cli' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


LONELY = 60
"""So many names may be public although only their own module uses them."""


def test_what_only_its_own_module_uses_is_private():
    """Functions and constants; a word in another file of code, or on a page, is a use."""
    root = SOURCE.parent
    files = [path for folder in ("src", "tests", "benchmarks", "examples", "docs") for path in (root / folder).rglob("*.*")]
    texts = {path: path.read_text() for path in files if path.suffix in (".py", ".md", ".toml") and "_build" not in path.parts}
    words = {path: set(re.findall(r"[A-Za-z_]\w*", text)) for path, text in texts.items()}
    used = Counter(word for found in words.values() for word in found)
    lonely = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in texts
        if path.suffix == ".py" and path.is_relative_to(SOURCE) and "template" not in path.parts
        for node in ast.parse(texts[path]).body
        for name in defined(node)
        if used[name] == 1 and not name.startswith("_") and len(name) > 1
    ]
    assert len(lonely) <= LONELY, "Give them a leading underscore:\n" + "\n".join(lonely)


def defined(node: ast.stmt) -> list[str]:
    """Functions and constants that a statement at the top of a module defines."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]


def test_the_design_page_names_files_that_are_there():
    page = (SOURCE.parent / "docs/development/design.md").read_text()
    tree = page.split("```")[1]
    package, missing = "", []
    for line in tree.splitlines():
        if found := re.match(r"  (\w+)/", line):
            package = found[1]
            missing += [] if (SOURCE / "gumbeldore" / package).is_dir() else [package]
        places = [SOURCE / "gumbeldore", SOURCE / "gumbeldore" / package]
        missing += [name for name in re.findall(r"\w+\.py", line) if not any((place / name).is_file() for place in places)]
    assert missing == []
    assert {path.parent.name for path in (SOURCE / "gumbeldore").glob("*/__init__.py")} <= set(re.findall(r"\n  (\w+)/", tree))
