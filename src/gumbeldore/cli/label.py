"""Expert solutions for instances: outside solvers in parallel processes, checked, and resumable at any moment.

Every finished label is appended to a journal beside the output (`labels.npz.partial.jsonl`). When all are there, the output is
written and the journal is removed. The same command after a crash or Ctrl-C goes on with what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Generic

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gumbeldore.cli.recipes import RECIPES, STANDARD, R, chosen
from gumbeldore.errors import CheckpointError, GumbeldoreError, require
from gumbeldore.files import write_atomically
from gumbeldore.problems.baselines import SolverError, approximate_tsp, solve_cvrp, solve_jssp, solve_tsp
from gumbeldore.problems.instances import Arrays, InstanceSet, Kind, kind_of, read_instances, write_instances
from gumbeldore.training.processes import in_processes

JOURNAL = "gumbeldore-labels-1"


@dataclass(frozen=True)
class Solved:
    """What a solver says about one instance."""

    actions: list[int]
    cost: float  # minus the objective; the solution must be at least as good
    optimal: bool


Solver = Callable[[Arrays, float, int], Solved]  # one instance, seconds, seed


def tsp_by_pyvrp(instance: Arrays, seconds: float, seed: int) -> Solved:
    answer = approximate_tsp(instance["coordinates"], seconds, seed)
    return Solved(answer.tour[1:], answer.length, answer.optimal)


def tsp_by_ortools(instance: Arrays, seconds: float, seed: int) -> Solved:
    answer = solve_tsp(instance["coordinates"], seconds)
    return Solved(answer.tour[1:], answer.length, answer.optimal)


def cvrp_by(solver: str, instance: Arrays, seconds: float, seed: int) -> Solved:
    answer = solve_cvrp(instance["nodes"], instance["demands"], int(instance["capacity"]), seconds, seed, solver)
    return Solved([2 * c + (place == 0) for route in answer.routes for place, c in enumerate(route)], answer.length, False)


def jssp_by_ortools(instance: Arrays, seconds: float, seed: int) -> Solved:
    answer = solve_jssp(instance["times"], instance["machines"], seconds)
    return Solved(jobs_by_start(answer.starts), answer.makespan, answer.optimal)


def jobs_by_start(starts: Sequence[Sequence[int]]) -> list[int]:
    """The jobs of all operations in the order of their starts. Each is then scheduled no later than it was."""
    return [job for _, job in sorted((start, job) for job, row in enumerate(starts) for start in row)]


SOLVERS: dict[str, dict[str, Solver]] = {  # by problem and by the module that must be installed, the preferred one first
    "tsp": {"pyvrp": tsp_by_pyvrp, "ortools": tsp_by_ortools},
    "cvrp": {"hygese": partial(cvrp_by, "hygese"), "pyvrp": partial(cvrp_by, "pyvrp")},
    "jssp": {"ortools": jssp_by_ortools},
}


def choose_solver(problem: str, solver: str = "auto") -> str:
    """The name of a solver that is installed: the one asked for, or the best there is."""
    known = SOLVERS[kind_of(problem).name]
    require(
        solver == "auto" or solver in known, f"`solver` for {problem} must be auto or {' or '.join(known)}, got {solver!r}."
    )
    wanted = list(known) if solver == "auto" else [solver]
    for name in wanted:
        if find_spec(name) is not None:
            return name
    raise SolverError(f'Labels for {problem} need {" or ".join(wanted)}, not installed: pip install "gumbeldore[solvers]".')


def label(
    instances: InstanceSet,
    out: str | Path,
    *,
    solver: str = "auto",
    seconds: float = 2.0,
    workers: int = 2,
    console: Console | None = None,
) -> InstanceSet:
    """Solves every instance, checks every solution, writes the labelled set to `out` and returns it.

    It starts processes, so a script calls it below `if __name__ == "__main__":`.
    """
    console, out = console or Console(), Path(out)
    require(0 < seconds < float("inf"), f"`seconds` must be a positive number, got {seconds}.")
    require(workers >= 1, f"`workers` must be at least 1, got {workers}.")
    require(out.suffix == ".npz", f"`out` must end in .npz, got {out.name}.")
    require(not out.exists(), f"{out} exists already. Delete it, or choose another `out`.")
    kind, name = instances.kind, choose_solver(instances.kind.name, solver)
    about = f"{name} {version(name)}, {seconds:g} seconds each"
    journal = Journal(out.with_name(f"{out.name}.partial.jsonl"), instances, about)
    if journal.labels:
        console.print(f"Going on with the {len(journal.labels)} labels in {journal.path}.", highlight=False)
    todo = {index: (index, instances.instance(index)) for index in range(len(instances)) if index not in journal.labels}
    console.print(
        f"Solving {len(todo)} {kind.name} instances by {about}, in {workers} processes. Ctrl-C stops.", highlight=False
    )
    work = in_processes(partial(solve_instance, kind.name, name, seconds), todo, workers)
    columns = (
        "labelling",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    try:
        with closing(work), Progress(*columns, console=console, transient=True) as progress:  # type: ignore[type-var]
            task = progress.add_task("", total=len(instances), completed=len(journal.labels), note="")
            for index, solved in work:
                journal.add(index, checked(kind, name, index, todo[index][1], solved))
                progress.update(task, advance=1, note=f"mean cost {journal.mean_cost:.4f}")
    except BaseException:
        if journal.labels:
            console.print(
                f"Stopped: {len(journal.labels)} of {len(instances)} labels are kept in {journal.path}; the same command goes on.",
                highlight=False,
            )
        raise
    finished = journal.finish(instances)
    write_instances(out, finished)
    journal.path.unlink()
    proved = sum(solved.optimal for solved in journal.labels.values())
    console.print(
        f"Wrote {out}: mean cost {journal.mean_cost:.4f}, {proved} of {len(instances)} proved optimal.", highlight=False
    )
    return finished


def solve_instance(problem: str, solver: str, seconds: float, task: tuple[int, Arrays]) -> Solved:
    """What a worker process does. The seed is the instance's number."""
    index, instance = task
    return SOLVERS[problem][solver](instance, seconds, index)


