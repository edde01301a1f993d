"""How time and peak memory of sampling grow with the problem, the beam and the rounds: fitted exponents and log-log plots.

    python benchmarks/growth.py [--threads 2] [--rounds 2] [--quick]

Writes docs/figures/growth_time.png, docs/figures/growth_memory.png and benchmarks/results/growth.json. Every point is a process of
its own. A tiny search runs first in it, so that buffers which do not depend on the size are no part of its memory. The exponent
is the slope of a straight line through all points on the log-log plot; `upper half` is that of the larger sizes only, where
fixed costs weigh less. `operations` are those of the network: time that grows no faster than they do is the network's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

HERE = Path(__file__).parent
FIGURES = HERE.parent / "docs" / "figures"
SIZE = (32, 2, 4, 128)  # of the networks: d, layers, heads, ff


@dataclass(frozen=True)
class Point:
    """One search to time."""

    problem: str = "tsp"
    size: tuple[int, int] = (40, 0)
    batch: int = 4
    beam_width: int = 16
    rounds: int = 2

    @property
    def steps(self) -> int:
        return self.size[0] * (self.size[1] or 1)


@dataclass(frozen=True)
class Study:
    """A series of points along one quantity."""

    name: str
    axis: str
    points: tuple[Point, ...]
    quantity: Callable[[Point], int]


STUDIES = (
    Study(
        "cities",
        "cities N (TSP)",
        tuple(Point(size=(n, 0), batch=2) for n in (20, 30, 45, 65, 100, 140, 200)),
        lambda p: p.steps,
    ),
    Study(
        "operations",
        "operations J * M (job shop)",
        tuple(Point("jssp", (n, n), batch=1) for n in (5, 7, 10, 13, 17)),
        lambda p: p.steps,
    ),
    Study("beam", "beam width (TSP40)", tuple(Point(beam_width=k) for k in (8, 16, 32, 64, 128)), lambda p: p.beam_width),
    Study("rounds", "rounds (TSP40)", tuple(Point(rounds=r) for r in (1, 2, 4, 8, 16)), lambda p: p.rounds),
)


def quick(study: Study) -> Study:
    """Three tiny points: checks the script only."""
    points = [replace(point, size=(point.size[0] // 2, point.size[1] // 2), batch=1) for point in study.points]
    return replace(study, points=tuple(points[:3]))


def measure(point: Point, seconds: float) -> dict[str, float]:
    """Seconds per search, megabytes, and operations of the network, in this process."""
    import torch
    from cases import SIGMA, Size
    from measure import PeakMemory
    from ours import Meter, make_policy, make_problem, solve

    from gumbeldore import Gumbeldore

    policy, problem = make_policy(point.problem, Size(*SIZE)), make_problem(point.problem, point.size)
    generator = torch.Generator().manual_seed(0)
    state = problem.generate(point.batch, generator=generator)
    tiny = make_problem(point.problem, (4, 3) if point.problem == "jssp" else (6, 0))
    solve(Gumbeldore(4, 2), tiny, policy, tiny.generate(1, generator=generator))
    sampler, memory = Gumbeldore(point.beam_width, point.rounds, sigma=SIGMA[point.problem]), PeakMemory()
    with Meter(policy).attached() as meter:  # counts operations, and warms up
        solve(sampler, problem, policy, state)
        operations = meter.operations
    times: list[float] = []
    while not times or sum(times) < seconds:
        start = time.perf_counter()
        solve(sampler, problem, policy, state)
        times.append(time.perf_counter() - start)
    return {"seconds": median(times), "megabytes": memory.megabytes(), "operations": float(operations)}


def in_process(point: Point, options: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--point", json.dumps(asdict(point)), "--seconds", str(options.seconds)]
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **threads})
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def exponent(x: list[float], y: list[float]) -> float:
    """Slope of the least-squares line through the logarithms; NaN if a value is not positive."""
    if len(x) < 2 or min(y) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def run(study: Study, options: argparse.Namespace) -> dict[str, Any]:
    """All points, smallest to largest and again, so that a disturbance hits one round rather than one point."""
    results: list[list[dict[str, float]]] = [[] for _ in study.points]
    for index in range(options.rounds):
        for point, found in zip(study.points, results, strict=True):
            found.append(in_process(point, options))
            text = f"{found[-1]['seconds']:.3f} s, {found[-1]['megabytes']:.1f} MB"
            print(f"{study.axis}: {study.quantity(point)}, round {index + 1}: {text}", file=sys.stderr, flush=True)
    x = [float(study.quantity(point)) for point in study.points]
    columns = {name: [median(r[name] for r in found) for found in results] for name in ("seconds", "megabytes", "operations")}
    half = len(x) // 2
    return {
        "name": study.name,
        "axis": study.axis,
        "points": [asdict(point) for point in study.points],
        "x": x,
        **columns,
        "exponents": {name: exponent(x, values) for name, values in columns.items()},
        "exponents_upper_half": {name: exponent(x[half:], values[half:]) for name, values in columns.items()},
    }


def plot(path: Path, studies: list[dict[str, Any]], name: str, label: str) -> None:
    """One log-log panel per study, with the fitted line."""
    from gumbeldore.figure import saved_figure

    with saved_figure(path, 1, len(studies), (3.6, 3.4)) as panels:
        for panel, study in zip(np.atleast_1d(panels), studies, strict=True):
            x, y, slope = np.array(study["x"]), np.array(study[name]), study["exponents"][name]
            panel.loglog(x, y, "o", color="tab:blue", markersize=4)
            if np.isfinite(slope):
                line = np.exp(np.log(y).mean() + slope * (np.log(x) - np.log(x).mean()))
                upper = study["exponents_upper_half"][name]
                panel.loglog(x, line, color="tab:orange", label=f"exponent {slope:.2f}\n(upper half {upper:.2f})")
                panel.legend()
            panel.set_xticks(x, labels=[f"{value:.0f}" for value in x], minor=False)
            ends = np.unique([y.min(), np.sqrt(y.min() * y.max()), y.max()])  # a short axis may hold no power of ten
            panel.set_yticks(ends, labels=[f"{value:.2g}" if value < 100 else f"{value:.0f}" for value in ends], minor=False)
            panel.minorticks_off()
            panel.set(xlabel=study["axis"], ylabel=label)
            panel.grid(alpha=0.3)


def table(studies: list[dict[str, Any]]) -> str:
    lines = ["| grows with | time | upper half | operations | upper half | memory | upper half |", "|---" * 7 + "|"]
    for study in studies:
        pairs = [
            f"{study[fit][name]:.2f}"
            for name in ("seconds", "operations", "megabytes")
            for fit in ("exponents", "exponents_upper_half")
        ]
        lines.append(f"| {study['axis']} | " + " | ".join(pairs) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="studies whose name contains this: cities, operations, beam, rounds")
    parser.add_argument("--seconds", type=float, default=0.5, help="per point, at least (whole searches)")
    parser.add_argument("--rounds", type=int, default=2, help="measurements of each point")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, default=HERE / "results" / "growth.json")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="the folder of the plots")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: checks the script, the figures mean nothing")
    parser.add_argument("--point", help=argparse.SUPPRESS)  # JSON: measure this one here
    options = parser.parse_args()
    if options.point:
        fields = json.loads(options.point)
        print(json.dumps(measure(Point(**{**fields, "size": tuple(fields["size"])}), options.seconds)))
        return
    chosen = [quick(study) if options.quick else study for study in STUDIES if options.only in study.name]
    studies = [run(study, options) for study in chosen]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"threads": options.threads, "network": SIZE, "studies": studies}, indent=1) + "\n")
    plot(options.figures / "growth_time.png", studies, "seconds", "seconds per search")
    plot(options.figures / "growth_memory.png", studies, "megabytes", "peak memory, MB")
    print(table(studies))


if __name__ == "__main__":
    main()
