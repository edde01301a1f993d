"""gumbeldore solve PROBLEM: random instances, or those of given files, with progress, a table, a picture and a JSON file."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from gumbeldore.cli.dispatch import STOPPED
from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.cli.solve_display import Display
from gumbeldore.cli.solve_sampler import SolveSampler
from gumbeldore.errors import CheckpointError, ContractError, require
from gumbeldore.files import check_writable
from gumbeldore.io.policy_files import load_policy, policy_file, read_weights
from gumbeldore.io.reading import read_file
from gumbeldore.kits.instances import InstanceSet, row_arrays
from gumbeldore.kits.kit import Instance, Kit, Record, StateGenerator
from gumbeldore.networks.layers import slow_note
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.problems.geometry import check_nearest
from gumbeldore.runs.presets import CATALOGUE, Entry
from gumbeldore.runs.records import as_plain
from gumbeldore.runs.settings import built
from gumbeldore.runs.training import pick_device, pick_workers
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.policies import is_a_name, policy_for
from gumbeldore.solving.results import Result, shown
from gumbeldore.solving.running import Effort, Failure, Solving
from gumbeldore.solving.saving import save_json

SHOWN = 20
"""Rows of the table."""
MANY = 64
"""From so many instances on it is worth starting processes."""

P = TypeVar("P")
R = TypeVar("R")
A = TypeVar("A")


@dataclass(frozen=True)
class SolveSettings(Generic[R, A]):
    """Solve instances with a trained policy. Ctrl-C keeps the best solutions found so far."""

    recipe: R  # of the random instances; its seed is also that of the sampling
    sampler: A
    policy: str | None = (
        None  # a policy.safetensors, the folder of a run, or the name of one that ships; none: the one that ships for the problem
    )
    folder: Path = Path("runs/solve")  # solutions.json and a picture of the first instance go here
    workers: int | None = None  # processes; by default one per core if there are at least 64 instances
    device: str = "auto"


@dataclass(frozen=True)
class FileSolveSettings(SolveSettings[R, A]):
    """Solve the instances of files, or random ones, with a trained policy. Ctrl-C keeps the best solutions found so far."""

    instances: tuple[Path, ...] = ()  # files in any format that is known for the problem, of any sizes, instead of random ones
    instance: Path | None = None  # the same for one file


@dataclass(frozen=True)
class RoutesSolveSettings(FileSolveSettings[R, A]):
    """Solve the instances of files, or random ones, with a trained policy. Ctrl-C keeps the best solutions found so far."""

    nearest: int | None = None  # go on only to one of so many nearest unvisited nodes: for large instances


@dataclass(frozen=True)
class RandomInstances(Generic[P]):
    """Random instances of a problem that brings no recipe of its own."""

    problem: P
    count: int = 1  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.count >= 1, f"`count` must be at least 1, got {self.count}.")

    def states(self, policy: Network, device: torch.device) -> tuple[Problem[Any], Any]:
        problem = built(self.problem)
        return problem, problem.generate(self.count, generator=torch.Generator().manual_seed(self.seed), device=device)


def command(arguments: list[str]) -> int:
    """gumbeldore solve PROBLEM; returns the exit code."""
    entry, arguments = take_entry("solve", arguments)
    shape, about = options(entry)
    _, stopped = solve(entry, tyro.cli(shape, args=arguments, prog=f"gumbeldore solve {entry.name}", description=about))
    return STOPPED if stopped else 0


def options(entry: Entry) -> tuple[Any, str]:
    """The settings of `gumbeldore solve` for one problem with its own defaults, and their description."""
    usual, recipe = entry.settings("paper" if "paper" in entry.presets() else None).sampler, default_generator(entry)
    sampler = SolveSampler(method=usual.method, sigma=usual.sigma)
    base: Any = SolveSettings if entry.instances is None else FileSolveSettings
    if entry.kit.restrict is not None:
        base = RoutesSolveSettings
    kind = RandomInstances[type(recipe.problem)] if isinstance(recipe, RandomInstances) else type(recipe)  # type: ignore[misc]
    own_recipe = Annotated[kind, tyro.conf.arg(name="", default=recipe)]  # type: ignore[misc, valid-type]
    return base[own_recipe, Annotated[SolveSampler, tyro.conf.arg(default=sampler)]], str(base.__doc__)


def default_generator(entry: Entry) -> Any:
    """One random instance of the size that the small preset trains on."""
    small = entry.settings().problem
    if entry.kit.generator is None:
        return RandomInstances(small)
    plain, kind = as_plain(small), entry.kit.generator
    return kind(**{f.name: plain[f.name] for f in fields(kind) if f.name in plain}, count=1)


def solve(entry: Entry, settings: SolveSettings[Any, Any], console: Console | None = None) -> tuple[list[Record], bool]:
    """Solves, verifies, prints, draws and saves; returns what it saved (docs/reference/files.md), and whether it was stopped early."""
    console, device = console or Console(), pick_device(settings.device)
    policy = checked_policy(entry, settings.policy).to(device)
    if note := slow_note(policy):
        console.print(note)
    jobs = _jobs(entry, settings, policy, device)
    check_writable(settings.folder, "--folder")
    workers = pick_workers(settings.workers, settings.device)
    if settings.workers is None and len(jobs) < MANY:
        workers = 0
    sampler, nearest = settings.sampler.build(settings.sampler.p_min_from_epoch), getattr(settings, "nearest", None)
    check_nearest(nearest)
    effort = Effort(
        sampler,
        nearest=nearest or 0,
        seed=settings.recipe.seed,
        memory=settings.sampler.memory_mb << 20,
    )
    solving = Solving(jobs, {entry.kit.name: policy}, effort, workers=workers, whole=True)
    stopped = _run(solving, console)
    results = {number: solving.result(number) for number in solving.so_far()}
    records = [_record(number, result) for number, result in results.items()]
    _show(console, entry, results)
    _save(settings.folder, entry, results, records, console)
    return records, stopped


def checked_policy(entry: Entry, named: str | Path | None) -> Network:
    """The policy in a file, which must be one for the entry's problem and architecture; or one that ships."""
    if named is None or is_a_name(named):
        return policy_for(entry.kit, named)
    named = policy_file(named)
    wanted, (_, header) = entry.architecture.network, read_weights(named)
    held = header.get("policy")
    if held != wanted.__name__:
        fitting = [other.name for other in CATALOGUE.values() if other.architecture.network.__name__ == held]
        hint = f" Use it by `gumbeldore solve {fitting[0]}`." if fitting else ""
        raise CheckpointError(f"`policy` must be a {wanted.__name__} to solve {entry.name}, but {named} holds a {held}.{hint}")
    return load_policy(named, wanted)


