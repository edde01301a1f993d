"""What a policy learns per core-second, by recipe; and where it loses.

    python benchmarks/learning.py curves --minutes 4 --seeds 3      # validation gap against core-seconds, from scratch
    python benchmarks/learning.py curves --only tsp20,jssp6 --recipes plain,all
    python benchmarks/learning.py curves --only cvrp50 --recipes frame,order,loads,follow,all
    python benchmarks/learning.py diagnose --only tsp50 --minutes 8 # why: labels alone against recoveries

Every run is a process with one thread that stops after its core-seconds, whatever else the machine does, and writes one file to
benchmarks/results/learning/; what is there is not run again. Gaps are those of greedy construction against a long local search.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from matplotlib import colormaps
from matplotlib.ticker import LogLocator
from rich.console import Console
from rich.progress import track
from safetensors.torch import load_file, save_file

from gumbeldore.figure import saved_figure
from gumbeldore.files import write_atomically
from gumbeldore.kits.solver import Limit
from gumbeldore.parallel.processes import in_processes
from gumbeldore.problem import Examples, replay
from gumbeldore.runs.presets import entry
from gumbeldore.runs.settings import RunSettings
from gumbeldore.training import self_improve
from gumbeldore.training.algorithm import greedy_objective
from gumbeldore.training.loss import action_losses

HERE = Path(__file__).parent
RESULTS, FIGURES = HERE / "results" / "learning", HERE.parent / "docs" / "figures"
LONG = 300  # attempts per item of the local search that gaps refer to

Tree = dict[str, Any]
Job = tuple[str, str, int, float, int]  # case, recipe, seed, minutes, validation instances

ROUTES = {"policy": {"d": 64, "layers": 3, "heads": 4, "ff": 256}}
SHOPS = {"policy": {"d": 64, "pairs": 2, "heads": 8, "ff": 256}}
CASES: dict[str, tuple[str, Tree]] = {
    "tsp20": ("tsp", {"problem": {"cities": 20}, **ROUTES}),
    "tsp50": ("tsp", {"problem": {"cities": 50}, **ROUTES}),
    "cvrp20": ("cvrp", {"problem": {"customers": 20, "capacity": 30, "order": "fullest"}, **ROUTES}),
    "cvrp50": ("cvrp", {"problem": {"customers": 50, "capacity": 40, "order": "fullest"}, **ROUTES}),
    "jssp6": ("jssp", {"problem": {"jobs": 6, "machines": 6}, **SHOPS}),
    "jssp10": ("jssp", {"problem": {"jobs": 10, "machines": 10}, **SHOPS}),
}

GREEDY = {"method": "without-replacement", "beam_width": 1, "rounds": 1, "first_round_deterministic": True}
PLAIN: Tree = {  # on top of the paper's settings
    "sampler": {"beam_width": 16, "rounds": 2, "p_min": 1.0},
    "training": {"instances": 64, "batches": 64, "batch_size": 256, "part_size": 128},
}
POLISH: Tree = {"sampler": GREEDY, "training": {"instances": 128, "local_search": 4}}
SMALL: Tree = {"training": {"batch_size": 128, "batches": 128, "ema": 0.998, "generating": "current"}}
RECOVER: Tree = {"training": {"relabel": 16}}
KEPT: Tree = {"training": {"replay_window": 8}}
SAMPLED: Tree = {  # the paper's again, of policies that begin well
    "sampler": {"first_round_deterministic": True},
    "training": {**SMALL["training"], "batches": 100, "learning_rate": 3e-4},
}
SUCCESSORS: Tree = {"policy": {"successor_weight": 0.5}}  # shops
ACTIVE: Tree = {"policy": {"actions": "active"}}  # shops
GIVEN: Tree = {"problem": {"order": "given"}}  # deliveries


def features(*names: str) -> Tree:
    return {"policy": {"features": list(names)}}


WINDOWS, FRAME = features("distance-bias"), features("distance-bias", "frame")  # routes


def starts(problem: str) -> Tree:
    """What helps a network to begin, by problem."""
    return SUCCESSORS if problem == "jssp" else WINDOWS


def recipes(problem: str) -> dict[str, list[Tree]]:
    """By name, from the paper's to all that we know; each is a list of changes."""
    start = starts(problem)
    found = {
        "plain": [PLAIN],
        "polish": [PLAIN, POLISH],
        "start": [PLAIN, POLISH, start],
        "batches": [PLAIN, POLISH, start, SMALL],
        "recover": [PLAIN, POLISH, start, SMALL, RECOVER],
        "window": [PLAIN, POLISH, start, SMALL, RECOVER, KEPT],
    }
    if problem == "jssp":
        bounds = features("bounds")
        shops = {"bounds": [bounds], "active": [ACTIVE], "all": [bounds, ACTIVE]}
        return {**found, **{name: [*found["recover"], *more] for name, more in shops.items()}}
    framed, begun = [*found["window"], FRAME], [PLAIN, SAMPLED, KEPT]
    told = {name: features("distance-bias", "frame", name) for name in ("bounds", "loads", "savings")}
    if problem == "tsp":
        return {**found, "frame": framed, "bounds": [*framed, told["bounds"]], "all": [*begun, told["bounds"]]}
    named = {name: [*framed, told[name]] for name in ("loads", "savings")}
    return {**found, "frame": framed, **named, "all": [*begun, told["savings"], GIVEN]}


