"""Deliberate faults, one at a time: which of them do the tests not notice?

    python benchmarks/mutation.py search --sample 40
    python benchmarks/mutation.py src/gumbeldore/search/reconstruction.py --all

A mutant is a copy of the package with one change: a comparison the other way or off by its edge, a number that is one more, a term or a
factor left out, plus for minus, the largest for the smallest, `and` for `or`, a condition that is always true. The tests that belong to the
file (`TESTS`) run against it and stop at the first that fails. What survives is listed: write a test that fails, or say why it may stay.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch  # noqa: F401 - once for all copies of this process

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "src" / "gumbeldore"
SECONDS = 300
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.dont_write_bytecode = True

TESTS = {
    "search/reconstruction.py": ["tests/search/test_reconstruction.py"],
    "search/phases.py": ["tests/search/test_counts.py", "tests/search/test_auto.py", "tests/search/test_reconstruction.py"],
    "search/settings.py": ["tests/cli/test_method_names.py", "tests/runs/test_records.py"],
    "search/memory.py": ["tests/search/test_memory.py", "tests/search/test_search.py"],
    "search/augmentation.py": ["tests/search/test_augmentation.py"],
    "search/auto.py": ["tests/search/test_auto.py"],
    "search/stepping.py": ["tests/search/test_stepping.py"],
    "search/following.py": ["tests/search/test_stepping.py", "tests/search/test_auto.py"],
    "search/advantage.py": ["tests/search/test_update.py"],
    "search/scores.py": ["tests/search/test_ties.py", "tests/search/test_augmentation.py", "tests/search/test_sampling_law.py"],
    "search/gumbel.py": ["tests/search/test_gumbel.py", "tests/search/test_sampling_law.py"],
    "search/trie.py": ["tests/search/test_gumbel.py", "tests/search/test_search.py", "tests/search/test_update.py"],
    "search/expansion.py": [
        "tests/search/test_search.py",
        "tests/search/test_counts.py",
        "tests/search/test_transpositions.py",
    ],
    "search/evaluator.py": ["tests/test_errors.py", "tests/search/test_counts.py"],
    "search/replacement.py": ["tests/search/test_counts.py", "tests/search/test_search.py"],
    "search/samplers.py": ["tests/test_errors.py", "tests/search/test_memory.py", "tests/search/test_search.py"],
    "search/deadline.py": ["tests/search/test_deadline.py"],
    "search": ["tests/search"],
    "evaluation/statistics.py": ["tests/evaluation/test_statistics.py"],
    "problems/tsp/verify.py": ["tests/problems/test_verification.py"],
    "problems/cvrp/verify.py": ["tests/problems/test_verification.py"],
    "problems/jssp/verify.py": ["tests/problems/jssp/test_jssp_verifier.py"],
    "problems/tsp/files.py": ["tests/problems/tsp/test_tsp_files.py", "tests/io/test_tsplib.py", "tests/io/test_best_known.py"],
    "problems/cvrp/files.py": ["tests/problems/cvrp/test_cvrp_files.py", "tests/io/test_tsplib.py"],
    "problems/jssp/files.py": ["tests/problems/jssp/test_jssp_files.py"],
    "problems/jssp/bounds.py": ["tests/problems/jssp/test_bounds.py"],
    "problems/cvrp/savings.py": ["tests/problems/cvrp/test_savings.py"],
    "problems/fjsp/verify.py": ["tests/problems/fjsp/test_fjsp_verifier.py"],
    "problems/fjsp": ["tests/problems/fjsp/test_fjsp.py"],
    "problems/pfsp": ["tests/problems/pfsp/test_pfsp.py"],
    "local_search/tours.py": ["tests/local_search/test_tours.py", "tests/local_search/test_boundary.py"],
    "local_search/routes.py": ["tests/local_search/test_routes.py", "tests/local_search/test_boundary.py"],
    "local_search/schedules.py": ["tests/local_search/test_schedules.py", "tests/local_search/test_boundary.py"],
    "local_search/distances.py": ["tests/local_search/test_tours.py", "tests/local_search/test_boundary.py"],
    "local_search": ["tests/local_search", "tests/problems/fjsp/test_fjsp_search.py", "tests/problems/pfsp/test_pfsp.py"],
    "problems/tsp": ["tests/problems/tsp/test_tsp.py", "tests/problems/test_precision.py"],
    "problems/cvrp": ["tests/problems/cvrp/test_cvrp.py", "tests/problems/test_precision.py"],
    "problems/jssp": ["tests/problems/jssp/test_jssp.py"],
    "problems/gomoku": ["tests/problems/gomoku/test_gomoku.py"],
}
"""Which tests belong to a file: the longest beginning of its path counts."""

COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
NAMED = {
    "max": "min",
    "min": "max",
    "amax": "amin",
    "amin": "amax",
    "any": "all",
    "all": "any",
    "ceil": "floor",
    "cumsum": "cumprod",
}


@dataclass(frozen=True)
class Mutant:
    """A file with one fault."""

    file: Path
    line: int
    fault: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(PACKAGE)}:{self.line}  {self.fault}"


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The faults of a single node, by name."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        yield "comparison", ast.Compare(node.left, [COMPARED[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    if isinstance(node, ast.BinOp):
        if type(node.op) in SWAPPED:
            yield "another operator", ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.BitAnd):
            yield "without its second term", node.left
    if isinstance(node, ast.BoolOp):
        yield "and for or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        yield "without its sign", node.operand
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "one more", ast.Constant(node.value + 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "the other", ast.Constant(not node.value)
    if isinstance(node, ast.Attribute) and node.attr in NAMED and isinstance(node.ctx, ast.Load):
        yield f"{NAMED[node.attr]} for {node.attr}", ast.Attribute(node.value, NAMED[node.attr], node.ctx)
    if isinstance(node, ast.IfExp):
        yield "always the first", node.body


class Replaced(ast.NodeTransformer):
    """A tree with one node replaced."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().visit(node)


