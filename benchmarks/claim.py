"""The paper's main claim with enough seeds: does self-improvement learn faster from GD than from WOR and WR samples?

    python benchmarks/claim.py train --cases tsp30,cvrp20,jssp6 --seeds 10      # resumable: what has a file is not run again
    python benchmarks/claim.py train --cases tsp30 --methods gd:0.1,gd:1,gd:3 --seeds 5
    python benchmarks/claim.py report                                           # tables with intervals, learning curves with bands

The paper's networks (smaller) and Algorithm 1 as it stands: no local search, no features, no averaging. All methods draw as many
sequences per instance, and a seed gives all of them the same first weights and instances, so differences are paired by seed.
A training is a process with one thread; seconds are its CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from matplotlib import colormaps
from rich.console import Console
from rich.progress import track
from scipy import stats

from gumbeldore.evaluation.statistics import Estimate, mean_of_runs
from gumbeldore.figure import saved_figure
from gumbeldore.files import write_atomically
from gumbeldore.parallel.processes import in_processes
from gumbeldore.runs.presets import entry
from gumbeldore.runs.settings import RunSettings
from gumbeldore.training import self_improve

HERE = Path(__file__).parent
RESULTS, FIGURES = HERE / "results" / "claim", HERE.parent / "docs" / "figures"
LONG = 300  # attempts per item of the local search that gaps refer to
VALIDATION = 300

Tree = dict[str, Any]
Job = tuple[str, str, int, int]  # case, method, seed, epochs

ROUTES: Tree = {"d": 64, "layers": 3, "heads": 4, "ff": 256}
LEARNING: Tree = {
    "instances": 64,
    "batches": 64,
    "batch_size": 256,
    "part_size": 256,
    "learning_rate": 1e-3,
    "sampling_batch": 64,
}
SHOPS: Tree = {**LEARNING, "instances": 32, "batch_size": 64, "part_size": 64, "sampling_batch": 32}
CASES: dict[str, tuple[str, int, Tree]] = {  # problem, epochs, changes of the paper's settings
    "tsp20": ("tsp", 30, {"problem": {"cities": 20}, "policy": ROUTES, "training": LEARNING}),
    "tsp30": ("tsp", 24, {"problem": {"cities": 30}, "policy": ROUTES, "training": LEARNING}),
    "tsp50": ("tsp", 30, {"problem": {"cities": 50}, "policy": ROUTES, "training": LEARNING}),
    "cvrp20": ("cvrp", 30, {"problem": {"customers": 20, "capacity": 30}, "policy": ROUTES, "training": LEARNING}),
    "jssp6": ("jssp", 24, {"problem": {"jobs": 6, "machines": 6}, "policy": {"pairs": 2}, "training": SHOPS}),
    "jssp10": ("jssp", 30, {"problem": {"jobs": 10, "machines": 10}, "policy": {"pairs": 2}, "training": SHOPS}),
}
BUDGET: Tree = {"beam_width": 16, "rounds": 4, "p_min": 1.0}
METHODS: dict[str, Tree] = {
    "wr": {"method": "with-replacement"},
    "wor": {"method": "without-replacement"},
    "gd": {"method": "gumbeldore"},
}


def sampler_of(method: str) -> Tree:
    """`gd`, or `gd:0.3` for another step size than the paper's; `gd:0.3:0.95` with a nucleus that grows from there."""
    name, *options = method.split(":")
    keys = ("sigma", "p_min")
    return {**BUDGET, **METHODS[name], **{key: float(value) for key, value in zip(keys, options, strict=False)}}


def settings_of(case: str, method: str, seed: int, epochs: int) -> RunSettings:
    problem, _, changes = CASES[case]
    training = {**changes["training"], "epochs": epochs, "seed": seed}
    validation = {"problem": {}} if problem == "tsp" else {"problem": dict(changes["problem"])}
    return entry(problem).settings(
        "paper", {**changes, "sampler": sampler_of(method), "training": training, "validation": validation}
    )


@cache
def instances(case: str) -> tuple[Any, float]:
    """Validation instances, and the mean objective of a long local search on them."""
    problem = settings_of(case, "gd", 0, 1).training_problem
    state = problem.generate(VALIDATION, generator=torch.Generator().manual_seed(4321))
    actions, here = [], state
    while not bool(problem.done(here).all()):
        actions.append(problem.mask(here).int().argmax(1))
        here = problem.step(here, actions[-1])
    best = problem.local_search(state, torch.stack(actions, 1), effort=LONG, seeds=torch.arange(VALIDATION))
    here = state
    for action in best.unbind(1):
        here = problem.step(here, action)
    return state, problem.objective(here).mean().item()


def run(job: Job) -> Tree:
    """One training: a point per epoch."""
    case, method, seed, epochs = job
    torch.set_num_threads(1)
    settings = settings_of(case, method, seed, epochs)
    state, reference = instances(case)
    torch.manual_seed(seed)
    policy = entry(CASES[case][0]).build(settings)
    sequences = settings.training.instances * settings.sampler.beam_width * settings.sampler.rounds
    began = time.process_time()
    stream = self_improve(
        settings.training_problem, policy, settings.sampler.build, validation=state, settings=settings.training
    )
    points = [
        {
            "gap": round(100 * (epoch.validation / reference - 1), 4),
            "best": round(100 * (epoch.best_validation / reference - 1), 4),
            "sampled": round(100 * (epoch.sampled / reference - 1), 4),
            "sequences": epoch.index * sequences,
            "seconds": round(time.process_time() - began, 2),
            "size": epoch.dataset_size,
        }
        for epoch in stream
    ]
    return {"case": case, "method": method, "seed": seed, "points": points}


