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

from gumbeldore.cli.catalogue import CATALOGUE, Entry, RunSettings, SamplerSettings
from gumbeldore.cli.recipes import RECIPES
from gumbeldore.cli.runs import pick_device
from gumbeldore.cli.settings import as_plain
from gumbeldore.errors import CheckpointError, ContractError, require
from gumbeldore.files import write_atomically
from gumbeldore.networks.layers import slow_note
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.problems import TSP, Gomoku
from gumbeldore.problems.cvrp.plot import plot_routes
from gumbeldore.problems.cvrp.verify import split_routes
from gumbeldore.problems.formats import normalised, read_points
from gumbeldore.problems.gomoku.plot import plot_game
from gumbeldore.problems.gomoku.verify import verify_gomoku
from gumbeldore.problems.instances import KINDS, Arrays, InstanceSet, read_instances
from gumbeldore.problems.jssp.plot import plot_schedule
from gumbeldore.problems.jssp.verify import build_schedule
from gumbeldore.problems.policy_files import load_policy
from gumbeldore.problems.tsp.plot import plot_tours
from gumbeldore.problems.verdict import Verdict
from gumbeldore.search.mixed import grouped
from gumbeldore.search.samplers import Sampler, draw_seeds
from gumbeldore.solutions import Solutions

SHOWN = 20
"""Rows of the table."""

R = TypeVar("R")
A = TypeVar("A")
Record = dict[str, Any]


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
class GomokuOpenings:
    """Random first stones of the bot; no cell comes again before all came once. The board is the policy's."""

    count: int = 1  # how many games
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.count >= 1, f"`count` must be at least 1, got {self.count}.")


@dataclass(frozen=True)
class Form:
    """How the solutions of a problem are checked, written down and drawn. An instance is a record of plain arrays."""

    verify: Callable[[Arrays, Sequence[int]], Verdict]
    record: Callable[[Arrays, Sequence[int]], Record]  # its natural form, for solutions.json
    draw: Callable[[Path, Arrays, Sequence[int], str], None]
    picture: str  # name of the file


@dataclass(frozen=True)
class Task:
    """What is to be solved. Instances are numbered through all states."""

    problem: Problem[Any]
    form: Form
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


def options(entry: Entry) -> tuple[Any, str]:
    """The settings of `gumbeldore solve` for one problem with its own defaults, and their description."""
    small, recipe = entry.settings().sampler, default_recipe(entry)
    sampler = SamplerSettings(method=small.method, sigma=small.sigma)
    base: Any = {None: SolveSettings, "tsp": CitiesSolveSettings, "cvrp": RoutesSolveSettings}.get(
        entry.instances, FileSolveSettings
    )
    own_recipe = Annotated[type(recipe), tyro.conf.arg(name="", default=recipe)]  # type: ignore[misc, valid-type]
    return base[own_recipe, Annotated[SamplerSettings, tyro.conf.arg(default=sampler)]], str(base.__doc__)


def default_recipe(entry: Entry) -> Any:
    """One random instance of the size that the small preset trains on."""
    if entry.instances is None:
        return GomokuOpenings()
    kind, small = RECIPES[entry.instances], as_plain(entry.settings().problem)
    return kind(**{f.name: small[f.name] for f in fields(kind) if f.name in small}, count=1)


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


def network_of(entry: Entry) -> type[Network]:
    """The class of an entry's policies."""
    with torch.device("meta"):  # without weights and without randomness
        return type(entry.build(RunSettings(problem=entry.problem, policy=entry.size)))


def checked_policy(entry: Entry, path: Path) -> Network:
    """The policy in a file, which must be one for the entry's problem and architecture."""
    policy, wanted = load_policy(path), network_of(entry)
    if type(policy) is not wanted:
        fitting = [other.name for other in CATALOGUE.values() if network_of(other) is type(policy)]
        hint = f" Use it by `gumbeldore solve {fitting[0]}`." if fitting else ""
        raise CheckpointError(
            f"`policy` must be a {wanted.__name__} to solve {entry.name}, but {path} holds a {type(policy).__name__}.{hint}"
        )
    return policy


def _task(entry: Entry, settings: SolveSettings[Any, Any], policy: Network, device: torch.device) -> Task:
    files: tuple[Path, ...] = getattr(settings, "instances", ())
    cities: Path | None = getattr(settings, "instance", None)
    if files or cities:
        require(not (files and cities), "`instances` and `instance` both name files to solve: leave one of them out.")
        require(
            replace(settings.recipe, seed=0) == replace(default_recipe(entry), seed=0),
            f"`{'instances' if files else 'instance'}` names a file: leave out the options of random instances except --seed.",
        )
    if entry.instances is None:
        return _gomoku_task(policy, settings.recipe, device)
    if cities:
        task = _cities_task(cities, device)
    else:
        sets = [read_instances(path, entry.instances) for path in files] or [settings.recipe.generate()]
        task = _sets_task(entry.instances, sets, device)
    nearest = getattr(settings, "nearest", None)
    return task if nearest is None else _restricted(task, nearest)


