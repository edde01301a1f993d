"""How large the project is: `python benchmarks/counts.py [TREE ...]`, a column for each checked-out tree (this one if none is named).

The settings of `train tsp` are counted by the tree's own `--help`, so its code must run: compiled parts are not needed.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path


def definitions(tree: ast.Module) -> list[str]:
    """Names that a module defines at its top: classes, functions and constants."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append(node.target.id)
    return found


def public_names(source: Path) -> int:
    """Without a leading underscore."""
    trees = (ast.parse(path.read_text()) for path in source.rglob("*.py"))
    return sum(not name.startswith("_") for tree in trees for name in definitions(tree))


def settings(tree: Path) -> int:
    """Dotted settings of `train tsp`."""
    call = [sys.executable, "-c", "import sys; from gumbeldore.cli import main; sys.exit(main(sys.argv[1:]))"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "200"}
    done = subprocess.run([*call, "train", "tsp", "--help"], capture_output=True, text=True, env=environment, check=True)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    return len({name for name in re.findall(r"--([a-z-]+\.[a-z.-]+)", shown) if not re.search(r"(^|\.)no-", name)})


def lines(files: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in files)


def counts(tree: Path) -> dict[str, int]:
    """All counts of a tree."""
    package = tree / "src/gumbeldore"
    pages = [tree / "README.md", tree / "CONTRIBUTING.md", *(tree / "docs").rglob("*.md")]
    pages = [page for page in pages if "_build" not in page.parts]
    lab = [page for page in pages if "lab" in page.parts]
    packages = sorted(path.parent for path in package.glob("*/__init__.py"))
    return {
        "public top-level names": public_names(package),
        "dotted settings of `train tsp`": settings(tree),
        "lines of Python in src": lines(list(package.rglob("*.py"))),
        "lines of C++ in src": lines([path for kind in ("*.cpp", "*.h") for path in package.rglob(kind)]),
        "words of docs": sum(len(page.read_text().split()) for page in pages),
        "of these, in the lab": sum(len(page.read_text().split()) for page in lab),
        "modules": len([path for path in package.rglob("*.py") if path.name != "__init__.py"]),
        "packages": len(packages),
        **{
            f"modules of {each.name}": len([path for path in each.rglob("*.py") if path.name != "__init__.py"])
            for each in packages
        },
    }


def main() -> None:
    columns = [counts(Path(tree)) for tree in sys.argv[1:] or [Path(__file__).parents[1]]]
    for name in dict.fromkeys(name for column in columns for name in column):
        print(f"| {name} | {' | '.join(f'{column[name]:,}' if name in column else '-' for column in columns)} |")


if __name__ == "__main__":
    main()
