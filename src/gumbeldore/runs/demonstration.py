"""The demonstration behind `make run`: train on TSP-20 from scratch, then compare samplers on unseen instances, also of TSP-50."""

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
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from gumbeldore.bars import Bars
from gumbeldore.errors import require
from gumbeldore.files import write_atomically
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.random_instances import generated
from gumbeldore.kits.solver import MINUTE, Solved
from gumbeldore.local_search.compiling import available
from gumbeldore.parallel.devices import pick_device
from gumbeldore.parallel.processes import in_order, in_processes
from gumbeldore.policy import Network
from gumbeldore.runs.folder import FILES, SETTINGS, RunFolder
from gumbeldore.runs.labelling import solve_instance
from gumbeldore.runs.options import RunOptions
from gumbeldore.runs.presets import Entry, entry
from gumbeldore.runs.records import as_plain
from gumbeldore.runs.run import TrainingRun
from gumbeldore.runs.settings import RunSettings
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch

PROBLEM, SET, LARGER, EXACT = "tsp", "tsp20", "tsp50", "ortools"
"""What is demonstrated: a problem, the standard sets whose first instances are solved, and the solver that proves optima."""

_LONG = 100
"""Attempts per city of the local search that stands in for an optimum of the larger instances."""

_PICTURES = ("tours.png", "gaps.json")
"""What the demonstration adds to the files of its run."""


@dataclass(frozen=True)
class DemoSettings:
    """Train a small TSP-20 policy from scratch for about three minutes, then solve instances it has never seen."""

    folder: Path = Path("runs/demo")  # all files go here; a finished training found there is used again
    preset: str | None = None  # of `gumbeldore train tsp`; None: demo, or plain where no local search was compiled
    instances: int = 1000  # unseen test instances, numpy.random.RandomState(1234)
    sampled: int = 100  # how many of them the samplers solve (greedy solves all)
    fresh: bool = False  # train anew even if the folder holds a finished training


def demo(settings: DemoSettings, console: Console | None = None) -> dict[str, float]:
    """Returns the mean gap to the optimum by sampler, in percent."""
    console = console or Console()
    require(1 <= settings.sampled <= settings.instances, "`sampled` must lie in 1 .. `instances`.")
    problem = entry(PROBLEM)
    generator: Any = problem.kit.standard[SET]
    unseen = generated(replace(generator, count=settings.instances))  # too many are found before the training
    policy = _trained(problem, settings, console)
    console.print(f"\nSolving {settings.instances} unseen instances to proven optimality with OR-Tools CP-SAT ...")
    optimal = list(_tracked(_exactly(problem.kit, unseen), len(unseen), console))
    require(all(tour.optimal for tour in optimal), "CP-SAT did not prove every tour optimal in time.")
    lengths = np.array([tour.cost for tour in optimal])
    greedy = _solved(problem.kit, policy, unseen, {"greedy": Greedy()}, console)
    solved = _solved(problem.kit, policy, generated(replace(generator, count=settings.sampled)), _SAMPLERS, console)
    console.print(_table("TSP-20, unseen instances, gap to the optimum", [*greedy, *solved[1:]], lengths))
    _draw(settings.folder, problem.kit, unseen, optimal, solved)
    gaps = {each.name: each.gap(lengths) for each in (*greedy, *solved[1:])}
    if available():
        gaps |= _larger(problem, policy, settings.sampled, console)
    write_atomically(settings.folder / "gaps.json", lambda path: path.write_text(json.dumps(gaps, indent=1) + "\n"))
    console.print(f"Pictures: [bold]{settings.folder}/tours.png[/bold] and [bold]{settings.folder}/training.png[/bold].")
    return gaps


def _larger(problem: Entry, policy: Network, count: int, console: Console) -> dict[str, float]:
    """The same policy on instances that are larger than any it was trained on, where samplers differ."""
    generator: Any = problem.kit.standard[LARGER]
    unseen = generated(replace(generator, count=count))
    solved = _solved(problem.kit, policy, unseen, _SAMPLERS, console)
    state, best = unseen.state(), torch.tensor(solved[-1].tours)
    polished = unseen.kind.problem.local_search(state, best, effort=_LONG, seeds=torch.arange(count))
    lengths = _verified(problem.kit, unseen, polished.tolist())
    console.print(_table("TSP-50, by the same policy, gap to the best tours of a long local search", solved, lengths))
    return {f"{LARGER} {each.name}": each.gap(lengths) for each in solved}


def _exactly(kit: Kit, instances: InstanceSet, workers: int = 2) -> Iterator[Solved]:
    """A provably shortest tour of each instance, in order, from parallel processes."""
    items = {index: (index, instances.instance(index)) for index in range(len(instances))}
    return in_order(in_processes(partial(solve_instance, kit.experts[EXACT], MINUTE), items, workers))


