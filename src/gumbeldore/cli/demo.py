"""The demonstration behind `make run`: train on TSP-20 from scratch, then compare samplers on unseen instances."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

from gumbeldore.cli.catalogue import Entry, entry
from gumbeldore.cli.generate import generated
from gumbeldore.cli.label import solve_instance
from gumbeldore.cli.run_folder import FILES, SETTINGS, RunFolder
from gumbeldore.cli.run_settings import RunSettings
from gumbeldore.cli.runs import pick_device, train
from gumbeldore.cli.settings import as_plain
from gumbeldore.errors import require
from gumbeldore.files import write_atomically
from gumbeldore.policy import Network
from gumbeldore.problems.instances import InstanceSet
from gumbeldore.problems.kit import Kit
from gumbeldore.problems.solvers import MINUTE, Solved
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch
from gumbeldore.training.processes import in_order, in_processes

PROBLEM, SET, EXACT = "tsp", "tsp20", "ortools"
"""What is demonstrated: a problem, the standard set whose first instances are solved, and the solver that proves optima."""

PICTURES = ("tours.png", "gaps.json")
"""What the demonstration adds to the files of its run."""


@dataclass(frozen=True)
class DemoSettings:
    """Train a small TSP-20 policy from scratch for about three minutes, then solve instances it has never seen."""

    folder: Path = Path("runs/demo")  # all files go here; a finished training found there is used again
    preset: str = "demo"  # of `gumbeldore train tsp`
    instances: int = 1000  # unseen test instances, numpy.random.RandomState(1234)
    sampled: int = 100  # how many of them the samplers solve (greedy solves all)
    fresh: bool = False  # train anew even if the folder holds a finished training


def demo(settings: DemoSettings, console: Console | None = None) -> dict[str, float]:
    """Returns the mean gap to the optimum by sampler, in percent."""
    console = console or Console()
    require(1 <= settings.sampled <= settings.instances, "`sampled` must lie in 1 .. `instances`.")
    problem = entry(PROBLEM)
    recipe: Any = problem.kit.standard[SET]
    unseen = generated(replace(recipe, count=settings.instances))  # too many are found before the training
    policy = _trained(problem, settings, console)
    console.print(f"\nSolving {settings.instances} unseen instances to proven optimality with OR-Tools CP-SAT ...")
    optimal = list(_tracked(_exactly(problem.kit, unseen), len(unseen), console))
    require(all(tour.optimal for tour in optimal), "CP-SAT did not prove every tour optimal in time.")
    lengths = np.array([tour.cost for tour in optimal])
    rows, best = _compare(settings, problem.kit, policy, unseen, lengths, console)
    console.print(_table(rows, settings, float(lengths.mean())))
    _draw(settings.folder, problem.kit, unseen, optimal, best)
    gaps = {name: gap for name, _, gap, _ in rows}
    write_atomically(settings.folder / "gaps.json", lambda path: path.write_text(json.dumps(gaps, indent=1) + "\n"))
    console.print(f"Pictures: [bold]{settings.folder}/tours.png[/bold] and [bold]{settings.folder}/training.png[/bold].")
    return gaps


def command(arguments: list[str]) -> None:
    """gumbeldore demo"""
    demo(tyro.cli(DemoSettings, args=arguments, prog="gumbeldore demo", description=DemoSettings.__doc__))


def _exactly(kit: Kit, instances: InstanceSet, workers: int = 2) -> Iterator[Solved]:
    """A provably shortest tour of each instance, in order, from parallel processes."""
    items = {index: (index, instances.instance(index)) for index in range(len(instances))}
    return in_order(in_processes(partial(solve_instance, kit.experts[EXACT], MINUTE), items, workers))


Row = tuple[str, int, float, float]  # sampler, sequences per instance, gap in percent, seconds


def _trained(problem: Entry, settings: DemoSettings, console: Console) -> Network:
    run, folder = problem.settings(settings.preset), RunFolder(settings.folder)
    if settings.fresh:
        _clear(folder, run)
    return train(problem, run, settings.folder, resume=folder.checkpoints.exist, console=console)


def _clear(folder: RunFolder, run: RunSettings) -> None:
    """Removes an earlier demonstration, and nothing else: neither strange files nor another run."""
    ours = (*FILES, *PICTURES)
    if not any((folder / name).exists() for name in ours):
        return
    theirs = folder.settings()
    require(
        all(theirs.get(name) == value for name, value in as_plain(run).items()),
        f"--fresh removes the files of a demonstration, but {folder / SETTINGS} is not that of this one. Choose another --folder, or "
        f"remove what is in it yourself.",
    )
    folder.clear(PICTURES)


def _compare(
    settings: DemoSettings,
    kit: Kit,
    policy: Network,
    unseen: InstanceSet,
    lengths: NDArray[np.float64],
    console: Console,
) -> tuple[list[Row], dict[str, list[list[int]]]]:
    """Every sampler on the same instances with the same number of sequences; tours are checked by independent code."""
    samplers: dict[str, tuple[Sampler, int, int]] = {
        "greedy": (Greedy(), 1, settings.instances),
        "greedy (first instances)": (Greedy(), 1, settings.sampled),
        "beam search": (BeamSearch(64), 64, settings.sampled),
        "with replacement (WR)": (WithReplacement(64), 64, settings.sampled),
        "without replacement (WOR)": (StochasticBeamSearch(16, 4), 64, settings.sampled),
        "Gumbeldore (GD)": (Gumbeldore(16, 4, sigma=0.3), 64, settings.sampled),
    }
    device = pick_device()
    rows: list[Row] = []
    tours: dict[str, list[list[int]]] = {}
    for name, (sampler, budget, count) in track(samplers.items(), "sampling", console=console, transient=True):
        start = time.perf_counter()
        state = unseen.state(rows=slice(count)).to(device)
        solutions = sampler(unseen.kind.problem, policy, state, generator=torch.Generator().manual_seed(0))
        seconds = time.perf_counter() - start
        tours[name] = solutions.best_actions.tolist()
        rows.append((name, budget, 100 * float(np.mean(_verified(kit, unseen, tours[name]) / lengths[:count] - 1)), seconds))
    return rows, tours


def _verified(kit: Kit, instances: InstanceSet, tours: Sequence[list[int]]) -> NDArray[np.float64]:
    """The lengths of the tours of the first instances."""
    assert kit.form.verify is not None
    verdicts = [kit.form.verify(instances.instance(index), tour) for index, tour in enumerate(tours)]
    for verdict in verdicts:
        assert verdict.feasible, verdict.reason
    return np.array([-verdict.objective for verdict in verdicts])


def _table(rows: list[Row], settings: DemoSettings, optimum: float) -> Table:
    table = Table("sampler", "instances", "sequences each", "gap to optimum", "seconds", title="TSP-20, unseen instances")
    for name, budget, gap, seconds in rows:
        count = settings.instances if name == "greedy" else settings.sampled
        table.add_row(name, str(count), str(budget), f"{gap:.2f} %", f"{seconds:.1f}")
    table.add_row("CP-SAT (exact)", str(settings.instances), "", f"mean length {optimum:.4f}", "")
    return table


def _draw(folder: Path, kit: Kit, unseen: InstanceSet, optimal: list[Solved], tours: dict[str, list[list[int]]]) -> None:
    """The instance that greedy solves worst, by three samplers and exactly."""
    shown = {
        "greedy": tours["greedy (first instances)"],
        **{name: tours[name] for name in ("without replacement (WOR)", "Gumbeldore (GD)")},
        "optimal": [solved.actions for solved in optimal[: len(tours["greedy (first instances)"])]],
    }
    lengths = {name: _verified(kit, unseen, found) for name, found in shown.items()}
    index = int((lengths["greedy"] / lengths["optimal"]).argmax())
    titles = [f"{name}\n{lengths[name][index]:.3f}" for name in shown]
    assert kit.form.compare is not None
    kit.form.compare(folder / "tours.png", unseen.instance(index), [found[index] for found in shown.values()], titles)


def _tracked(tours: Iterable[Solved], total: int, console: Console) -> Iterable[Solved]:
    with Progress(console=console, transient=True) as progress:
        yield from progress.track(tours, total=total, description="exact solver")
