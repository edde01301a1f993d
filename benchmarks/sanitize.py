"""Compiled code under address and undefined-behaviour sanitizers: `python benchmarks/sanitize.py [--seconds 60]`.

Builds the package's extensions with g++ and both sanitizers into a folder of its own, then calls all their entry points from Python over random and degenerate input: equal
points, lines, grids, 1 to 8 nodes, distances of 0, demands of 0 and of the capacity, times of 0, coordinates of 1e9, numbers that are none, indices out of range, empty
batches. A call may refuse with one line; anything else (a report of a sanitizer, another error, a wrong answer) ends it with code 1.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FLAGS = "-std=c++17 -fPIC -O1 -g1 -w -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
INNER = "GUMBELDORE_SANITIZED"

Random = np.random.Generator


def build(folder: Path) -> None:
    """A copy of the package with extensions that watch themselves; blocks for any x86 processor of today."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    package = folder / "src" / "gumbeldore"
    name = "_blocks_avx2" if platform.machine().lower() in ("x86_64", "amd64") else "_blocks_plain"
    macros = [f'-DGUMBELDORE_MODULE="{name}"', f"-DGUMBELDORE_INIT=PyInit_{name}"]
    vectors = ["-mavx2", "-mfma"] if name.endswith("avx2") else []
    compile_all(package / "local_search", "_compiled", package, [])
    compile_all(package / "networks", name, package, [*macros, *vectors])


def compile_all(room: Path, name: str, package: Path, more: list[str]) -> None:
    includes = [f"-I{package / 'compiled'}", f"-I{sysconfig.get_paths()['include']}"]
    sources = sorted(str(source) for source in (room / "compiled").glob("*.cpp"))
    out = str(room / f"{name}.abi3.so")
    subprocess.run(["g++", *FLAGS.split(), *more, *includes, *sources, "-shared", "-o", out], check=True)


def library(name: str) -> str:
    return subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


# What calls are made of. Each is now and then something that makes no sense.


def points(random: Random, count: int) -> np.ndarray:
    kind = random.integers(8)
    index = np.arange(count, dtype=float)
    plane = {
        0: random.random((count, 2)),
        1: np.zeros((count, 2)),
        2: np.stack([index, index], 1),
        3: np.stack(np.divmod(index, 3), 1),
        4: 1e9 * random.random((count, 2)),
        5: random.integers(0, 3, (count, 2)).astype(float),
        6: 1e-9 * random.random((count, 2)),
        7: random.random((count, 2)),
    }[int(kind)]
    if kind == 7 and count and random.random() < 0.5:
        plane[random.integers(count), random.integers(2)] = random.choice([np.nan, np.inf, -np.inf, 1e300])
    return plane


def size(random: Random) -> int:
    return int(random.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 30, 90]))


def order(random: Random, count: int) -> np.ndarray:
    found = random.permutation(count)
    if count and random.random() < 0.15:
        found[random.integers(count)] = random.choice([-1, count, count + 9, 0, -(1 << 40), 1 << 40])
    return found[: count - 1] if random.random() < 0.03 else found


def distances(random: Random, count: int) -> Any:
    from gumbeldore.local_search.distances import RULES, Matrix, Plane

    if random.random() < 0.4:
        matrix = random.integers(0, random.choice([1, 3, 1000]), (count, count)).astype(float)
        matrix = matrix + matrix.T if random.random() < 0.5 else matrix
        return Matrix(matrix + random.random() * (random.random() < 0.3))
    rule = str(random.choice(RULES))
    given = points(random, count)
    return Plane(given % 1.5 if rule == "GEO" else given, rule)


def tours(random: Random) -> None:
    from gumbeldore.local_search.distances import path_cost
    from gumbeldore.local_search.tours import TourSearch

    count = size(random)
    given = distances(random, count)
    search = TourSearch(given, seed=int(random.integers(99)), tour=order(random, count) if random.random() < 0.6 else None)
    search.run(work=int(random.integers(60)))
    if random.random() < 0.5:
        search.offer(order(random, count))
        search.run(work=5)
    assert sorted(search.best) == list(range(count))
    assert np.isclose(search.cost, path_cost(given, [*search.best, search.best[0]]))


