"""Solving instances from the command line: those of files or random ones, with progress, a table, a picture and a JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
import tyro
from jaxtyping import Int
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

from gumbeldore.cli.catalogue import CATALOGUE, Entry
from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.cli.run_settings import SamplerSettings, built
from gumbeldore.cli.runs import pick_device
from gumbeldore.cli.settings import as_plain
from gumbeldore.errors import CheckpointError, ContractError, require
from gumbeldore.files import write_atomically
from gumbeldore.networks.layers import slow_note
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.problems.instance_files import read_instances
from gumbeldore.problems.instances import Arrays, InstanceSet, row_arrays
from gumbeldore.problems.kit import Kit, Record, StateRecipe
from gumbeldore.problems.policy_files import load_policy, read_weights
from gumbeldore.problems.verdict import Verdict
from gumbeldore.search.mixed import grouped
from gumbeldore.search.samplers import Sampler, draw_seeds
from gumbeldore.solutions import Solutions

SHOWN = 20
"""Rows of the table."""

P = TypeVar("P")
R = TypeVar("R")
A = TypeVar("A")


@dataclass(frozen=True)
class SolveSettings(Generic[R, A]):
    """Solve instances with a trained policy. Ctrl-C keeps the best solutions found so far."""

    policy: Path  # a policy.safetensors written by `gumbeldore train` or `gumbeldore imitate`
    recipe: R  # of the random instances; its seed is also that of the sampling
    sampler: A
    folder: Path = Path("runs/solve")  # solutions.json and a picture of the first instance go here
    device: str = "auto"


@dataclass(frozen=True)
class FileSolveSettings(SolveSettings[R, A]):
    """Solve the instances of files, or random ones, with a trained policy. Ctrl-C keeps the best solutions found so far."""

    instances: tuple[Path, ...] = ()  # files made by `gumbeldore generate` or `label`, of any sizes, instead of random ones


@dataclass(frozen=True)
class RoutesSolveSettings(FileSolveSettings[R, A]):
    """Solve the instances of files, or random ones, with a trained policy. Ctrl-C keeps the best solutions found so far."""

    nearest: int | None = None  # go on only to one of so many nearest unvisited nodes: for large instances


@dataclass(frozen=True)
class CitiesSolveSettings(RoutesSolveSettings[R, A]):
    """Solve the instances of files, or random ones, with a trained policy. Ctrl-C keeps the best solutions found so far."""

    instance: Path | None = None  # one file of cities: .csv or .txt (x, y), .npy, .json or TSPLIB .tsp


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


@dataclass(frozen=True)
class Task:
    """What is to be solved. Instances are numbered through all states."""

    problem: Problem[Any]
    kit: Kit
    states: list[Any]  # of any sizes
    instance: Callable[[int], Arrays]  # by number
    known: dict[int, float] = field(default_factory=dict)  # costs of known solutions by number
    scale: float = 1.0  # of the instances, if the states are scaled down


class Found(NamedTuple):
    """What a search found for one instance."""

    actions: list[int]
    objective: float
    sequences: int
    mass: float  # left
    evaluations: int
    shared: int = 0  # evaluations saved because the state was known by another way


def command(arguments: list[str]) -> None:
    """gumbeldore solve PROBLEM"""
    entry, arguments = take_entry("solve", arguments)
    shape, about = options(entry)
    solve(entry, tyro.cli(shape, args=arguments, prog=f"gumbeldore solve {entry.name}", description=about))


def options(entry: Entry) -> tuple[Any, str]:
    """The settings of `gumbeldore solve` for one problem with its own defaults, and their description."""
    small, recipe = entry.settings().sampler, default_recipe(entry)
    sampler = SamplerSettings(method=small.method, sigma=small.sigma)
    base: Any = SolveSettings if entry.instances is None else FileSolveSettings
    if entry.kit.restrict is not None:
        base = RoutesSolveSettings
    if entry.kit.read is not None:
        base = CitiesSolveSettings
    kind = RandomInstances[type(recipe.problem)] if isinstance(recipe, RandomInstances) else type(recipe)  # type: ignore[misc]
    own_recipe = Annotated[kind, tyro.conf.arg(name="", default=recipe)]  # type: ignore[misc, valid-type]
    return base[own_recipe, Annotated[SamplerSettings, tyro.conf.arg(default=sampler)]], str(base.__doc__)


def default_recipe(entry: Entry) -> Any:
    """One random instance of the size that the small preset trains on."""
    small = entry.settings().problem
    if entry.kit.recipe is None:
        return RandomInstances(small)
    plain, kind = as_plain(small), entry.kit.recipe
    return kind(**{f.name: plain[f.name] for f in fields(kind) if f.name in plain}, count=1)


def solve(entry: Entry, settings: SolveSettings[Any, Any], console: Console | None = None) -> list[Record]:
    """Solves, verifies, prints, draws and saves; returns what it saved (docs/files.md)."""
    console = console or Console()
    device = pick_device(settings.device)
    policy = checked_policy(entry, settings.policy).to(device)
    if note := slow_note(policy):
        console.print(note)
    task = _task(entry, settings, policy, device)
    found = search(settings, task, policy, console)
    records = [_record(task, number, found[number]) for number in sorted(found)]
    _show(console, entry, found, records)
    _show_gap(console, task, records)
    _save(settings.folder, entry, task, records, console)
    return records


def checked_policy(entry: Entry, path: Path) -> Network:
    """The policy in a file, which must be one for the entry's problem and architecture."""
    wanted, (_, header) = entry.architecture.network, read_weights(path)
    held = header.get("policy")
    if held != wanted.__name__:
        fitting = [other.name for other in CATALOGUE.values() if other.architecture.network.__name__ == held]
        hint = f" Use it by `gumbeldore solve {fitting[0]}`." if fitting else ""
        raise CheckpointError(f"`policy` must be a {wanted.__name__} to solve {entry.name}, but {path} holds a {held}.{hint}")
    return load_policy(path, wanted)


