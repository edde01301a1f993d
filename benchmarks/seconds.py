"""The best solution after so many seconds of one core, on files of published instances: ours by its parts, and other solvers.

    python benchmarks/seconds.py FOLDER... --out seconds.jsonl [--seconds 1 10 60] [--methods default,pyvrp] [--most 40]
    python benchmarks/seconds.py --out seconds.jsonl --table

Two cores measure twice as much: `--part 1/2 --core 0` and `--part 2/2 --core 1` beside it, into the same file. `--processor-time` counts seconds in which
the process had a core, whatever else the machine does (Linux, with a C compiler): the same solvers come to the same solutions on a busy machine, but for what
others do to the caches.

Nothing is shipped with it: the folders hold TSPLIB, CVRPLIB X, DMU, Taillard files, or others. Every answer is a line of the file,
written as it comes, and is not computed again. Costs are by the rule of the file; whatever a solver says is verified.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gumbeldore.errors import GumbeldoreError
from gumbeldore.evaluation.statistics import bootstrap_mean, paired_difference
from gumbeldore.io.reading import instance_files, read_file
from gumbeldore.io.tsplib_distances import all_pairs
from gumbeldore.kits.kit import Instance, Kit
from gumbeldore.kits.solver import Limit, SolverError
from gumbeldore.problems.cvrp.files import RoutesCost
from gumbeldore.problems.tours import TourCost
from gumbeldore.solvers.outside import outside, pyvrp_routes
from gumbeldore.solving import solve_jobs
from gumbeldore.solving.effort import Effort
from gumbeldore.solving.jobs import Job

Answer = tuple[list[int], list[dict[str, Any]]]
Method = Callable[[Kit, Instance, float, int], Answer]
"""A kit, an instance, seconds, a seed: actions, and who found which improvement when."""


def ours(*parts: Any) -> Method:
    def solve(kit: Kit, given: Instance, seconds: float, seed: int) -> Answer:
        effort = Effort(time_limit=seconds, parts=parts or None, seed=seed)
        (found,) = solve_jobs([Job(kit, given)], effort)
        return found.actions, [vars(each) for each in found.improvements]

    return solve


def matrix_of(given: Instance) -> np.ndarray:
    """All distances, by the rule of the file, in the order of our nodes."""
    if isinstance(given.cost, TourCost):
        return all_pairs(given.cost.weights, len(given.arrays["coordinates"]))
    assert isinstance(given.cost, RoutesCost)
    order = given.cost.nodes
    return all_pairs(given.cost.weights, len(order))[np.ix_(order, order)]


def pyvrp(kit: Kit, given: Instance, seconds: float, seed: int) -> Answer:
    limit, matrix = Limit(seconds), matrix_of(given)
    if kit.name == "tsp":
        points = np.asarray(given.arrays["coordinates"], dtype=np.float64)
        (route,) = pyvrp_routes(points, np.zeros(len(points)), 0, limit, seed, vehicles=1, distances=matrix)
        return [customer + 1 for customer in route], []
    points, demands = np.asarray(given.arrays["nodes"], dtype=np.float64), np.asarray(given.arrays["demands"])
    routes = pyvrp_routes(points, demands, int(given.arrays["capacity"]), limit, seed, distances=matrix)
    return actions_of(routes), []


def hgs(kit: Kit, given: Instance, seconds: float, seed: int) -> Answer:
    hygese, demands = outside("hygese"), np.asarray(given.arrays["demands"], dtype=np.float64)
    capacity = float(given.arrays["capacity"])
    data = {
        "distance_matrix": matrix_of(given),
        "x_coordinates": given.arrays["nodes"][:, 0],
        "y_coordinates": given.arrays["nodes"][:, 1],
        "demands": demands,
        "vehicle_capacity": capacity,
        "num_vehicles": 1 + int(2 * demands.sum() // capacity),
    }
    solver = hygese.Solver(hygese.AlgorithmParameters(timeLimit=seconds, seed=seed), verbose=False)
    found = solver.solve_cvrp(data, rounding=False)
    return actions_of([[customer - 1 for customer in route] for route in found.routes]), []


def ortools(kit: Kit, given: Instance, seconds: float, seed: int) -> Answer:
    baseline = kit.baselines["or-tools"]
    return list(baseline.solve(given.arrays, Limit(seconds), seed)), []


def cpsat(kit: Kit, given: Instance, seconds: float, seed: int) -> Answer:
    return list(kit.baselines["cpsat"].solve(given.arrays, Limit(seconds), seed)), []


METHODS: dict[str, tuple[Method, tuple[str, ...]]] = {
    "default": (ours(), ("tsp", "cvrp", "jssp")),
    "policy": (ours("policy"), ("tsp", "cvrp", "jssp")),
    "local-search": (ours("local-search"), ("tsp", "cvrp", "jssp")),
    "policy+local-search": (ours("policy", "local-search"), ("tsp", "cvrp", "jssp")),
    "pyvrp": (pyvrp, ("tsp", "cvrp")),
    "hgs": (hgs, ("cvrp",)),
    "or-tools": (ortools, ("tsp", "cvrp")),
    "cp-sat": (cpsat, ("jssp",)),
}


def actions_of(routes: Sequence[Sequence[int]]) -> list[int]:
    return [2 * customer + (place == 0) for route in routes for place, customer in enumerate(route)]


def size(given: Instance) -> int:
    """Numbers of the largest array; distances count as if they were places."""
    return max(2 * len(array) if name == "distances" else array.size for name, array in given.arrays.items())


def instances(folders: Sequence[Path], largest: int, most: int | None) -> Iterator[tuple[Path, Kit, Instance]]:
    """Of each folder, those with a known cost, evenly spread over the sizes."""
    for folder in folders:
        found = []
        for path in instance_files(folder)[0]:
            try:
                kit, given = read_file(path)
            except GumbeldoreError:
                continue
            if len(given) == 1 and given[0].known and size(given[0]) <= largest:
                found.append((path, kit, given[0]))
        found.sort(key=lambda each: (size(each[2]), each[0].name))
        some = np.unique(np.linspace(0, len(found) - 1, min(most or len(found), len(found))).round().astype(int))
        yield from (found[place] for place in some)


def measured(method: Method, kit: Kit, given: Instance, seconds: float, seed: int) -> dict[str, Any]:
    """The gap of a verified answer, and how long it took."""
    begin = time.monotonic()
    try:
        actions, improvements = method(kit, given, seconds, seed)
    except SolverError as error:
        return {"gap": None, "took": time.monotonic() - begin, "why": str(error)}
    took = time.monotonic() - begin
    verify = kit.solution_format.verify
    assert verify is not None
    verdict = verify(given.arrays, actions)
    if not verdict.feasible:
        return {"gap": None, "took": took, "why": verdict.reason}
    cost = given.cost(actions) if given.cost else -verdict.objective
    assert given.known is not None
    return {"cost": cost, "gap": cost / given.known - 1, "took": took, "improvements": improvements}


def on_processor_time() -> None:
    """Starts this program again with clocks that count its own processor time."""
    if library := os.environ.pop("LD_PRELOAD", ""):
        shutil.rmtree(Path(library).parent)
        return
    library = str(Path(tempfile.mkdtemp()) / "processor_time.so")
    source = str(Path(__file__).with_name("processor_time.c"))
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": library, "OMP_NUM_THREADS": "1"})


def run(arguments: argparse.Namespace) -> None:
    if arguments.processor_time:
        on_processor_time()
    else:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[arguments.core]})
    torch.set_num_threads(1)
    lines = read(arguments.out)
    done = {(line["file"], line["method"], line["seconds"]) for line in lines}
    part, parts = (int(each) for each in arguments.part.split("/"))
    cases = list(instances(arguments.folders, arguments.largest, arguments.most))[part - 1 :: parts]
    wanted = arguments.methods.split(",") if arguments.methods else list(METHODS)
    with open(arguments.out, "a") as handle:
        for seconds in arguments.seconds:
            for path, kit, given in cases:
                for name in wanted:
                    method, problems = METHODS[name]
                    key = (f"{path.parent.name}/{path.name}", name, seconds)
                    if kit.name not in problems or key in done:
                        continue
                    line = dict(zip(("file", "method", "seconds"), key, strict=True))
                    line |= {"set": path.parent.name, "size": size(given)} | measured(method, kit, given, seconds, 1)
                    handle.write(json.dumps(line) + "\n")
                    handle.flush()
                    shown = "none" if line["gap"] is None else f"{100 * line['gap']:.2f} %"
                    print(f"{key[0]} {name} {seconds:g} s: {shown}, took {line['took']:.1f} s", flush=True)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(lines: list[dict[str, Any]]) -> str:
    """Mean gaps with intervals, the worst one, and what policy and local search together gain over local search alone."""
    parts = []
    for name in dict.fromkeys(line["set"] for line in lines):
        mine = [line for line in lines if line["set"] == name]
        limits = sorted({line["seconds"] for line in mine})
        count = len({line["file"] for line in mine})
        parts.append(
            f"**{name}**, {count} files\n\n| | {' | '.join(f'{each:g} s' for each in limits)} |\n|---|{'---|' * len(limits)}"
        )
        for method in dict.fromkeys(line["method"] for line in mine):
            cells = [
                cell([line for line in mine if (line["method"], line["seconds"]) == (method, each)], count) for each in limits
            ]
            parts.append(f"| {method} | {' | '.join(cells)} |")
        differences = [against(mine, each) for each in limits]
        parts.append(f"| default minus local-search, paired | {' | '.join(differences)} |\n")
    return "\n".join(parts)


def cell(lines: list[dict[str, Any]], count: int) -> str:
    """Of `count` files, or of fewer, which is said."""
    gaps = 100 * np.array([line["gap"] for line in lines if line["gap"] is not None])
    if not len(gaps):
        return ""
    found = bootstrap_mean(gaps)
    unsolved = f", {len(lines) - len(gaps)} unsolved" if len(gaps) < len(lines) else ""
    fewer = f", {len(lines)} files" if len(lines) < count else ""
    return f"{found.mean:.2f} ({found.low:.2f} .. {found.high:.2f}), worst {gaps.max():.1f}{unsolved}{fewer}"


def against(lines: list[dict[str, Any]], seconds: float) -> str:
    gaps = {
        name: {
            line["file"]: line["gap"]
            for line in lines
            if (line["method"], line["seconds"]) == (name, seconds) and line["gap"] is not None
        }
        for name in ("default", "local-search")
    }
    both = sorted(set(gaps["default"]) & set(gaps["local-search"]))
    if len(both) < 2:
        return ""
    found = paired_difference(*(100 * np.array([gaps[name][file] for file in both]) for name in ("default", "local-search")))
    return f"{found.mean:+.2f} ({found.low:+.2f} .. {found.high:+.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=Path("seconds.jsonl"))
    parser.add_argument("--seconds", nargs="+", type=float, default=[1.0, 10.0, 60.0])
    parser.add_argument("--methods", default="", help=f"some of {', '.join(METHODS)}; default: all")
    parser.add_argument("--most", type=int, help="so many files of each folder")
    parser.add_argument("--largest", type=int, default=2100, help="numbers of the largest array of an instance")
    parser.add_argument("--core", type=int, default=0, help="the one that this process keeps to")
    parser.add_argument("--processor-time", action="store_true", help="seconds of the processor instead of the clock")
    parser.add_argument("--part", default="1/1", help="2/3: of the files the second, the fifth, ...")
    parser.add_argument("--table", action="store_true", help="only print the table")
    arguments = parser.parse_args()
    if not arguments.table:
        run(arguments)
    print(table(read(arguments.out)))


if __name__ == "__main__":
    main()
