"""What is to be solved: instances of files or of one's own, cut into pieces that are searched together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Instance, Kit
from gumbeldore.problem import Problem, State, shapes, slices
from gumbeldore.search.samplers import Sampler
from gumbeldore.solving.search import Piece

LARGE, NEAREST = 300, 100
"""From so many steps on, routes go on only to one of so many nearest nodes, unless told otherwise."""

TOGETHER = 16
"""At most so many instances are one piece of work for a process."""


@dataclass(frozen=True)
class Job:
    """One instance to be solved."""

    kit: Kit
    given: Instance
    file: Path | None = None  # it came from
    row: int = 0  # its number in the file
    start: tuple[Problem[Any], State] | None = field(default=None, repr=False)  # where it is not made of the arrays of `given`

    @property
    def name(self) -> str:
        return self.given.name or (self.file.stem if self.file else "")


@dataclass(frozen=True)
class Batch:
    """Instances of equal size as one state."""

    kit: Kit
    problem: Problem[Any]
    numbers: list[int]  # of the jobs
    state: State
    nearest: int | None = None  # to so many nodes routes are restricted

    def pieces(self, sampler: Sampler, seeds: Int[Tensor, " job"], size: int | None = None) -> list[Piece]:
        """Parts that fit into the sampler's memory, and of at most `size` instances."""
        fits = sampler.chunks(self.problem, self.state)[0]
        size = min(size or self.state.row_count, fits.stop)
        found = []
        for rows in slices(self.state.row_count, size):
            numbers = self.numbers[rows]
            found.append(Piece(numbers, self.state.rows(rows).compact(), seeds[numbers]))
        return found


def batches(
    jobs: Sequence[Job], numbers: Sequence[int], device: torch.device | str = "cpu", nearest: int | None = None
) -> list[Batch]:
    """The given ones of all jobs, those of equal size and problem together.

    `nearest` restricts routes to so many nearest nodes, 0 to none, None as it seems best for the size.
    """
    groups: dict[Any, list[int]] = {}
    for number in numbers:
        groups.setdefault(_size(jobs[number]), []).append(number)
    return [_batch([jobs[number] for number in same], same, device, nearest) for same in groups.values()]


def _size(job: Job) -> Any:
    if job.start is not None:
        return job.kit.name, shapes(job.start[1])
    return job.kit.name, *((name, np.shape(array)) for name, array in job.given.unit.items())


def _batch(jobs: Sequence[Job], numbers: list[int], device: torch.device | str, nearest: int | None) -> Batch:
    kit = jobs[0].kit
    if starts := [job.start for job in jobs if job.start is not None]:
        problem, first = starts[0]
        return Batch(kit, problem, numbers, type(first).concatenate([state.compact() for _, state in starts]).to(device))
    kind = kit.need("instance files", "instances")
    arrays = {name: np.stack([job.given.unit[name] for job in jobs]) for name in jobs[0].given.unit}
    state, problem = InstanceSet(kind, arrays).state(device), kind.problem
    if nearest is None and kit.restrict is not None and problem.horizon(state) >= LARGE:
        nearest = NEAREST
    if nearest:
        problem = kit.need("restrictions to near nodes", "restrict")(problem, nearest)
        state = problem.restricted(state)
    return Batch(kit, problem, numbers, state, nearest or None)