def checked(kind: Kind, solver: str, index: int, instance: Arrays, solved: Solved) -> Solved:
    """The same solution with its cost as independent code computes it; an error if it is infeasible or worse than claimed."""
    verdict = kind.verify(instance, solved.actions)
    if not verdict.feasible:
        raise GumbeldoreError(f"{solver} gave an infeasible solution of instance {index}: {verdict.reason}.")
    if -verdict.objective > solved.cost + 1e-6 * max(1.0, abs(solved.cost)):
        raise GumbeldoreError(f"{solver} claims a cost of {solved.cost} for instance {index}, but it is {-verdict.objective}.")
    return Solved([int(action) for action in solved.actions], -verdict.objective, bool(solved.optimal))


class Journal:
    """The finished labels so far: a header that says what they belong to, then one line of JSON per label."""

    def __init__(self, path: Path, instances: InstanceSet, solver: str) -> None:
        self.path, self.solver = path, solver
        self.header = {"format": JOURNAL, "problem": instances.kind.name, "instances": instances.digest, "solver": solver}
        self.labels: dict[int, Solved] = {}
        self.total = 0.0  # of the costs
        if path.exists():
            self._read(instances)
        lines = [self.header, *({"instance": index, **asdict(solved)} for index, solved in self.labels.items())]
        write_atomically(path, lambda temporary: temporary.write_text("".join(json.dumps(line) + "\n" for line in lines)))

    def _read(self, instances: InstanceSet) -> None:
        """Takes over every complete line that holds a valid label. What a crash cut off is solved again."""
        lines = []
        for text in self.path.read_text(errors="replace").splitlines():
            with suppress(json.JSONDecodeError):
                lines.append(json.loads(text))
        if not lines or lines[0] != self.header:
            raise CheckpointError(
                f"{self.path} holds labels of other instances or by another solver. Repeat the command that made it to go on, delete it "
                f"to start anew, or choose another output."
            )
        for line in lines[1:]:
            with suppress(GumbeldoreError, KeyError, TypeError, ValueError):
                index, solved = int(line["instance"]), Solved(list(line["actions"]), float(line["cost"]), bool(line["optimal"]))
                if 0 <= index < len(instances):
                    self._keep(index, checked(instances.kind, "the journal", index, instances.instance(index), solved))

    def _keep(self, index: int, solved: Solved) -> None:
        self.total += solved.cost - (self.labels[index].cost if index in self.labels else 0.0)
        self.labels[index] = solved

    def add(self, index: int, solved: Solved) -> None:
        """Keeps a label, on disk too."""
        self._keep(index, solved)
        with open(self.path, "a") as handle:
            handle.write(json.dumps({"instance": index, **asdict(solved)}) + "\n")

    @property
    def mean_cost(self) -> float:
        return self.total / len(self.labels) if self.labels else float("nan")

    def finish(self, instances: InstanceSet) -> InstanceSet:
        """The instances with all their labels."""
        order = [self.labels[index] for index in range(len(instances))]
        return instances.labelled([s.actions for s in order], self.solver, [s.optimal for s in order])


@dataclass(frozen=True)
class LabelSettings(Generic[R]):
    """Solve instances with an outside solver and keep the solutions as labels. Stop and repeat it at will: it goes on."""

    out: Path  # the file to write: .npz
    recipe: Annotated[R, tyro.conf.arg(name="")]
    standard: str | None = None  # a standard test set by name, instead of one by size, count and seed
    instances: Path | None = None  # a file made by `gumbeldore generate`, instead of generating them
    solver: str = "auto"  # which solver; auto: the best that is installed
    seconds: float = 2.0  # how long it may search per instance
    workers: int = 2  # parallel processes


def options(kind: str) -> tuple[Any, str]:
    """The settings of `gumbeldore label` for one problem, and their description."""
    recipe, solvers = RECIPES[kind_of(kind).name], SOLVERS[kind]
    about = f"{LabelSettings.__doc__}\n\nSolvers: {', '.join(solvers)}. Standard test sets: {', '.join(STANDARD[kind])}."
    return LabelSettings[recipe], about  # type: ignore[valid-type]


def label_files(problem: str, settings: LabelSettings[Any], console: Console | None = None) -> InstanceSet:
    """`label` for what the command line asks for."""
    if settings.instances is None:
        instances = chosen(settings.recipe, settings.standard).generate()
    else:
        require(
            settings.standard is None and settings.recipe == type(settings.recipe)(),
            "`instances` names a file: leave out the other options that say what to solve.",
        )
        instances = read_instances(settings.instances, problem)
    return label(
        instances, settings.out, solver=settings.solver, seconds=settings.seconds, workers=settings.workers, console=console
    )