SAYS = {
    "plain": "the paper's recipe: GD 16x2",
    "polish": "greedy solutions, polished by local search",
    "start": "... and windows (routes) or successors (shops)",
    "batches": "... and batches of 128, averaged weights",
    "recover": "... and recoveries",
    "window": "... and solutions of the last eight epochs, improved or not",
    "frame": "... and nodes seen from the current one (routes)",
    "loads": "`frame` and what fits, what is left, directions from the depot (cvrp)",
    "savings": "`frame` and what the savings heuristic would do, now and after each of some actions (cvrp)",
    "bounds": "`frame` and what spanning trees say (tsp); `recover` and lower bounds (shops)",
    "active": "`recover` and active schedules only (shops)",
    "all": "GD 16x2 without local search, by networks with `bounds` (tsp) or `savings` (cvrp); `bounds` and `active` (shops)",
}


def settings_of(case: str, recipe: str, seed: int) -> RunSettings:
    problem, changes = CASES[case]
    tree: Tree = {"training": {"epochs": 10**6, "seed": seed, "learning_rate": 1e-3, "sampling_batch": 32}}
    for change in (changes, *recipes(problem)[recipe]):
        tree = joined(tree, change)
    return entry(problem).settings("paper", tree)


def joined(tree: Tree, change: Tree) -> Tree:
    return {name: {**tree.get(name, {}), **change.get(name, {})} for name in {*tree, *change}}


@cache
def instances(case: str, count: int) -> tuple[Any, float]:
    """Validation instances, and the mean objective of a long local search on them."""
    problem = entry(CASES[case][0]).settings("paper", CASES[case][1]).training_problem
    state = problem.generate(count, generator=torch.Generator().manual_seed(4321))
    start = first_solutions(problem, state)
    best = problem.local_search(state, start, effort=LONG, seeds=torch.arange(count))
    return state, final(problem, state, best).mean().item()


def first_solutions(problem: Any, state: Any) -> torch.Tensor:
    """The first allowed action, again and again."""
    actions = []
    while not bool(problem.done(state).all()):
        actions.append(problem.mask(state).int().argmax(1))
        state = problem.step(state, actions[-1])
    return torch.stack(actions, 1)


def final(problem: Any, state: Any, actions: torch.Tensor) -> torch.Tensor:
    for action in actions.unbind(1):
        state = problem.step(state, action)
    return problem.objective(state)


RULES = {"tsp": "spanning-trees", "cvrp": "savings-ahead"}
"""What networks with `bounds` or `savings` are told, without any network."""


@cache
def rule_gap(case: str, count: int) -> float | None:
    """The gap of that rule on the validation instances, if there is one."""
    kit = entry(CASES[case][0]).kit
    if kit.name not in RULES:
        return None
    state, reference = instances(case, count)
    problem = entry(CASES[case][0]).settings("paper", CASES[case][1]).training_problem
    arrays = [
        {name: each[row].numpy() for name, each in state.tensors().items() if name in state.per_instance}
        for row in range(count)
    ]
    actions = torch.tensor([kit.baselines[RULES[kit.name]].solve(each, Limit(None, 1), 0) for each in arrays])
    return 100 * (final(problem, state, actions).mean().item() / reference - 1)


def run(job: Job) -> Tree:
    """Trains until the time is over: a point per epoch, and the policies of the middle and the end."""
    case, recipe, seed, minutes, count = job
    torch.set_num_threads(1)
    settings = settings_of(case, recipe, seed)
    problem, training = settings.training_problem, settings.training
    state, reference = instances(case, count)
    torch.manual_seed(seed)
    policy = entry(CASES[case][0]).build(settings)
    points: list[Tree] = []
    saved: dict[str, Path] = {}
    began = time.process_time()
    for epoch in self_improve(problem, policy, settings.sampler.build, validation=state, settings=training):
        spent = time.process_time() - began
        gap = 100 * (epoch.validation / reference - 1)
        examples = epoch.index * training.batches * training.batch_size
        points.append({"seconds": round(spent, 1), "examples": examples, "gap": round(gap, 3), "loss": round(epoch.loss, 4)})
        for name, part in (("middle", 30 * minutes), ("end", 60 * minutes)):
            if spent > part and name not in saved:
                weights = epoch.checkpoint()["averaged"] or policy.state_dict()
                saved[name] = RESULTS / "weights" / f"{case}-{recipe}-{seed}-{name}.safetensors"
                write_atomically(saved[name], lambda path, kept=weights: save_file(kept, path))
        if spent > 60 * minutes:
            break
    return {"case": case, "recipe": recipe, "seed": seed, "points": points}