def _task(entry: Entry, settings: SolveSettings[Any, Any], policy: Network, device: torch.device) -> Task:
    files: tuple[Path, ...] = getattr(settings, "instances", ())
    cities: Path | None = getattr(settings, "instance", None)
    if files or cities:
        require(not (files and cities), "`instances` and `instance` both name files to solve: leave one of them out.")
        require(
            replace(settings.recipe, seed=0) == replace(default_recipe(entry), seed=0),
            f"`{'instances' if files else 'instance'}` names a file: leave out the options of random instances except --seed.",
        )
    if isinstance(settings.recipe, StateRecipe):
        return _states_task(entry.kit, settings.recipe, policy, device)
    kind = entry.kit.need("instance files", "instances")
    if cities:
        task = _file_task(entry.kit, cities, device)
    else:
        sets = [read_instances(path, kind) for path in files] or [settings.recipe.generate()]
        task = _sets_task(entry.kit, sets, device)
    nearest = getattr(settings, "nearest", None)
    return task if nearest is None else _restricted(task, nearest)


def _restricted(task: Task, nearest: int) -> Task:
    """The same task where routes go on only to near nodes."""
    problem = task.kit.need("restrictions to near nodes", "restrict")(task.problem, nearest)
    return replace(task, problem=problem, states=[problem.restricted(state) for state in task.states])


def _file_task(kit: Kit, path: Path, device: torch.device) -> Task:
    """The instance of a file: the policy sees it in the unit square, everything else is in the file's own units."""
    given, kind = kit.need("readers of single instances", "read")(path), kit.need("instance files", "instances")
    state = InstanceSet(kind, {name: array[None] for name, array in given.unit.items()}).state(device)
    return Task(kind.problem, kit, [state], lambda _: given.arrays, scale=given.scale)


def _sets_task(kit: Kit, sets: Sequence[InstanceSet], device: torch.device) -> Task:
    ends = np.cumsum([len(given) for given in sets])

    def instance(number: int) -> Arrays:
        index = int(np.searchsorted(ends, number, side="right"))
        return sets[index].instance(number - int(ends[index]) + len(sets[index]))

    known = {
        int(end) - len(given) + row: -float(objective)
        for given, end in zip(sets, ends, strict=True)
        if given.labels is not None
        for row, objective in enumerate(given.labels.objective)
    }
    return Task(sets[0].kind.problem, kit, [given.state(device) for given in sets], instance, known)


def _states_task(kit: Kit, recipe: StateRecipe, policy: Network, device: torch.device) -> Task:
    problem, state = recipe.states(policy, device)
    return Task(problem, kit, [state], lambda number: row_arrays(state, number))