def file_of(job: Job) -> Path:
    return RESULTS / f"{job[0]}-{job[1].replace(':', '_')}-{job[2]}-{job[3]}epochs.json"


def train(options: argparse.Namespace, console: Console) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    jobs = [
        (case, method, seed, options.epochs or CASES[case][1])
        for seed in range(options.first, options.seeds)
        for case in options.cases.split(",")
        for method in options.methods.split(",")
    ]
    missing = {job: job for job in jobs if not file_of(job).exists()}
    for job, result in track(in_processes(run, missing, options.workers), "training", len(missing), console=console):
        if isinstance(result, str):
            console.print(f"{job}: {result}", markup=False)
            continue
        write_atomically(file_of(job), lambda path, result=result: path.write_text(json.dumps(result)))


LAST = 4
"""A training's result is the mean gap of so many last epochs: one epoch's gap is noisy."""


def at_the_end(points: list[Tree]) -> float:
    return fmean(point["gap"] for point in points[-LAST:])


def on_the_way(points: list[Tree]) -> float:
    """The mean gap over all epochs after the first fifth: how fast it was learnt."""
    return fmean(point["gap"] for point in points[len(points) // 5 :])


def labels(points: list[Tree]) -> float:
    """The mean gap of the solutions that were learnt from in the last epochs."""
    return fmean(point["sampled"] for point in points[-LAST:])


MEASURES = {"greedy, at the end": at_the_end, "greedy, on the way": on_the_way, "best of the samples, at the end": labels}


def found() -> dict[str, dict[str, dict[int, list[Tree]]]]:
    """Points by case, method and seed."""
    results: dict[str, dict[str, dict[int, list[Tree]]]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        run = json.loads(path.read_text())
        results.setdefault(run["case"], {}).setdefault(run["method"], {})[run["seed"]] = run["points"]
    return results


def report(options: argparse.Namespace, console: Console) -> None:
    results = found()
    for case, methods in results.items():
        console.print(table(case, methods), markup=False, soft_wrap=True)
        draw(options.figures / f"claim_{case}.png", case, {name: methods[name] for name in METHODS if name in methods})


def table(case: str, methods: dict[str, dict[int, list[Tree]]]) -> str:
    """Markdown: every method's mean over seeds with Student's interval, and what each differs by from GD, paired by seed."""
    lines = [f"\n| {case} | seeds | {' | '.join(MEASURES)} | core-seconds |", "|---|---|" + "---|" * (len(MEASURES) + 1)]
    for name, runs in methods.items():
        cells = [shown(mean_of_runs(np.array([value(points) for points in runs.values()]))) for value in MEASURES.values()]
        lines.append(f"| {name} | {len(runs)} | {' | '.join(cells)} | {fmean(p[-1]['seconds'] for p in runs.values()):.0f} |")
    for name, runs in methods.items():
        seeds = [seed for seed in runs if seed in methods.get("gd", {})]
        if name == "gd" or len(seeds) < 2:
            continue
        pairs = [[value(methods["gd"][s]) - value(runs[s]) for s in seeds] for value in MEASURES.values()]
        cells = [f"{shown(mean_of_runs(np.array(each)))}; {seeds_needed(each)}" for each in pairs]
        lines.append(f"| gd - {name} | {len(seeds)} | {' | '.join(cells)} | |")
    return "\n".join(lines)


def seeds_needed(differences: list[float]) -> str:
    """How many seeds would tell a difference of this size from 0 in four of five studies (paired t-test at 5 %)."""
    effect = abs(np.mean(differences)) / np.std(differences, ddof=1)
    for count in range(3, 1000):
        critical = stats.t.ppf(0.975, count - 1)
        if 1 - stats.nct.cdf(critical, count - 1, effect * count**0.5) >= 0.8:
            return f"{count} seeds"
    return "over 1,000 seeds"


def shown(estimate: Estimate) -> str:
    return f"{estimate.mean:.2f} ({estimate.low:.2f} .. {estimate.high:.2f})"


def draw(path: Path, case: str, methods: dict[str, dict[int, list[Tree]]]) -> None:
    """The gap against sampled sequences and against core-seconds: means over seeds, with Student's interval as a band."""
    with saved_figure(path, columns=2, size=(4.6, 3.8)) as axes:
        for number, (name, runs) in enumerate(methods.items()):
            if len(runs) < 2:
                continue
            gaps = np.array([[point["gap"] for point in points] for points in runs.values()])
            wide = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(0, ddof=1) / len(gaps) ** 0.5
            colour = colormaps["tab10"](number)
            for axis, what in zip(axes, ("sequences", "seconds"), strict=True):
                across = np.mean([[point[what] for point in points] for points in runs.values()], 0)
                axis.plot(across, gaps.mean(0), color=colour, label=f"{name.upper()} ({len(gaps)} seeds)")
                axis.fill_between(across, gaps.mean(0) - wide, gaps.mean(0) + wide, color=colour, alpha=0.2)
        for axis, what in zip(axes, ("sampled sequences", "core-seconds"), strict=True):
            axis.set(title=case, xlabel=what, ylabel="greedy gap in percent", yscale="log")
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("{x:g}")
            axis.grid(alpha=0.3, which="both")
            if axis.get_lines():
                axis.legend()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "report"])
    parser.add_argument("--cases", default="tsp30,cvrp20,jssp6")
    parser.add_argument(
        "--methods", default="wr,wor,gd", help="also gd:0.1, another sigma, and gd:0.1:0.95, a nucleus that grows from there"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--workers", type=int, default=1, help="trainings at a time")
    parser.add_argument("--figures", type=Path, default=FIGURES)
    options = parser.parse_args()
    {"train": train, "report": report}[options.what](options, Console())


if __name__ == "__main__":
    main()