def measured(jobs: list[Job], workers: int, console: Console) -> list[Tree]:
    """The results of all jobs; those that have a file are read."""
    (RESULTS / "weights").mkdir(parents=True, exist_ok=True)
    files = {job: file_of(job) for job in jobs}
    missing = {job: job for job in jobs if not files[job].exists()}
    for job, result in track(in_processes(run, missing, workers), "training", len(missing), console=console):
        write_atomically(files[job], lambda path, result=result: path.write_text(json.dumps(result)))
    return [json.loads(path.read_text()) for path in files.values()]


def file_of(job: Job) -> Path:
    return RESULTS / f"{job[0]}-{job[1]}-{job[2]}-{job[3]:g}min.json"


def curves(options: argparse.Namespace, console: Console) -> None:
    names = options.recipes.split(",")
    each = (case.partition(":") for case in options.only.split(","))
    minutes = {case: float(own or options.minutes) for case, _, own in each}
    jobs = [
        (case, name, seed, minutes[case], options.instances)
        for seed in range(options.seeds)
        for case in minutes
        for name in names
        if name in recipes(CASES[case][0])
    ]
    if options.kept:
        jobs = [job for job in jobs if file_of(job).exists()]
    results = measured(jobs, options.workers, console)
    cases = {case: {name: runs for name in names if (runs := of(results, case, name))} for case in minutes}
    rules = {case: rule_gap(case, options.instances) for case in cases}
    draw(options.figures / "learning.png", cases, rules)
    console.print(table(cases, rules), markup=False)


def of(results: list[Tree], case: str, recipe: str) -> list[list[Tree]]:
    return [result["points"] for result in results if (result["case"], result["recipe"]) == (case, recipe)]


def at(points: list[Tree], seconds: float) -> float:
    """The best gap up to then: a training keeps its best policy."""
    return min((point["gap"] for point in points if point["seconds"] <= seconds), default=float("nan"))


def draw(path: Path, cases: dict[str, dict[str, list[list[Tree]]]], rules: dict[str, float | None]) -> None:
    """One picture per case: the mean over seeds, with the range of all of them as a band; how many there are stands behind the name. Rules are dotted lines."""
    with saved_figure(path, columns=len(cases), size=(4.2, 4.2)) as axes:
        for axis, (case, by_recipe) in zip([axes] if len(cases) == 1 else axes, cases.items(), strict=True):
            for name, runs in by_recipe.items():
                end = min(points[-1]["seconds"] for points in runs)
                times = [end * i / 60 for i in range(3, 61)]
                values = [[at(points, t) for points in runs] for t in times]
                colour = colormaps["tab20"](list(SAYS).index(name))  # the same in all pictures
                axis.plot(times, [fmean(each) for each in values], label=f"{name} ({len(runs)})", color=colour)
                axis.fill_between(times, list(map(min, values)), list(map(max, values)), alpha=0.2, color=colour)
            if (gap := rules[case]) is not None:
                axis.axhline(gap, color="black", linestyle=":", label="the rule alone")
            axis.set(title=case, xlabel="core-seconds", ylabel="greedy gap in percent", yscale="log")
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
            axis.yaxis.set_minor_formatter("{x:g}")
            axis.grid(alpha=0.3, which="both")
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize="small", frameon=False)


def table(cases: dict[str, dict[str, list[list[Tree]]]], rules: dict[str, float | None]) -> str:
    """Markdown: the gap at the end, as mean and standard deviation over seeds (and how many)."""
    names = list(dict.fromkeys(name for by_recipe in cases.values() for name in by_recipe))
    lines = [f"| recipe | {' | '.join(cases)} |", "|---|" + "---|" * len(cases)]
    for name in names:
        cells = []
        for by_recipe in cases.values():
            ends = [at(points, float("inf")) for points in by_recipe.get(name, [])]
            spread = f" ± {stdev(ends):.2f}" if len(ends) > 1 else ""
            cells.append(f"{fmean(ends):.2f}{spread} % ({len(ends)})" if ends else "")
        lines.append(f"| {SAYS[name]} (`{name}`) | {' | '.join(cells)} |")
    lines.append(f"| the rule alone | {' | '.join('' if gap is None else f'{gap:.2f} %' for gap in rules.values())} |")
    return "\n".join(lines)


