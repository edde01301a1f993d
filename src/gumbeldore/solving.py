"""Solving instances from the command line: a file's or random ones, with progress, a table, a plot and a JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from gumbeldore.catalogue import SamplerSettings
from gumbeldore.checkpoint import load_policy, write_atomically
from gumbeldore.errors import CheckpointError, require
from gumbeldore.formats import normalised, read_points
from gumbeldore.plots.routes import plot_tours
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.runs import pick_device
from gumbeldore.samplers import draw_seeds
from gumbeldore.solutions import Solutions
from gumbeldore.verification import verify_tsp


@dataclass(frozen=True)
class SolveSettings:
    """Solve an instance from a file, or random ones. Ctrl-C keeps the best solutions found so far."""

    policy: Path  # a policy.safetensors written by `gumbeldore train`
    instance: Path | None = None  # cities: .csv or .txt (x, y), .npy, .json or TSPLIB .tsp; without it random instances
    cities: int = 20  # of random instances
    count: Annotated[int, tyro.conf.arg(name="count")] = 1  # how many random instances
    seed: int = 0  # of the random instances and of the sampling
    sampler: SamplerSettings = field(default_factory=SamplerSettings)
    folder: Path = Path("runs/solve")  # solutions.json and tours.png go here
    device: str = "auto"


def solve_tsp_files(settings: SolveSettings, console: Console | None = None) -> list[dict[str, Any]]:
    """Solves, verifies, prints, plots and saves; returns what it saved."""
    console = console or Console()
    require(settings.count >= 1, f"`count` must be at least 1, got {settings.count}.")
    device = pick_device(settings.device)
    policy = load_policy(settings.policy)
    if not isinstance(policy, TSPPolicy):
        raise CheckpointError(f"{settings.policy} is a {type(policy).__name__}, not a policy for the TSP.")
    points, scale = _instances(settings)
    problem = TSP(points.shape[1])
    state = problem.instances(torch.tensor(points, dtype=torch.float32, device=device))
    seeds = draw_seeds(len(points), torch.Generator().manual_seed(settings.seed)).to(device)
    solutions = _search(settings, problem, policy.to(device), state, seeds, console)
    records = []
    for index, actions in enumerate(solutions.best_actions.tolist()):
        tour = [0, *actions]
        verdict = verify_tsp(points[index], tour)
        assert verdict.feasible, verdict.reason
        records.append({"instance": index, "tour": tour, "length": -verdict.objective * scale})
    _show(console, solutions, records)
    _save(settings.folder, points, records, console)
    return records


def _instances(settings: SolveSettings) -> tuple[NDArray[np.float64], float]:
    """Coordinates in the unit square (instance, city, 2) and the scale of the original ones."""
    if settings.instance is None:
        generator = np.random.default_rng(settings.seed)
        return generator.uniform(size=(settings.count, settings.cities, 2)), 1.0
    points, scale = normalised(read_points(settings.instance))
    return points[None], scale


def _search(settings: SolveSettings, problem: TSP, policy: Any, state: Any, seeds: torch.Tensor, console: Console) -> Solutions:
    """Round by round with a progress bar; an interrupt returns what there is."""
    sampler = settings.sampler.build()
    parts: list[Solutions] = []
    chunks = sampler.chunks(problem, state)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("sampling", total=len(chunks) * settings.sampler.rounds)
        try:
            for number, rows in enumerate(chunks):
                part = None
                try:
                    for part in sampler.stream(problem, policy, state.rows(rows).compact(), seeds[rows]):
                        best = -part.best_objective.mean().item()
                        progress.update(task, advance=1, description=f"sampling (best so far {best:.4f})")
                finally:
                    if part is not None:
                        parts.append(part)
                progress.update(task, completed=(number + 1) * settings.sampler.rounds)
        except KeyboardInterrupt:
            if not parts:
                raise
            console.print("Interrupted: these are the best solutions found so far.")
    return Solutions.concatenate(parts)


def _show(console: Console, solutions: Solutions, records: list[dict[str, Any]]) -> None:
    table = Table("instance", "length", "sequences", "mass left", "policy evaluations", title="Shortest tours found")
    diagnostics = solutions.diagnostics
    for record in records[:20]:
        index = record["instance"]
        table.add_row(
            str(index),
            f"{record['length']:.4f}",
            str(int(solutions.filled[index].sum())),
            f"{diagnostics.remaining_mass[index].item():.3f}",
            f"{int(diagnostics.evaluations[index])}",
        )
    console.print(table)
    if len(records) > 20:
        console.print(f"... and {len(records) - 20} more; mean length {np.mean([r['length'] for r in records]):.4f}")


def _save(folder: Path, points: NDArray[np.float64], records: list[dict[str, Any]], console: Console) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "solutions.json", lambda path: path.write_text(json.dumps(records, indent=1) + "\n"))
    titles = [f"length {record['length']:.4f}" for record in records[:1]]
    plot_tours(folder / "tour.png", points[0], [records[0]["tour"]], titles)
    console.print(f"Saved {folder / 'solutions.json'} and {folder / 'tour.png'}.")