def search(settings: SolveSettings[Any, Any], task: Task, policy: Network, console: Console) -> dict[int, Found]:
    """Round by round with a progress bar; instances of equal size together. An interrupt returns what there is."""
    sampler, rounds = settings.sampler.build(settings.sampler.p_min_from_epoch), settings.sampler.rounds
    seeds = draw_seeds(sum(s.row_count for s in task.states), torch.Generator().manual_seed(settings.recipe.seed))
    groups = grouped(task.states)
    parts = [(group, rows) for group in groups for rows in sampler.chunks(task.problem, group.state)]
    found: dict[int, Found] = {}
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("sampling", total=len(parts) * rounds)

        def show(solutions: Solutions) -> None:
            best = -task.scale * solutions.best_objective.mean().item()
            progress.update(bar, advance=1, description=f"sampling (best so far {best:.4f})")

        try:
            for done, (group, rows) in enumerate(parts, 1):
                state, numbers = group.state.rows(rows).compact(), group.rows[rows]
                _search_part(sampler, task.problem, policy, state, seeds[numbers], numbers.tolist(), found, show)
                progress.update(bar, completed=done * rounds)
        except KeyboardInterrupt:
            if not found:
                raise
            console.print("Interrupted: these are the best solutions found so far.")
    return found


def _search_part(
    sampler: Sampler,
    problem: Problem[Any],
    policy: Network,
    state: Any,
    seeds: Int[Tensor, " row"],
    numbers: list[int],
    found: dict[int, Found],
    show: Callable[[Solutions], None],
) -> None:
    """Searches some instances and keeps the best of each in `found`, even if it is interrupted after a round."""
    solutions = None
    try:
        for solutions in sampler.stream(problem, policy, state, seeds.to(state.device)):
            show(solutions)
    finally:
        if solutions is not None:
            found.update(zip(numbers, _best(solutions), strict=True))


def _best(solutions: Solutions) -> list[Found]:
    top, diagnostics = solutions.top(1), solutions.diagnostics
    columns = (
        top.actions[:, 0],
        top.objective[:, 0],
        solutions.filled.sum(1),
        diagnostics.remaining_mass,
        diagnostics.evaluations,
        diagnostics.evaluations_shared,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Found([action for action in actions if action >= 0], *rest) for actions, *rest in rows]


def _record(task: Task, number: int, found: Found) -> Record:
    """A solution as independent code sees it."""
    instance, form = task.instance(number), task.kit.form
    natural = form.record(instance, found.actions)
    claimed = found.objective * task.scale
    objective = claimed if form.verify is None else _verified(number, form.verify(instance, found.actions), claimed)
    return {"instance": number, "actions": found.actions, "cost": 0.0 - objective, **natural}  # not -0.0


def _verified(number: int, verdict: Verdict, claimed: float) -> float:
    """The objective as independent code computes it, which must confirm the search's."""
    if not verdict.feasible:
        raise ContractError(f"The solution of instance {number} is infeasible: {verdict.reason}. This is a bug: report it.")
    if abs(verdict.objective - claimed) > 1e-4 * max(1.0, abs(verdict.objective)):
        raise ContractError(
            f"The solution of instance {number} is worth {verdict.objective}, not {claimed}. This is a bug: report it."
        )
    return verdict.objective


def _show(console: Console, entry: Entry, found: dict[int, Found], records: list[Record]) -> None:
    columns = ("instance", entry.cost, "sequences", "mass left", "policy evaluations", "shared")
    table = Table(*columns, title="Best solutions found")
    for record in records[:SHOWN]:
        number = record["instance"]
        best = found[number]
        counts = (str(best.evaluations), str(best.shared))
        table.add_row(str(number), _number(record["cost"]), str(best.sequences), f"{best.mass:.3f}", *counts)
    console.print(table)
    if len(records) > 1:
        more = f"... and {len(records) - SHOWN} more. " if len(records) > SHOWN else ""
        mean = np.mean([record["cost"] for record in records])
        console.print(f"{more}Mean {entry.cost} of {len(records)} instances: {mean:.4f}", highlight=False)


def _number(cost: float) -> str:
    return f"{cost:.0f}" if cost.is_integer() else f"{cost:.4f}"


def _show_gap(console: Console, task: Task, records: list[Record]) -> None:
    """How much worse than the labels, if there are any."""
    gaps = [r["cost"] / task.known[r["instance"]] - 1 for r in records if r["instance"] in task.known]
    if gaps:
        console.print(f"Mean gap to the labels of {len(gaps)} instances: {100 * np.mean(gaps):.3f} %", highlight=False)


def _save(folder: Path, entry: Entry, task: Task, records: list[Record], console: Console) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "solutions.json", lambda path: path.write_text(json.dumps(records, indent=1) + "\n"))
    first, form = records[0], task.kit.form
    if form.draw is None:
        console.print(f"Saved {folder / 'solutions.json'}; {entry.name} has no picture (`form.draw`).", soft_wrap=True)
        return
    form.draw(
        folder / form.picture, task.instance(first["instance"]), first["actions"], f"{entry.cost} {_number(first['cost'])}"
    )
    console.print(f"Saved {folder / 'solutions.json'} and {folder / form.picture}.", soft_wrap=True)