def mutants(file: Path) -> list[Mutant]:
    """All faults of a file. What only stands in annotations and messages is left alone."""
    source = ast.parse(file.read_text())
    found = []
    for node in code(source):
        for fault, new in variants(node):
            memo: dict[int, ast.AST] = {}
            tree = copy.deepcopy(source, memo)
            text = ast.unparse(ast.fix_missing_locations(Replaced(memo[id(node)], new).visit(tree)))
            shown = f"{fault}: {ast.unparse(node)[:70]}"
            found.append(Mutant(file, getattr(node, "lineno", 0), shown, text))
    return found


def code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are carried out and are no text of an error."""
    skipped = {"annotation", "returns", "decorator_list"}
    for name, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            text = isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Call) and getattr(each.func, "id", "") == "require")
            if isinstance(each, ast.AST) and name not in skipped and not text:
                yield each
                yield from code(each)


def tests_of(file: Path) -> list[str]:
    place = file.relative_to(PACKAGE).as_posix()
    fitting = [name for name in TESTS if place.startswith(name)]
    if not fitting:
        sys.exit(f"No tests are known for {place}: add them to TESTS.")
    return TESTS[max(fitting, key=len)]


def survives(mutant: Mutant, folder: Path) -> bool:
    """Whether all tests of its file pass with the fault. Tests that hang have noticed it."""
    copied = folder / "gumbeldore" / mutant.file.relative_to(PACKAGE)
    right = copied.read_text()
    copied.write_text(mutant.text)
    sys.stdout.flush()
    child = os.fork()  # which needs not import torch again
    if child == 0:
        _tested(mutant.file, folder)
    try:
        return _waited(child, time.monotonic() + SECONDS) == 0
    finally:
        copied.write_text(right)


def _tested(file: Path, folder: Path) -> None:
    """Runs the tests of a file with the package of this folder, and never returns."""
    code = 1
    try:
        silent = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(silent, number)
        os.setsid()
        os.chdir(HERE)
        os.environ["PYTHONPATH"] = str(folder)  # for processes that tests start
        sys.path.insert(0, str(folder))
        code = int(pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests_of(file)]))
    finally:
        os._exit(code)


def _waited(child: int, until: float) -> int:
    """Its exit code; after the time is over it is killed."""
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", help="files, or folders of the package")
    parser.add_argument("--sample", type=int, default=20, help="so many of all faults, drawn at random")
    parser.add_argument("--all", action="store_true", help="every fault")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = [file for place in options.places for file in found(place)]
    every = [mutant for file in files for mutant in mutants(file)]
    random.Random(options.seed).shuffle(every)
    chosen = every if options.all else every[: options.sample]
    print(f"{len(chosen)} of {len(every)} faults in {len(files)} files", flush=True)
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(PACKAGE, Path(name) / "gumbeldore", ignore=shutil.ignore_patterns("__pycache__"))
        left = 0
        untouched = Mutant(files[0], 0, "no fault", files[0].read_text())
        if not survives(untouched, Path(name)):
            sys.exit(f"The tests of {files[0]} fail without a fault.")
        for mutant in chosen:
            if survives(mutant, Path(name)):
                left += 1
                print(f"survives  {mutant}", flush=True)
            else:
                print(f"noticed   {mutant}", flush=True)
    print(f"{left} of {len(chosen)} survive")


def found(place: str) -> list[Path]:
    path = Path(place) if Path(place).exists() else PACKAGE / place
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.resolve()]


if __name__ == "__main__":
    main()