def demands(random: Random, count: int) -> tuple[np.ndarray, int]:
    capacity = int(random.choice([1, 5, 2_000_000_000, 1 << 60]))
    given = (
        random.choice([0, 1, capacity, max(1, capacity // 3)], count)
        if random.random() < 0.9
        else random.integers(-2, 1 << 62, count)
    )
    return given.astype(np.int64), capacity


def routes(random: Random) -> None:
    from gumbeldore.local_search.routes import RouteSearch

    count = size(random)
    given, (loads, capacity) = distances(random, count), demands(random, count)
    if count:
        loads[0] = 0
    start = [[int(node) + 1] for node in order(random, max(0, count - 1))] if random.random() < 0.6 else None
    search = RouteSearch(given, loads, capacity, seed=int(random.integers(99)), routes=start)
    search.run(work=int(random.integers(300)), progress=(0.0, 1.0) if random.random() < 0.5 else None)
    found = search.best
    assert sorted(node for route in found for node in route) == list(range(1, count))
    assert all(sum(int(loads[node]) for node in route) <= capacity for route in found)
    search.offer(found)


def timed_routes(random: Random) -> None:
    """Routes within time windows, by any distances; the depot is open for long, most of the time."""
    import torch

    from gumbeldore.local_search import improve
    from gumbeldore.local_search.distances import Matrix
    from gumbeldore.local_search.routes import RouteSearch

    count = max(2, size(random))
    (loads, capacity), ways = demands(random, count), random.integers(0, 4, (count, count)) * random.choice([0.0, 1.0, 1e6])
    loads[0] = 0
    opens = random.integers(0, 6, count).astype(float) * ways.max()
    windows = np.stack([opens, opens + random.integers(0, 9, count) * ways.max()], 1)
    windows[0], service = (0, 99 * ways.max() + 9), random.integers(0, 3, count) * ways.max()
    if random.random() < 0.1:
        windows[-1, 1] = random.choice([np.nan, -1e30, np.inf, 0])
    search = RouteSearch(Matrix(ways), loads, capacity, seed=int(random.integers(99)), windows=windows, service=service)
    search.run(work=int(random.integers(300)), progress=(0.0, 1.0) if random.random() < 0.5 else None)
    found = search.best
    assert sorted(node for route in found for node in route) == list(range(1, count))
    for route in found:
        clock, last = 0.0, 0
        for node in [*route, 0]:
            clock = max(clock + (ways[last, node] if node != last else 0), windows[node, 0])
            assert clock <= windows[node, 1] + 1e-8 * windows[0, 1]
            clock, last = clock + service[node], node
    search.offer(found)
    actions = torch.tensor([[2 * (node - 1) + (node == route[0]) for route in found for node in route]])
    given = (torch.as_tensor(each)[None] for each in (ways.astype(float), loads))
    times = (torch.as_tensor(each)[None] for each in (windows, service.astype(float)))
    if random.random() < 0.2:
        actions[0, 0] = int(random.choice([-1, 0, 2 * count, 1 << 40]))
    improve.improve_timed_routes(
        *given, torch.tensor([capacity]), *times, actions, torch.tensor([1]), int(random.integers(99)), random.random() < 0.2
    )


def prizes(random: Random) -> None:
    from gumbeldore.local_search.distances import path_cost
    from gumbeldore.local_search.prizes import PrizeSearch

    count = size(random)
    given = distances(random, count)
    worth = random.integers(0, random.choice([1, 3, 1000]), count).astype(float)
    if count and random.random() < 0.05:
        worth[-1] = random.choice([np.nan, -1, np.inf])
    budget = float(random.choice([0, 1, 3, 50, 1e9, np.nan], p=[0.1, 0.2, 0.3, 0.2, 0.15, 0.05]))
    start = nodes(random, count) if random.random() < 0.4 else None
    search = PrizeSearch(given, worth, budget, seed=int(random.integers(99)), tour=start)
    search.run(work=int(random.integers(300)), progress=(0.0, 1.0) if random.random() < 0.5 else None)
    found = search.best
    assert len(set(found)) == len(found)
    assert 0 not in found
    assert not found or path_cost(given, [0, *found, 0]) <= budget * (1 + 1e-9)
    search.offer(nodes(random, count))


def nodes(random: Random, count: int) -> np.ndarray:
    """Some of them, without the depot."""
    found = order(random, count)
    return found[found != 0][: random.integers(count + 1) // 4]


def assignments(random: Random) -> None:
    import torch

    from gumbeldore.local_search.assignment import assign, look_ahead
    from gumbeldore.local_search.matrix_tours import MatrixTourSearch

    count = size(random)
    matrix = random.integers(0, random.choice([1, 3, 1000]), (count, count)) * float(random.choice([1, 1e9, 0.1]))
    if count and random.random() < 0.05:
        matrix[0, -1] = random.choice([np.nan, np.inf])
    found = assign(matrix[None])
    assert sorted(found.follower[0]) == sorted(found.tour[0]) == list(range(count))
    search = MatrixTourSearch(
        matrix, seed=int(random.integers(99)), tour=order(random, count) if random.random() < 0.5 else None
    )
    search.run(work=int(random.integers(60)))
    assert sorted(search.best) == list(range(count))
    left = order(random, count)
    ends, tries = order(random, count)[:2], int(random.integers(4))
    rows = (torch.as_tensor(each)[None] for each in (ends, left))
    look_ahead(torch.as_tensor(matrix)[None], torch.tensor([int(random.random() < 0.05)]), *rows, tries=tries)


def shop(random: Random) -> tuple[np.ndarray, np.ndarray]:
    jobs, machines = max(1, size(random) // 4), max(1, size(random) // 4)
    scale = random.choice([0.0, 1.0, 1e9])
    times = scale * random.integers(0, 3, (jobs, machines))
    if random.random() < 0.05:
        times[0, 0] = random.choice([np.nan, -1, np.inf])
    visits = np.stack([random.permutation(machines) for _ in range(jobs)])
    if random.random() < 0.1:
        visits[0, 0] = random.choice([-1, machines, 0, 1 << 30])
    return times, visits


def jobs_in_order(random: Random, given: np.ndarray) -> np.ndarray:
    actions = random.permutation(np.arange(len(given)).repeat(given.shape[1]))
    if random.random() < 0.1:
        actions[random.integers(len(actions))] = random.choice([-1, 0, len(given), 1 << 40])
    return actions


def schedules(random: Random) -> None:
    from gumbeldore.local_search.schedules import ScheduleSearch

    times, visits = shop(random)
    start = jobs_in_order(random, times) if random.random() < 0.6 else None
    search = ScheduleSearch(times, visits, seed=int(random.integers(99)), schedule=start)
    search.run(work=int(random.integers(60_000 if random.random() < 0.05 else 900)))
    search.offer(jobs_in_order(random, times))
    assert np.array_equal(np.bincount(search.best, minlength=len(times)), np.full(len(times), times.shape[1]))


def batches(random: Random) -> None:
    import torch

    from gumbeldore.local_search import improve

    rows, count = int(random.integers(4)), size(random)
    given = torch.as_tensor(np.stack([points(random, count) for _ in range(rows)]) if rows else np.zeros((0, count, 2)))
    seeds, rounds = torch.arange(rows), int(random.integers(40))
    if random.random() < 0.6:
        tour = torch.as_tensor(np.array([random.permutation(count) for _ in range(rows)], dtype=np.int64).reshape(rows, count))
        if tour.numel() and random.random() < 0.1:
            tour[0, 0] = int(random.choice([-1, count, 1 << 40]))
        (improve.improve_tours if random.random() < 0.5 else improve.improve_paths)(given, tour, seeds, rounds)
        return
    loads, capacity = demands(random, count)
    served = np.array([random.permutation(max(0, count - 1)) for _ in range(rows)], dtype=np.int64).reshape(
        rows, max(0, count - 1)
    )
    actions = torch.as_tensor(2 * served + 1)
    if actions.numel() and random.random() < 0.2:
        actions[0, 0] = int(random.choice([-1, 0, 2 * count, 1 << 40]))
    improve.improve_routes(
        given,
        torch.as_tensor(loads).expand(rows, -1),
        torch.full((rows,), capacity),
        actions,
        seeds,
        rounds,
        random.random() < 0.3,
    )


def shops(random: Random) -> None:
    import torch

    from gumbeldore.local_search import improve

    times, visits = shop(random)
    actions = jobs_in_order(random, times)
    kept = int(random.integers(-1, len(actions) + 2))
    given = (torch.as_tensor(each)[None] for each in (times, visits, actions))
    improve.improve_schedules(*given, torch.zeros(1, dtype=torch.long), int(random.integers(500)), kept)


def flow_shops(random: Random) -> None:
    import torch

    from gumbeldore.local_search.flexible import improve_flexible
    from gumbeldore.local_search.permutations import improve_permutations, insert_jobs

    times, _ = shop(random)
    seeds, rounds, kept = torch.zeros(1, dtype=torch.long), int(random.integers(60)), int(random.integers(-1, len(times) + 2))
    if random.random() < 0.5:
        given, jobs = torch.as_tensor(times)[None], torch.as_tensor(order(random, len(times)))[None]
        insert_jobs(given, jobs)
        improve_permutations(given, jobs, seeds, rounds, kept)
        return
    jobs, operations, machines = 1 + size(random) // 8, 1 + size(random) // 8, 1 + size(random) // 16
    choices = torch.as_tensor(random.integers(-1 if random.random() < 0.1 else 0, 9, (1, jobs, operations, machines))).double()
    actions = torch.as_tensor(random.permutation(np.arange(jobs).repeat(operations)) * machines + random.integers(machines))[
        None
    ]
    improve_flexible(choices, actions, seeds, rounds, max(0, kept))


def features(random: Random) -> None:
    import torch

    from gumbeldore.local_search.compiling import code, plain

    rows, places = int(random.integers(4)), size(random)
    given = torch.as_tensor(np.array([points(random, places) for _ in range(rows)]).reshape(rows, places, 2))
    counts = torch.as_tensor(
        random.integers(1 if random.random() < 0.1 else 2, max(3, places + 1 + (random.random() < 0.1)), rows)
    )
    views = plain(given, torch.float32), plain(counts, torch.int32)
    result = np.zeros((rows, places, 8), np.float32)
    if random.random() < 0.5:
        trees, tries = int(random.integers(0, 9)), int(random.integers(-1, 5))
        code().bound_paths(*views, trees, 1.2, tries, 5, 0.6, 1, result, np.zeros(rows, np.float32))
    else:
        loads, capacity = demands(random, places)
        stacked = np.ascontiguousarray(np.broadcast_to(loads, (rows, places)))
        code().look_ahead_by_savings(views[0], stacked, np.full(rows, capacity), views[1], 4, 6, 0.5, 1, result)


def blocks(random: Random) -> None:
    import torch

    from gumbeldore.networks import native
    from gumbeldore.networks.layers import Block, Stack
    from gumbeldore.networks.segments import Layout, find_starts

    tokens, heads = size(random), int(random.choice([1, 2, 4]))
    d, ff = heads * int(random.choice([4, 8, 16])), int(random.choice([1, 7, 24, 64]))
    stack = Stack([Block(d, heads, ff)])
    segment = torch.as_tensor(random.integers(0, max(1, tokens // 3), tokens))
    starts, listed = find_starts(segment.bincount(minlength=1)), segment.argsort().int()
    if tokens and random.random() < 0.2:
        listed[0] = int(random.choice([-1, tokens, 1 << 30]))
    if random.random() < 0.1:
        starts[-1] += int(random.choice([-1, 1, 1 << 30]))
    x = torch.rand(tokens, d)
    if random.random() < 0.5:
        with torch.no_grad():
            native.run(x, [stack[0].fold()], [Layout(starts, listed)])
    else:
        native.run(x.requires_grad_(), [stack[0].fold()], [Layout(starts, listed)]).sum().backward()


CALLS: dict[str, Callable[[Random], None]] = {
    each.__name__: each
    for each in (tours, assignments, routes, timed_routes, prizes, schedules, batches, shops, flow_shops, features, blocks)
}


def fuzz(seconds: float, seed: int) -> None:
    """Calls all of them in turn with other random numbers each time."""
    from gumbeldore.errors import SettingsError
    from gumbeldore.local_search import compiling
    from gumbeldore.networks import native

    assert compiling.available(), "local search was not compiled"
    assert native.library() is not None, "blocks were not compiled"
    end, turn, counts = time.monotonic() + seconds, seed, Counter[str]()
    while time.monotonic() < end:
        for name, call in CALLS.items():
            try:
                call(np.random.default_rng(turn))
                counts[name] += 1
            except SettingsError as error:
                if "\n" in str(error):
                    raise
                counts[f"{name}, refused"] += 1
            except BaseException:
                print(f"FAULT in {name} with the seed {turn}", flush=True)
                raise
        turn += 1
    print(*(f"{name}: {count}" for name, count in sorted(counts.items())), sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if os.environ.get(INNER):
        fuzz(given.seconds, given.seed)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        environment = {
            **os.environ,
            INNER: "1",
            "PYTHONPATH": str(folder / "src"),
            "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
            "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it has until the end
            "OMP_NUM_THREADS": "1",
        }
        arguments = ["--seconds", str(given.seconds), "--seed", str(given.seed)]
        code = subprocess.run([sys.executable, __file__, *arguments], env=environment, check=False).returncode
    print("no faults" if code == 0 else f"a fault (code {code})")
    return int(code != 0)


if __name__ == "__main__":
    raise SystemExit(main())
