"""What is to be solved: an instance, whatever it came from, and instances of equal size that are searched together."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gumbeldore.errors import ContractError, FormatError
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Instance, Kit
from gumbeldore.problem import Problem, State, shapes, slices
from gumbeldore.search.samplers import Sampler

LARGE, NEAREST = 300, 100
"""From so many steps on, a policy's routes go on only to one of so many nearest nodes, unless told otherwise."""

ROUNDING = 1e-9
"""A smaller gap is none."""

TOGETHER, ALONE = 16, 64
"""At most so many instances are one piece of work for a process, and where there is one process only."""


@dataclass(frozen=True)
class Job:
    """One instance to be solved."""

    kit: Kit
    given: Instance
    file: Path | None = None  # it came from
    row: int = 0  # its number in the file
    start: tuple[Problem[Any], State] | None = field(default=None, repr=False)  # where it is not made of the arrays of `given`
    begin: tuple[int, ...] | None = None  # the actions of a solution to go on from

    @property
    def name(self) -> str:
        return self.given.name or (self.file.stem if self.file else "")

    @property
    def for_policies(self) -> bool:
        """Whether a policy can see it; distances without places are for local search alone."""
        return self.start is not None or bool(self.given.unit)

    def cost(self, actions: Sequence[int], objective: float | None = None) -> float:
        """Of feasible actions, by the rule of the instance; smaller is better. `objective` is what a policy's problem says, if known."""
        if self.given.cost is not None:
            return self.given.cost(actions)
        if objective is None:
            verify = self.kit.solution_format.verify
            if verify is None:
                raise ContractError(f"The cost of a solution of `{self.kit.name}` is not known: its kit has no verifier.")
            verdict = verify(self.given.arrays, actions)
            if not verdict.feasible:
                raise FormatError(f"The solution of {self.name or 'this instance'} is infeasible: {verdict.reason}.")
            return plain(-verdict.objective)
        return plain(-objective * self.given.scale)

    def shown(self, cost: float) -> float:
        """As a user sees it: a value, where the problem maximises, is positive."""
        return self.kit.measure.shown(-cost)

    def gap(self, cost: float) -> float | None:
        """How much worse than the best that is known, as a part of it."""
        known = self.given.known
        if not known:
            return None
        more = (cost - known) / abs(known)
        return more if abs(more) > ROUNDING else 0.0

    @cached_property
    def digest(self) -> str:
        """A hash of what is solved: the problem, the arrays, the rule of its costs."""
        content = hashlib.sha256(self.kit.name.encode())
        for name, array in sorted(self.given.arrays.items()):
            plainly = np.ascontiguousarray(array)
            content.update(f"{name} {plainly.dtype.str} {plainly.shape}".encode())
            content.update(plainly.tobytes())
        content.update(pickle.dumps(self.given.cost, protocol=4))
        return content.hexdigest()[:16]


@dataclass(frozen=True)
class Group:
    """Jobs of one kit and equal size that are searched together."""

    numbers: list[int]
    jobs: list[Job]
    seeds: list[int]
    nearest: int | None  # to so many nodes a policy's routes are restricted; 0: not at all; None: as it seems best for the size
    copy: int = 0  # of the same group in several processes

    def __len__(self) -> int:
        return len(self.numbers)

    def initial(self, device: torch.device | str = "cpu") -> tuple[Problem[Any], State]:
        """The problem, and one initial state per job."""
        if starts := [job.start for job in self.jobs if job.start is not None]:
            problem, first = starts[0]
            return problem, type(first).concatenate([state.compact() for _, state in starts]).to(device)
        kit = self.jobs[0].kit
        kind = kit.need("instance files", "instances")
        arrays = {name: np.stack([job.given.unit[name] for job in self.jobs]) for name in self.jobs[0].given.unit}
        state, problem = InstanceSet(kind, arrays).state(device), kind.problem
        if nearest := restriction(kit, problem.horizon(state), self.nearest):
            problem = kit.need("restrictions to near nodes", "restrict")(problem, nearest)
            state = problem.restricted(state)
        return problem, state

    def parts(self, size: int) -> list[Group]:
        """Groups of at most so many jobs."""
        each = slices(len(self), size)
        return [Group(self.numbers[some], self.jobs[some], self.seeds[some], self.nearest) for some in each]


def restriction(kit: Kit, steps: int, asked: int | None) -> int | None:
    """To how many nearest nodes routes of so many steps are restricted, if at all."""
    if asked is None and kit.restrict is not None and steps >= LARGE:
        return NEAREST
    return asked or None


def groups(jobs: Sequence[Job], numbers: Sequence[int], seeds: Sequence[int], nearest: int | None = None) -> list[Group]:
    """The jobs of these numbers, those of one kit and equal size together."""
    alike: dict[Any, list[int]] = {}
    for number in numbers:
        alike.setdefault(_size(jobs[number]), []).append(number)
    return [Group(same, [jobs[n] for n in same], [seeds[n] for n in same], nearest) for same in alike.values()]


def fitting(group: Group, sampler: Sampler) -> int:
    """How many of such jobs fit into a sampler's memory together."""
    problem, state = group.initial()
    return sampler.chunks(problem, state)[0].stop


def _size(job: Job) -> Any:
    if job.start is not None:
        return job.kit.name, shapes(job.start[1])
    return job.kit.name, *((name, np.shape(array)) for name, array in job.given.unit.items())


def plain(cost: float) -> float:
    return 0.0 + cost  # not -0.0
