"""The demonstration behind `make run`: train on TSP-20 from scratch, then compare samplers on unseen instances."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

from gumbeldore.cli.catalogue import entry
from gumbeldore.cli.run_folder import FILES, SETTINGS, RunFolder
from gumbeldore.cli.run_settings import RunSettings
from gumbeldore.cli.runs import pick_device, train
from gumbeldore.cli.settings import as_plain
from gumbeldore.errors import require
from gumbeldore.files import write_atomically
from gumbeldore.policy import Network
from gumbeldore.problems import TSP
from gumbeldore.problems.tsp.experts import ExactTour, solve_tsp
from gumbeldore.problems.tsp.plot import plot_tours
from gumbeldore.problems.tsp.verify import verify_tsp
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch
from gumbeldore.training.processes import in_order, in_processes

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
    points = np.random.RandomState(1234).uniform(size=(settings.instances, 20, 2))  # too many are found before the training
    policy = _trained(settings, console)
    console.print(f"\nSolving {settings.instances} unseen instances to proven optimality with OR-Tools CP-SAT ...")
    optimal = list(_tracked(_exactly(points), len(points), console))
    require(all(tour.optimal for tour in optimal), "CP-SAT did not prove every tour optimal in time.")
    lengths = np.array([tour.length for tour in optimal])
    rows, best = _compare(settings, policy, points, lengths, console)
    console.print(_table(rows, settings, float(lengths.mean())))
    _draw(settings.folder, points, lengths, optimal, best)
    gaps = {name: gap for name, _, gap, _ in rows}
    write_atomically(settings.folder / "gaps.json", lambda path: path.write_text(json.dumps(gaps, indent=1) + "\n"))
    console.print(f"Pictures: [bold]{settings.folder}/tours.png[/bold] and [bold]{settings.folder}/training.png[/bold].")
    return gaps


def command(arguments: list[str]) -> None:
    """gumbeldore demo"""
    demo(tyro.cli(DemoSettings, args=arguments, prog="gumbeldore demo", description=DemoSettings.__doc__))


def _exactly(instances: NDArray[np.float64], workers: int = 2) -> Iterator[ExactTour]:
    """A provably shortest tour of each instance, in order, from parallel processes."""
    return in_order(in_processes(solve_tsp, dict(enumerate(instances)), workers))


Row = tuple[str, int, float, float]  # sampler, sequences per instance, gap in percent, seconds


def _trained(settings: DemoSettings, console: Console) -> Network:
    tsp = entry("tsp")
    run, folder = tsp.settings(settings.preset), RunFolder(settings.folder)
    if settings.fresh:
        _clear(folder, run)
    return train(tsp, run, settings.folder, resume=folder.checkpoints.exist, console=console)


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
    settings: DemoSettings, policy: Network, points: NDArray[np.float64], lengths: NDArray[np.float64], console: Console
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
        state = TSP(20).instances(torch.tensor(points[:count], dtype=torch.float32, device=device))
        solutions = sampler(TSP(20), policy, state, generator=torch.Generator().manual_seed(0))
        seconds = time.perf_counter() - start
        tours[name] = [[0, *actions] for actions in solutions.best_actions.tolist()]
        rows.append((name, budget, 100 * float(np.mean(_verified(points, tours[name]) / lengths[:count] - 1)), seconds))
    return rows, tours


def _verified(points: NDArray[np.float64], tours: Sequence[list[int]]) -> NDArray[np.float64]:
    verdicts = [verify_tsp(cities, tour) for cities, tour in zip(points, tours, strict=False)]
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


def _draw(
    folder: Path,
    points: NDArray[np.float64],
    lengths: NDArray[np.float64],
    optimal: list[ExactTour],
    tours: dict[str, list[list[int]]],
) -> None:
    """The instance that greedy solves worst, by three samplers and exactly."""
    greedy = _verified(points, tours["greedy (first instances)"]) / lengths[: len(tours["greedy (first instances)"])]
    index = int(greedy.argmax())
    names = ("greedy", "without replacement (WOR)", "Gumbeldore (GD)")
    shown = [tours[name][index] for name in names]
    titles = [f"{name}\n{_verified(points[index : index + 1], [tour])[0]:.3f}" for name, tour in zip(names, shown, strict=True)]
    plot_tours(folder / "tours.png", points[index], [*shown, optimal[index].tour], [*titles, f"optimal\n{lengths[index]:.3f}"])


def _tracked(tours: Iterable[ExactTour], total: int, console: Console) -> Iterable[ExactTour]:
    with Progress(console=console, transient=True) as progress:
        yield from progress.track(tours, total=total, description="exact solver")
