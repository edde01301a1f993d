"""What becomes of an instance: its best solution, verified, in natural form, with its cost by the file's own rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumbeldore.errors import ContractError, require
from gumbeldore.kits.kit import Record
from gumbeldore.kits.verdict import Verdict
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.search import Found

POLICY = "policy"


@dataclass(frozen=True)
class Solution:
    """A sequence of actions and what it costs; smaller is better."""

    cost: float
    actions: list[int]


@dataclass(frozen=True)
class Stage:
    """What one of several that worked on a solution made of it. The first is the policy."""

    by: str
    cost: float  # of the best solution after it; never more than before it
    seconds: float
    evaluations: int = 0  # of the policy


@dataclass(frozen=True)
class Result:
    """The best solution of an instance, and how it came about.

    What a solution consists of depends on the problem and is an attribute too: `result.tour`, `result.routes`, `result.jobs`.
    """

    job: Job
    stages: tuple[Stage, ...]
    solutions: list[Solution]  # some different ones, the best first
    found: Found

    @property
    def cost(self) -> float:
        """By the rule of the instance's file, in its units."""
        return self.solutions[0].cost

    @property
    def actions(self) -> list[int]:
        return self.solutions[0].actions

    @property
    def name(self) -> str:
        return self.job.name

    @property
    def problem(self) -> str:
        return self.job.kit.name

    @property
    def known(self) -> float | None:
        """The best known cost, if there is one."""
        return self.job.given.known

    @property
    def gap(self) -> float | None:
        """How much more than the best known cost: 0.01 is one per cent."""
        return gap(self.cost, self.known)

    @property
    def notes(self) -> list[str]:
        """What one should know: about the instance, or why something had no effect."""
        return [*self.job.given.notes, *(f"{refined.by}: {refined.note}" for refined in self.found.refined if refined.note)]

    @property
    def seconds(self) -> float:
        return sum(stage.seconds for stage in self.stages)

    @property
    def natural(self) -> Record:
        """The solution in the form that is usual for the problem."""
        return self.job.kit.solution_format.record(self.job.given.arrays, self.actions)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            natural = self.natural
            if name in natural:
                return natural[name]
            raise AttributeError(f"A solution of {self.problem} has {', '.join(natural)}, not `{name}`.")
        raise AttributeError(name)

    def draw(self, path: str | Path) -> None:
        """A picture of the solution."""
        title = " ".join(filter(None, (self.name + ":" if self.name else "", self.job.kit.cost, shown(self.cost))))
        draw = self.job.kit.need("pictures", "solution_format").draw
        if draw is None:
            raise ContractError(f"There are no pictures for `{self.problem}`: its kit leaves `solution_format.draw` out.")
        draw(Path(path), self.job.given.arrays, self.actions, title)

    def text(self, form: str) -> str:
        """The solution as a file of one of the kit's formats."""
        exports = self.job.kit.need("formats of solutions", "exports")
        require(form in exports, f"`form` must be one of {', '.join(exports)} for {self.problem}, got {form!r}.")
        return exports[form].write(self.job.given, self.actions)

    def record(self) -> Record:
        """All of it as plain data (docs/reference/files.md)."""
        file, given = self.job.file, self.job.given
        return {
            "file": None if file is None else str(file),
            "row": self.job.row,
            "name": self.name,
            "problem": self.problem,
            "cost": self.cost,
            "known": given.known,
            "known_from": given.known_from or None,
            "gap": self.gap,
            "stages": [vars(stage) for stage in self.stages],
            "seconds": self.seconds,
            "sequences": self.found.sequences,
            "evaluations": self.found.evaluations,
            "notes": self.notes,
            "actions": self.actions,
            **self.natural,
        }


def gap(cost: float, known: float | None) -> float | None:
    """How much more than what is known, as a part of it."""
    return None if not known else cost / known - 1


def shown(cost: float) -> str:
    return f"{cost:.0f}" if float(cost).is_integer() else f"{cost:.4f}"


def result(job: Job, found: Found) -> Result:
    """Ranks what a search found by the rule of the file and verifies the best. A stage that made nothing better leaves the cost as it was."""
    claims = {tuple(actions): objective for actions, objective in found.best}
    solutions = _ranked([Solution(_cost(job, actions, objective), actions) for actions, objective in found.best])
    solutions[0] = _checked(job, solutions[0].actions, claims[tuple(solutions[0].actions)])
    stages = [Stage(POLICY, solutions[0].cost, found.seconds, found.evaluations)]
    for refined in found.refined:
        feasible = [
            actions for actions in refined.sequences if _is_feasible(job, actions)
        ]  # nothing that others say is trusted
        solutions = _ranked([*solutions, *(_checked(job, actions) for actions in feasible)])
        stages.append(Stage(refined.by, solutions[0].cost, refined.seconds))
    return Result(job, tuple(stages), solutions, found)


def cost_so_far(job: Job, found: Found) -> float:
    """Of the best sequence of a search that still goes on."""
    return _cost(job, *found.best[0])


def _cost(job: Job, actions: list[int], objective: float) -> float:
    return job.given.cost(actions) if job.given.cost else _plain(-objective * job.given.scale)


def _checked(job: Job, actions: list[int], objective: float | None = None) -> Solution:
    """A solution as independent code sees it. `objective` is what the search says about it."""
    verify = job.kit.solution_format.verify
    if verify is None:
        assert objective is not None, "Nobody knows what this costs."
        return Solution(_cost(job, actions, objective), actions)
    worth = _verified(job, verify(job.given.arrays, actions), None if objective is None else objective * job.given.scale)
    return Solution(job.given.cost(actions) if job.given.cost else _plain(-worth), actions)


def _is_feasible(job: Job, actions: list[int]) -> bool:
    return job.kit.solution_format.verify is not None and job.kit.solution_format.verify(job.given.arrays, actions).feasible


def _verified(job: Job, verdict: Verdict, claimed: float | None) -> float:
    """The objective as independent code computes it, which must confirm the search's."""
    of = f"instance {job.row}" if job.file is None else f"instance {job.row} of {job.file}"
    if not verdict.feasible:
        raise ContractError(f"The solution of {of} is infeasible: {verdict.reason}. This is a bug: report it.")
    if claimed is not None and abs(verdict.objective - claimed) > 1e-4 * max(1.0, abs(verdict.objective)):
        raise ContractError(f"The solution of {of} is worth {verdict.objective}, not {claimed}. This is a bug: report it.")
    return verdict.objective


def _ranked(solutions: Sequence[Solution]) -> list[Solution]:
    """The cheapest first, each once; of equally cheap ones those that came first."""
    distinct = {tuple(solution.actions): solution for solution in solutions}
    return sorted(distinct.values(), key=lambda solution: solution.cost)


def _plain(cost: float) -> float:
    return 0.0 + cost  # not -0.0
