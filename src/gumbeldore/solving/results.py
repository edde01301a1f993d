"""What becomes of an instance: its best solution, verified, in natural form, with its cost by the file's own rule."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

from gumbeldore.errors import ContractError, require
from gumbeldore.kits.kit import Record
from gumbeldore.solving.found import POLICY, Found, Improvement, Share
from gumbeldore.solving.jobs import Job

_TOLERANCE = 1e-4
"""Relative: so far may be what a policy's problem says of a solution from what the verifier says."""


@dataclass(frozen=True)
class Solution:
    """A sequence of actions and what it costs."""

    cost: float
    actions: list[int]


@dataclass(frozen=True, repr=False)
class Result:
    """The best solution of an instance, and how it came about."""

    job: Job
    found: Found

    @property
    def cost(self) -> float:
        """By the rule of the instance's file, in its units. Where a problem maximises, this is the value, and the larger the better."""
        return self.job.shown(self.found.cost)

    @property
    def actions(self) -> list[int]:
        return self.found.actions

    @property
    def solutions(self) -> list[Solution]:
        """Some different ones, the best first. Only that has been verified."""
        return [Solution(self.job.shown(cost), actions) for actions, cost in self.found.best]

    @cached_property
    def solution(self) -> Any:
        """In the form that is usual for the problem: a `Tour` with `tour`, `Routes` with `routes`, `JobSequence` with `jobs`."""
        natural = self.job.kit.solution_format.record(self.job.given.arrays, self.actions)
        return SimpleNamespace(**natural) if isinstance(natural, dict) else natural

    @property
    def name(self) -> str:
        return self.job.name

    @property
    def problem(self) -> str:
        return self.job.kit.name

    @property
    def known(self) -> float | None:
        """The best known cost, if there is one."""
        return None if self.job.given.known is None else self.job.shown(self.job.given.known)

    @property
    def gap(self) -> float | None:
        """How much worse than the best known cost: 0.01 is one per cent."""
        return self.job.gap(self.found.cost)

    @property
    def by(self) -> str:
        """Who found the solution."""
        return self.found.by

    @property
    def improvements(self) -> list[Improvement]:
        """Every solution that was better than all before: who found it, when, and what it costs."""
        return [Improvement(each.by, self.job.shown(each.cost), each.seconds) for each in self.found.improvements]

    @property
    def shares(self) -> list[Share]:
        """What everyone who worked on the instance has spent and reached."""
        shown = [None if each.cost is None else self.job.shown(each.cost) for each in self.found.shares]
        columns = zip(shown, self.found.shares, strict=True)
        return [Share(each.by, cost, each.seconds, each.turns, each.gain) for cost, each in columns]

    def cost_of(self, by: str) -> float | None:
        """The best that one of them found itself."""
        return next((each.cost for each in self.shares if each.by == by), None)

    @property
    def notes(self) -> list[str]:
        """What one should know: about the instance, or why something had no effect."""
        notes = [*self.job.given.notes, *self.found.notes]
        if self.gap is not None and self.gap < 0 and self.job.given.known_from.startswith("table"):
            notes.append(f"Better than the best known value {number(self.known or 0.0)}: is this the published instance?")
        return notes

    @property
    def seconds(self) -> float:
        return self.found.seconds

    def draw(self, path: str | Path) -> None:
        """A picture of the solution."""
        title = " ".join(filter(None, (self.name + ":" if self.name else "", self.job.kit.cost, number(self.cost))))
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
        file = self.job.file
        return {
            "file": None if file is None else str(file),
            "row": self.job.row,
            "name": self.name,
            "problem": self.problem,
            "instance": self.job.digest,
            "cost": self.cost,
            "known": self.known,
            "known_from": self.job.given.known_from or None,
            "gap": self.gap,
            "by": self.by,
            "shares": [vars(each) for each in self.shares],
            "improvements": [vars(each) for each in self.improvements],
            "seconds": self.seconds,
            "sequences": self.found.sequences,
            "evaluations": self.found.evaluations,
            "notes": self.notes,
            "actions": self.actions,
            **vars(self.solution),
        }

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        more = "" if self.gap is None else f", gap {100 * self.gap:.2f} %"
        return f"<Result {name}{self.job.kit.cost} {number(self.cost)}{more}, by {self.by}, {self.seconds:.1f} s>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the line, and the picture where there is one."""
        text = f"<p>{escape(repr(self)[1:-1])}</p>"
        if self.job.kit.solution_format.draw is None or not drawable(self.job):
            return text
        with TemporaryDirectory(prefix="gumbeldore-") as folder:
            path = Path(folder) / "solution.png"
            self.draw(path)
            picture = base64.b64encode(path.read_bytes()).decode()
        return f'{text}<img src="data:image/png;base64,{picture}" style="max-width: 480px"/>'


def drawable(job: Job) -> bool:
    """Whether there is something to draw: distances have no places."""
    return job.kit.solution_format.draw is not None and (job.start is not None or job.for_policies)


def gap(cost: float, known: float | None) -> float | None:
    """How much more than what is known, as a part of it."""
    return None if not known else (cost - known) / abs(known)


def number(cost: float) -> str:
    return f"{cost:.0f}" if float(cost).is_integer() else f"{cost:.4f}"


def result(job: Job, found: Found) -> Result:
    """Verifies the best solution. Nothing that anyone claims is trusted."""
    verify = job.kit.solution_format.verify
    if verify is None:
        return Result(job, found)
    of = job.name or f"instance {job.row}" if job.file is None else f"instance {job.row} of {job.file}"
    verdict = verify(job.given.arrays, found.actions)
    if not verdict.feasible:
        raise ContractError(f"The solution of {of} is infeasible: {verdict.reason}. This is a bug: report it.")
    worth = job.given.cost(found.actions) if job.given.cost is not None else 0.0 - verdict.objective
    if abs(worth - found.cost) > _TOLERANCE * max(1.0, abs(worth)):
        raise ContractError(
            f"The solution of {of} is worth {job.shown(worth)}, not {job.shown(found.cost)}. This is a bug: report it."
        )
    return Result(job, _exact(found, worth))


def _exact(found: Found, worth: float) -> Found:
    """With the verifier's number, which is more precise than a policy's, for the best solution."""
    last = found.improvements[-1:]
    return replace(
        found,
        best=[(found.actions, worth), *found.best[1:]],
        improvements=(*found.improvements[:-1], *(replace(each, cost=worth) for each in last)),
    )


def cost_of(results: Sequence[Result]) -> str:
    """What the costs are, if they are all the same thing."""
    names = {each.job.kit.cost for each in results}
    return names.pop() if len(names) == 1 else "cost"


def mean_cost(results: Sequence[Result]) -> str:
    """One line, if there are several costs of one kind."""
    if len(results) < 2 or (cost := cost_of(results)) == "cost":
        return ""
    return f"Mean {cost} of {len(results)} instances: {np.mean([each.cost for each in results]):.4f}"


def mean_gap(results: Sequence[Result]) -> str:
    """One line about all gaps that are known, and about what the policy found by itself."""
    known = [each for each in results if each.gap is not None]
    if len(known) < 2:
        return ""
    means = [f"{100 * np.mean([each.gap for each in known]):.3f} %"]
    alone = [each.job.gap(each.job.shown(cost)) for each in known if (cost := each.cost_of(POLICY)) is not None]
    if len(alone) == len(known) and any(len(each.shares) > 1 for each in known):
        means.append(f"of the policy alone {100 * np.mean(np.array(alone, dtype=float)):.3f} %")
    return f"Mean gap of {len(known)} instances: {', '.join(means)}"
