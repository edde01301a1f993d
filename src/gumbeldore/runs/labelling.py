"""Expert solutions for instances: outside solvers, or our own local search, in parallel processes, checked, and resumable at any moment.

Every finished label is appended to a journal beside the output (`labels.npz.partial.jsonl`). When all are there, the output is
written and the journal is removed. The same command after a crash or Ctrl-C goes on with what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from gumbeldore.errors import CheckpointError, GumbeldoreError, require
from gumbeldore.files import locked, write_atomically
from gumbeldore.io.instance_files import check_out, write_instances
from gumbeldore.kits.baselines import OWN, check_work
from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.registry import kit_named
from gumbeldore.kits.solver import SHORT, Limit, Solved, Solver, SolverError
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.parallel.processes import in_processes
from gumbeldore.runs.bars import counter

_JOURNAL = "gumbeldore-labels-1"


def choose_solver(kit: Kit, solver: str = "auto") -> str:
    """The name of a solver that is installed: the one asked for, or the best there is."""
    known = kit.need("solvers to label with", "experts")
    require(
        solver == "auto" or solver in known, f"`solver` for {kit.name} must be auto or {' or '.join(known)}, got {solver!r}."
    )
    wanted = list(known) if solver == "auto" else [solver]
    for name in wanted:
        if find_spec(name) is not None:
            return name
    wanted = [name for name in wanted if name != OWN]
    raise SolverError(f'Labels for {kit.name} need {" or ".join(wanted)}, not installed: pip install "gumbeldore[solvers]".')


def label(
    instances: InstanceSet,
    out: str | Path,
    *,
    solver: str = "auto",
    limit: Limit = SHORT,
    workers: int = 2,
    cluster: Cluster | None = None,
    kit: Kit | None = None,
    console: Console | None = None,
) -> InstanceSet:
    """Solves every instance, checks every solution, writes the labelled set to `out` and returns it.

    `kit` brings the solvers; one that is found by the name of the instances need not be given. A `cluster` solves instead of processes.

    It starts processes, so a script calls it below `if __name__ == "__main__":`.
    """
    console, out = console or Console(), Path(out)
    require(workers >= 1, f"`workers` must be at least 1, got {workers}.")
    check_out(out)
    kind, kit = instances.kind, kit or kit_named(instances.kind.name)
    name = choose_solver(kit, solver)
    if name == OWN:
        check_work(limit)  # before anything is written
    about = f"{name} {version(name)}, {limit} each"

    def mean(journal: Journal) -> str:
        return f"mean {kit.measure.kind} {kit.measure.shown(-journal.mean_cost):.4f}"

    with locked(out.parent, f".{out.name}.lock", gone_afterwards=True):
        journal = Journal(out.with_name(f"{out.name}.partial.jsonl"), instances, about)
        if journal.labels:
            console.print(f"Going on with the {len(journal.labels)} labels in {journal.path}.", highlight=False)
        todo = {index: (index, instances.instance(index)) for index in range(len(instances)) if index not in journal.labels}
        where = f"in {workers} processes" if cluster is None else f"on the cluster {cluster.address}"
        console.print(f"Solving {len(todo)} {kind.name} instances by {about}, {where}. Ctrl-C stops.", highlight=False)
        solve = partial(solve_instance, kit.experts[name], limit)
        work = in_processes(solve, todo, workers) if cluster is None else cluster.run(solve, todo)
        with closing(work):
            labels = ((index, _checked(kind, name, index, todo[index][1], solved)) for index, solved in work)
            _keep(labels, journal, mean, console)
        finished = journal.finish(instances)
        write_instances(out, finished)
        journal.path.unlink()
    proved = sum(solved.optimal for solved in journal.labels.values())
    console.print(f"Wrote {out}: {mean(journal)}, {proved} of {len(instances)} proved optimal.", highlight=False)
    return finished


def _keep(labels: Iterator[tuple[int, Solved]], journal: Journal, mean: Callable[[Journal], str], console: Console) -> None:
    """Puts labels into the journal as they come, with a bar."""
    try:
        with counter(console, "labelling", len(journal.labels), journal.count) as count:
            for index, solved in labels:
                journal.add(index, solved)
                count(len(journal.labels), mean(journal))
    except BaseException:
        if journal.labels:
            console.print(
                f"Stopped: {len(journal.labels)} of {journal.count} labels are kept in {journal.path}; the same command goes on.",
                highlight=False,
            )
        raise


def solve_instance(solver: Solver, limit: Limit, task: tuple[int, Arrays]) -> Solved:
    """What a worker process does. The seed is the instance's number."""
    index, instance = task
    return solver(instance, limit, index)


def _checked(kind: InstanceSchema, solver: str, index: int, instance: Arrays, solved: Solved) -> Solved:
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
        self.header = {"format": _JOURNAL, "problem": instances.kind.name, "instances": instances.digest, "solver": solver}
        self.labels: dict[int, Solved] = {}
        self.count = len(instances)
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
                    self._keep(index, _checked(instances.kind, "the journal", index, instances.instance(index), solved))

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