def _trained(problem: Entry, settings: DemoSettings, console: Console) -> Network:
    preset = settings.preset or ("demo" if available() else "plain")
    run, folder = problem.settings(preset), RunFolder(settings.folder)
    if settings.fresh:
        _clear(folder, run)
    options = RunOptions(resume=folder.checkpoints.exist, console=console)
    return TrainingRun(problem, run, settings.folder, options).finish()


def _clear(folder: RunFolder, run: RunSettings) -> None:
    """Removes an earlier demonstration, and nothing else: neither strange files nor another run."""
    ours = (*FILES, *_PICTURES)
    if not any((folder / name).exists() for name in ours):
        return
    theirs = folder.settings()
    require(
        all(theirs.get(name) == value for name, value in as_plain(run).items()),
        f"--fresh removes the files of a demonstration, but {folder / SETTINGS} is not that of this one. Choose another --folder, or "
        f"remove what is in it yourself.",
    )
    folder.clear(_PICTURES)


_SAMPLERS: dict[str, Sampler] = {
    "greedy": Greedy(),
    "beam search": BeamSearch(64),
    "with replacement (WR)": WithReplacement(64),
    "without replacement (WOR)": StochasticBeamSearch(16, 4),
    "Gumbeldore (GD), the paper's settings": Gumbeldore(16, 4, sigma=0.3),
    "Gumbeldore without settings": Adaptive(64),
}
"""All but greedy find 64 sequences of each instance."""


@dataclass(frozen=True)
class _Solved:
    """What a sampler found."""

    name: str
    tours: list[list[int]]
    lengths: NDArray[np.float64]
    evaluations: float  # of the policy, per instance
    seconds: float

    def gap(self, references: NDArray[np.float64]) -> float:
        """Mean, in percent."""
        return 100 * float(np.mean(self.lengths / references[: len(self.lengths)] - 1))


def _solved(kit: Kit, policy: Network, instances: InstanceSet, samplers: dict[str, Sampler], console: Console) -> list[_Solved]:
    """Every sampler on the same instances; tours are checked by independent code."""
    found = []
    for name, sampler in track(samplers.items(), "sampling", console=console, transient=True):
        start = time.perf_counter()
        state = instances.state().to(pick_device())
        solutions = sampler(instances.kind.problem, policy, state, generator=torch.Generator().manual_seed(0))
        seconds = time.perf_counter() - start
        tours = solutions.best_actions.tolist()
        evaluations = solutions.diagnostics.evaluations.double().mean().item()
        found.append(_Solved(name, tours, _verified(kit, instances, tours), evaluations, seconds))
    return found


def _verified(kit: Kit, instances: InstanceSet, tours: Sequence[list[int]]) -> NDArray[np.float64]:
    """The lengths of the tours of the first instances."""
    assert kit.solution_format.verify is not None
    verdicts = [kit.solution_format.verify(instances.instance(index), tour) for index, tour in enumerate(tours)]
    for verdict in verdicts:
        assert verdict.feasible, verdict.reason
    return np.array([-verdict.objective for verdict in verdicts])


def _table(title: str, rows: list[_Solved], references: NDArray[np.float64]) -> Table:
    table = Table("sampler", "instances", "evaluations each", "gap", "seconds", title=title)
    for row in rows:
        cells = str(len(row.tours)), f"{row.evaluations:.0f}", f"{row.gap(references):.2f} %", f"{row.seconds:.1f}"
        table.add_row(row.name, *cells)
    table.add_row("reference", str(len(references)), "", f"mean length {references.mean():.4f}", "")
    return table


def _draw(folder: Path, kit: Kit, unseen: InstanceSet, optimal: list[Solved], solved: list[_Solved]) -> None:
    """The instance that greedy solves worst, by three samplers and exactly."""
    by_name = {each.name: each for each in solved}
    greedy, others = by_name["greedy"], [by_name[name] for name in list(_SAMPLERS)[3:5]]
    references = np.array([each.cost for each in optimal[: len(greedy.tours)]])
    index = int((greedy.lengths / references).argmax())
    shown = [(each.name.split(",")[0], each.tours[index], each.lengths[index]) for each in (greedy, *others)]
    shown.append(("optimal", optimal[index].actions, references[index]))
    assert kit.solution_format.compare is not None
    titles = [f"{name}\n{length:.3f}" for name, _, length in shown]
    kit.solution_format.compare(folder / "tours.png", unseen.instance(index), [tour for _, tour, _ in shown], titles)


def _tracked(tours: Iterable[Solved], total: int, console: Console) -> Iterable[Solved]:
    with Bars(*Bars.get_default_columns(), console=console) as progress:
        yield from progress.track(tours, total=total, description="exact solver")