def _jobs(entry: Entry, settings: SolveSettings[Any, Any], policy: Network, device: torch.device) -> list[Job]:
    if files := _files(entry, settings):
        return [Job(entry.kit, each, path, row) for path in files for row, each in enumerate(read_file(path, entry.kit)[1])]
    if isinstance(settings.recipe, StateGenerator):
        return _state_jobs(entry.kit, settings.recipe, policy, device)
    entry.kit.need("instance files", "instances")
    return _random_jobs(entry.kit, settings.recipe.generate())


def _files(entry: Entry, settings: SolveSettings[Any, Any]) -> tuple[Path, ...]:
    """The files that are to be solved instead of random instances."""
    if not isinstance(settings, FileSolveSettings) or not (settings.instances or settings.instance):
        return ()
    both = bool(settings.instances and settings.instance)
    require(not both, "`instances` and `instance` both name files to solve: leave one of them out.")
    require(
        replace(settings.recipe, seed=0) == replace(default_generator(entry), seed=0),
        f"`{'instances' if settings.instances else 'instance'}` names a file: leave out the options of random instances except --seed.",
    )
    return (settings.instance,) if settings.instance else settings.instances


def _random_jobs(kit: Kit, drawn: InstanceSet) -> list[Job]:
    instances = [drawn.instance(row) for row in range(len(drawn))]
    return [Job(kit, Instance(arrays, arrays), row=row) for row, arrays in enumerate(instances)]


def _state_jobs(kit: Kit, recipe: StateGenerator, policy: Network, device: torch.device) -> list[Job]:
    problem, state = recipe.states(policy, device)
    starts = [state.rows(slice(row, row + 1)).compact() for row in range(state.row_count)]
    return [Job(kit, Instance(row_arrays(start, 0), {}), row=row, start=(problem, start)) for row, start in enumerate(starts)]


def _run(solving: Solving, console: Console) -> bool:
    """Solves; returns whether it was stopped early."""
    try:
        with Display(solving, console, lines=False) as display:
            for event in solving:
                if isinstance(event, Failure):
                    raise ContractError(event.message)
                display.show(event)
    except KeyboardInterrupt:
        if not solving.so_far():
            raise
        console.print("Interrupted: these are the best solutions found so far.")
        return True
    return False


def _record(number: int, result: Result) -> Record:
    origin = {"file": str(result.job.file), "row": result.job.row} if result.job.file else {}
    return {"instance": number, **origin, "actions": result.actions, "cost": result.cost, **result.natural}


def _show(console: Console, entry: Entry, results: dict[int, Result]) -> None:
    columns = ("instance", entry.cost, "sequences", "mass left", "policy evaluations", "shared")
    table = Table(*columns, title="Best solutions found")
    for number, result in list(results.items())[:SHOWN]:
        found = result.found
        counts = (str(found.evaluations), str(found.shared))
        table.add_row(str(number), shown(result.cost), str(found.sequences), f"{found.mass:.3f}", *counts)
    console.print(table)
    if len(results) > 1:
        more = f"... and {len(results) - SHOWN} more. " if len(results) > SHOWN else ""
        mean = np.mean([result.cost for result in results.values()])
        console.print(f"{more}Mean {entry.cost} of {len(results)} instances: {mean:.4f}", highlight=False)
    gaps = [each.gap for each in results.values() if each.gap is not None]
    if gaps:
        console.print(f"Mean gap to the labels of {len(gaps)} instances: {100 * np.mean(gaps):.3f} %", highlight=False)


def _save(folder: Path, entry: Entry, results: dict[int, Result], records: list[Record], console: Console) -> None:
    save_json(folder / "solutions.json", records)
    first, form = next(iter(results.values())), entry.kit.solution_format
    if form.draw is None:
        console.print(
            f"Saved {folder / 'solutions.json'}; {entry.name} has no picture (`solution_format.draw`).", soft_wrap=True
        )
        return
    form.draw(folder / form.picture, first.job.given.arrays, first.actions, f"{entry.cost} {shown(first.cost)}")
    console.print(f"Saved {folder / 'solutions.json'} and {folder / form.picture}.", soft_wrap=True)
