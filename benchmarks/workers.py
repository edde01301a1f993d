"""How fast instances are sampled by one process, by worker processes, and by Ray on this machine.

    python benchmarks/workers.py            # TSP-50, pieces of about a second: a table, and results/workers.json

Everything is measured in turns, `--repeats` times, and the median counts. Each kind is started anew, solves a piece per worker to warm up,
and is then timed on `--pieces` pieces. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from measure import scalars_on

from gumbeldore import Cluster, Gumbeldore
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.training.backend import started

KINDS: dict[str, int | Cluster] = {
    "one process": 0,
    "1 worker": 1,
    "2 workers": 2,
    "Ray, 1 sampler": Cluster(samplers=1),
    "Ray, 2 samplers": Cluster(samplers=2),
}


def measured(kind: int | Cluster, options: argparse.Namespace) -> dict[str, float]:
    """Seconds until the first results, and per piece after that."""
    torch.manual_seed(0)
    problem, policy = TSP(options.cities), TSPPolicy(d=64, layers=3, ff=256)
    scalars_on(policy)
    state = problem.generate(options.size * options.pieces, generator=torch.Generator().manual_seed(1))
    seeds = torch.arange(state.row_count)
    sampler = Gumbeldore(options.beam_width, 4, sigma=0.3)
    begin = time.perf_counter()
    with closing(started(problem, policy, kind)) as backend:
        warm = slice(0, 2 * options.size)
        list(backend.sample(sampler, state.rows(warm).compact(), seeds[warm], options.size))
        ready = time.perf_counter()
        best = [solutions.best_objective for _, solutions in backend.sample(sampler, state, seeds, options.size)]
        end = time.perf_counter()
    return {
        "start": ready - begin,
        "piece": (end - ready) / options.pieces,
        "instances": state.row_count / (end - ready),
        "mean": torch.cat(best).mean().item(),  # the same for all, or something is wrong
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cities", type=int, default=50)
    parser.add_argument("--size", type=int, default=16, help="instances per piece")
    parser.add_argument("--pieces", type=int, default=20)
    parser.add_argument("--beam-width", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: checks the benchmark only")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "workers.json")
    options = parser.parse_args()
    if options.smoke:
        options.cities, options.size, options.pieces, options.repeats = 8, 2, 4, 1
    found: dict[str, list[dict[str, float]]] = {name: [] for name in KINDS}
    for repeat in range(options.repeats):
        for name, kind in KINDS.items():
            found[name].append(measured(kind, options))
            print(f"{repeat + 1}/{options.repeats} {name}: {found[name][-1]}", flush=True)
    medians = {name: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for name, runs in found.items()}
    report(medians)
    settings: dict[str, Any] = {key: value for key, value in vars(options).items() if key != "json"}
    options.json.write_text(
        json.dumps({"settings": settings, "threads": torch.get_num_threads(), "median": medians}, indent=1) + "\n"
    )


def report(medians: dict[str, dict[str, float]]) -> None:
    alone = medians["one process"]["instances"]
    print("\n| | instances/s | against one process | seconds per piece | start, s |\n|---|---|---|---|---|")
    for name, row in medians.items():
        numbers = f"{row['instances']:.2f} | {row['instances'] / alone:.2f} | {row['piece']:.2f} | {row['start']:.1f}"
        print(f"| {name} | {numbers} |")


if __name__ == "__main__":
    main()