def diagnose(options: argparse.Namespace, console: Console) -> None:
    """Labels alone (`batches`) against recoveries (`recover`): examples seen, remaining length, and the noise of a validation."""
    case = options.only.split(",")[0]
    results = measured(
        [(case, name, 0, options.minutes, options.instances) for name in ("batches", "recover")], options.workers, console
    )
    runs = {result["recipe"]: result["points"] for result in results}
    state, reference = instances(case, options.instances)
    problem = settings_of(case, "recover", 0).training_problem
    tours = problem.local_search(state, first_solutions(problem, state), effort=LONG, seeds=torch.arange(options.instances))
    policies = {name: trained(case, name, "end") for name in runs}
    lost = {name: loss_by_remaining(problem, policy, state, tours) for name, policy in policies.items()}
    with saved_figure(options.figures / "diagnosis.png", columns=4, size=(4.2, 3.6)) as axes:
        for name, points in runs.items():
            kept = [point for point in points if point["seconds"] > 5]
            axes[0].plot([p["examples"] / 1e6 for p in kept], [p["gap"] for p in kept], label=name)
            axes[1].plot([p["loss"] for p in kept], [p["gap"] for p in kept], ".", label=name)
            axes[2].plot(*zip(*[(r, loss) for r, loss, _ in lost[name]], strict=True), label=name)
            axes[3].plot(*zip(*[(r, gap) for r, _, gap in lost[name]], strict=True), label=name)
        axes[0].set(xlabel="million examples", ylabel="greedy gap in percent", title="Examples")
        axes[1].set(xlabel="loss of the epoch", ylabel="greedy gap in percent", title="Loss is not it")
        axes[2].set(xlabel="cities left of a good tour", ylabel="loss", title="Loss by remaining length")
        axes[3].set(
            xlabel="cities left when greedy takes over", ylabel="gap of the tour in percent", title="Where greedy loses"
        )
        for axis in axes:
            axis.grid(alpha=0.3)
            axis.legend()
    console.print(noise(problem, case, state, reference), markup=False)


def trained(case: str, recipe: str, when: str) -> Any:
    policy = entry(CASES[case][0]).build(settings_of(case, recipe, 0))
    policy.load_state_dict(load_file(RESULTS / "weights" / f"{case}-{recipe}-0-{when}.safetensors"))
    return policy.eval()


@torch.no_grad()
def loss_by_remaining(problem: Any, policy: Any, state: Any, tours: torch.Tensor) -> list[tuple[int, float, float]]:
    """For numbers r of steps left: the loss on states of good solutions, and the gap when greedy goes on from them."""
    depth, best = tours.shape[1], final(problem, state, tours)
    result = []
    for left in sorted({max(2, round(depth * i / 12)) for i in range(1, 13)}):
        there = replay(problem, state, tours, torch.full((len(tours),), depth - left))
        target = Examples(there, tours[:, depth - left])
        loss = action_losses(problem, policy, target).mean().item()
        gap = 100 * (greedy_objective(problem, policy, there) / best - 1).mean().item()
        result.append((left, loss, gap))
    return result


def noise(problem: Any, case: str, state: Any, reference: float) -> str:
    """How often a validation on few instances takes the worse of two policies (the middle and the end of a run) for the better one."""
    middle, end = (greedy_objective(problem, trained(case, "recover", when), state) for when in ("middle", "end"))
    difference = 100 * (middle - end) / reference
    lines = [
        f"From the middle to the end of a run greedy gained {difference.mean():.3f} points of gap, with a standard deviation of "
        f"{difference.std():.3f} over instances (paired); of one policy it is {100 * (end / reference).std():.3f}.",
        "",
        "| validation instances | a true gain of 0.05 points is taken for a loss | of 0.2 points |",
        "|---|---|---|",
    ]
    normal = torch.distributions.Normal(0.0, 1.0)
    for count in (100, 200, 300, 1000):
        wrong = [normal.cdf(torch.tensor(-gain * count**0.5 / difference.std().item())).item() for gain in (0.05, 0.2)]
        lines.append(f"| {count} | {100 * wrong[0]:.0f} % | {100 * wrong[1]:.0f} % |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["curves", "diagnose"])
    parser.add_argument("--minutes", type=float, default=4.0, help="of one core, per run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--only",
        default="tsp20,tsp50,cvrp20,cvrp50,jssp6,jssp10",
        help="cases; jssp6:2 has 2 minutes per run; the first one is diagnosed",
    )
    parser.add_argument("--recipes", default="plain,polish,start,batches,recover,window,all")
    parser.add_argument("--instances", type=int, default=200, help="for validation")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time")
    parser.add_argument("--kept", action="store_true", help="curves of the runs that are kept; none is started")
    parser.add_argument("--figures", type=Path, default=FIGURES)
    options = parser.parse_args(arguments)
    {"curves": curves, "diagnose": diagnose}[options.study](options, Console())


if __name__ == "__main__":
    main(sys.argv[1:])