def _restricted(task: Task, nearest: int) -> Task:
    """The same task where routes go on only to near nodes."""
    problem: Any = replace(task.problem, nearest=nearest)  # type: ignore[type-var]
    return replace(task, problem=problem, states=[problem.restricted(state) for state in task.states])


def _cities_task(path: Path, device: torch.device) -> Task:
    """A file's cities: the policy sees them in the unit square, everything else is in the file's own units."""
    points = read_points(path)
    unit, scale = normalised(points)
    state = TSP().instances(torch.tensor(unit[None], dtype=torch.float32, device=device))
    return Task(TSP(), FORMS["tsp"], [state], lambda _: {"coordinates": points}, scale=scale)


def _sets_task(kind: str, sets: Sequence[InstanceSet], device: torch.device) -> Task:
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
    return Task(KINDS[kind].problem, FORMS[kind], [given.state(device) for given in sets], instance, known)


def _gomoku_task(policy: Network, openings: GomokuOpenings, device: torch.device) -> Task:
    problem = Gomoku(policy.config["size"])
    state = problem.generate(openings.count, generator=torch.Generator().manual_seed(openings.seed), device=device)
    first = state.board.ne(0).int().argmax(1).tolist()
    return Task(
        problem, FORMS["gomoku"], [state], lambda number: {"size": np.array(problem.size), "first": np.array(first[number])}
    )


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
    instance = task.instance(number)
    verdict = task.form.verify(instance, found.actions)
    if not verdict.feasible:
        raise ContractError(f"The solution of instance {number} is infeasible: {verdict.reason}. This is a bug: report it.")
    claimed = found.objective * task.scale
    if abs(verdict.objective - claimed) > 1e-4 * max(1.0, abs(verdict.objective)):
        raise ContractError(
            f"The solution of instance {number} is worth {verdict.objective}, not {claimed}. This is a bug: report it."
        )
    natural = task.form.record(instance, found.actions)
    return {"instance": number, "actions": found.actions, "cost": 0.0 - verdict.objective, **natural}  # not -0.0


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
    first, picture = records[0], folder / task.form.picture
    task.form.draw(picture, task.instance(first["instance"]), first["actions"], f"{entry.cost} {_number(first['cost'])}")
    console.print(f"Saved {folder / 'solutions.json'} and {picture}.", soft_wrap=True)


def _routes(actions: Sequence[int]) -> list[list[int]]:
    return split_routes([action // 2 for action in actions], [action % 2 == 1 for action in actions])


def _cvrp_record(instance: Arrays, actions: Sequence[int]) -> Record:
    via_depot = [bool(action % 2) for action in actions]
    return {"customers": [action // 2 for action in actions], "via_depot": via_depot, "routes": _routes(actions)}


def _draw_schedule(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    plot_schedule(path, build_schedule(instance["times"].tolist(), instance["machines"].tolist(), actions), title)


def _jssp_record(instance: Arrays, actions: Sequence[int]) -> Record:
    schedule = build_schedule(instance["times"].tolist(), instance["machines"].tolist(), actions)
    return {"jobs": list(actions), "makespan": max(interval.end for interval in schedule)}


def _moves(instance: Arrays, actions: Sequence[int]) -> list[int]:
    """All stones of a game of Gomoku in order."""
    problem = Gomoku(int(instance["size"]))
    state = problem.openings(torch.tensor([int(instance["first"])]))
    return [move for move in problem.moves(state, torch.tensor([list(actions)]))[0].tolist() if move >= 0]


def _verify_gomoku(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_gomoku(int(instance["size"]), _moves(instance, actions))


def _gomoku_record(instance: Arrays, actions: Sequence[int]) -> Record:
    size, moves = int(instance["size"]), _moves(instance, actions)
    winner = {1: "white", 0: None, -1: "black"}[int(verify_gomoku(size, moves).objective)]
    return {"size": size, "moves": moves, "winner": winner}


FORMS = {
    "tsp": Form(
        KINDS["tsp"].verify,
        lambda instance, actions: {"tour": [0, *actions]},
        lambda path, instance, actions, title: plot_tours(path, instance["coordinates"], [[0, *actions]], [title]),
        "tour.png",
    ),
    "cvrp": Form(
        KINDS["cvrp"].verify,
        _cvrp_record,
        lambda path, instance, actions, title: plot_routes(path, instance["nodes"], _routes(actions), title),
        "routes.png",
    ),
    "jssp": Form(KINDS["jssp"].verify, _jssp_record, _draw_schedule, "schedule.png"),
    "gomoku": Form(
        _verify_gomoku,
        _gomoku_record,
        lambda path, instance, actions, title: plot_game(_moves(instance, actions), int(instance["size"]), path),
        "game.png",
    ),
}
"""By problem."""
