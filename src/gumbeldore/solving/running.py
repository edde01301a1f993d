"""Solving many instances, in this process or in several, so that what was found so far is there at any moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from gumbeldore.errors import GumbeldoreError, require
from gumbeldore.kits.kit import Instance, Kit
from gumbeldore.parallel.processes import in_processes
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.presets import preset
from gumbeldore.search.samplers import Sampler, draw_seeds
from gumbeldore.solving.board import Board
from gumbeldore.solving.jobs import TOGETHER, Batch, Job, batches
from gumbeldore.solving.refining import Refinement, refinement
from gumbeldore.solving.results import Result, result
from gumbeldore.solving.search import Found, Limits, Piece, search

TIME_LIMIT = 10.0
"""Seconds per instance for a preset of the search, unless a limit is given."""

MEMORY = 1200 << 20
"""Bytes that all searches together may use by default; a process without any takes some 400 MB."""


@dataclass(frozen=True)
class Effort:
    """How hard to search."""

    sampler: Sampler | str = "balanced"  # or the name of a preset: fast, balanced, best
    time_limit: float | None = None  # seconds per instance; None: 10 for a preset without `sequences`, none for other samplers
    sequences: int | None = None  # per instance
    nearest: int | None = None  # go on only to so many nearest nodes; 0: to all; None: as it seems best for the size
    local_search: int = 0  # attempts per node of our local search, afterwards
    polish: float | None = None  # seconds for an outside solver that starts from the best sequences, afterwards
    seed: int = 0
    memory: int = MEMORY

    def __post_init__(self) -> None:
        require(
            self.nearest is None or self.nearest >= 0, f"`nearest` must be at least 0 (no restriction), got {self.nearest}."
        )
        require(self.seed >= 0, f"`seed` must be at least 0, got {self.seed}.")
        _ = self.limits, self.chosen  # raises where a value is out of range

    @property
    def chosen(self) -> Sampler:
        """The sampler; one that plans for a number of sequences is told how many are asked for."""
        sampler: Any = preset(self.sampler) if isinstance(self.sampler, str) else self.sampler
        if self.sequences is None or not isinstance(sampler, Adaptive):
            return sampler
        return replace(sampler, sequences=self.sequences, evaluations=None, effort=None)

    @property
    def limits(self) -> Limits:
        asked = self.time_limit is not None or self.sequences is not None
        by_name = isinstance(self.sampler, str)
        usual = TIME_LIMIT if by_name and not asked else None
        repeat = asked and (self.time_limit is not None or not isinstance(self.chosen, Adaptive))
        return Limits(usual if self.time_limit is None else self.time_limit, self.sequences, greedy=by_name, repeat=repeat)


@dataclass(frozen=True)
class Better:
    """A better solution of a job was found."""

    number: int
    found: Found


@dataclass(frozen=True)
class Failure:
    """Why something is not solved."""

    file: Path | None
    message: str
    number: int | None = None  # of the job


Event = Better | Result | Failure


@dataclass(frozen=True)
class _Set:
    """What all pieces of a kit have in common."""

    problem: Problem[Any]
    policy: Network
    sampler: Sampler
    limits: Limits
    refinement: Refinement | None


@dataclass(frozen=True)
class _Task:
    """A piece of work for a process."""

    set: int
    piece: Piece
    given: list[Instance]  # for polishing


class Solving:
    """Jobs that are being solved: iterate over it for what happens, ask for `results` at any time, also after an interrupt."""

    def __init__(
        self, jobs: Sequence[Job], policies: Mapping[str, Network], effort: Effort, *, workers: int = 0, whole: bool = False
    ) -> None:
        """`policies` by name of the kit; 0 `workers`: in this process. `whole`: pieces as large as memory allows."""
        self.jobs, self.effort, self.workers = jobs, effort, workers
        self.latest: dict[int, Found] = {}  # the best so far, by number of the job
        self.done: dict[int, Result] = {}
        self.failures: list[Failure] = []
        self.notes: list[str] = []  # what a user should know
        self._progress = [0.0] * len(jobs)
        self._board: Board | None = None
        self._sets: list[_Set] = []
        self._tasks = list(self._plan(policies, whole))

    def __iter__(self) -> Iterator[Event]:
        yield from self._trivial()
        if self.workers:
            yield from self._in_processes()
        else:
            yield from self._here()

    @property
    def completed(self) -> float:
        """How many jobs are done, in parts."""
        if self._board is not None:
            self._progress = self._board.progress().tolist()
        return sum(1.0 if number in self.done else self._progress[number] for number in range(len(self.jobs)))

    def so_far(self) -> dict[int, Found]:
        """The best of every job that has some; also what workers found a moment ago."""
        if self._board is not None:
            for number, turns in enumerate(self._board.turns().tolist()):
                if turns and number not in self.done:
                    self.latest[number] = self._board.read(number)
        return dict(sorted(self.latest.items()))

    def result(self, number: int) -> Result:
        """Of a job of which something is known."""
        return self.done.get(number) or result(self.jobs[number], self.latest[number])

    def results(self) -> list[Result]:
        """Of all jobs of which something is known, in their order."""
        return [self.result(number) for number in self.so_far()]

    def _plan(self, policies: Mapping[str, Network], whole: bool) -> Iterator[_Task]:
        """All pieces of work."""
        numbers = [number for number, job in enumerate(self.jobs) if job.given.solved is None]
        seeds = draw_seeds(len(self.jobs), torch.Generator().manual_seed(self.effort.seed))
        sampler = replace(self.effort.chosen, memory=self.effort.memory // max(1, self.workers))  # type: ignore[type-var]
        size = None if whole and not self.workers else max(1, min(TOGETHER, -(-len(numbers) // (2 * max(1, self.workers)))))
        devices = {name: next(policy.parameters()).device for name, policy in policies.items()}
        for kit in {self.jobs[number].kit.name: self.jobs[number].kit for number in numbers}.values():
            mine = [number for number in numbers if self.jobs[number].kit.name == kit.name]
            for batch in batches(self.jobs, mine, devices[kit.name], self.effort.nearest):
                place = self._set_of(kit, batch, policies[kit.name], sampler)
                if self.effort.nearest is None and batch.nearest is not None:
                    what = self.jobs[batch.numbers[0]].name if len(batch.numbers) == 1 else f"{len(batch.numbers)} instances"
                    self.notes.append(
                        f"{what}: large, so routes go on only to one of the {batch.nearest} nearest nodes (`nearest`)."
                    )
                refined = self._sets[place].refinement is not None
                for piece in batch.pieces(sampler, seeds, size):
                    yield _Task(place, piece, [self.jobs[number].given for number in piece.numbers if refined])

    def _set_of(self, kit: Kit, batch: Batch, policy: Network, sampler: Sampler) -> int:
        refine = refinement(kit, batch.problem, self.effort.local_search, self.effort.polish)
        new = _Set(batch.problem, policy, sampler, self.effort.limits, refine)
        for place, known in enumerate(self._sets):
            if known.problem == new.problem and known.policy is policy:
                return place
        self._sets.append(new)
        return len(self._sets) - 1

    def _trivial(self) -> Iterator[Event]:
        """Where there is nothing to search."""
        for number, job in enumerate(self.jobs):
            if job.given.solved is not None:
                yield from self._finish(number, Found([(list(job.given.solved), float("nan"))], 1, 0.0, 0, 0, 0.0))

    def _here(self) -> Iterator[Event]:
        for task in self._tasks:
            try:
                for found in _work(self._sets[task.set], task, self._report(task.piece)):
                    for number, each in zip(task.piece.numbers, found, strict=True):
                        yield from self._improve(number, each)
            except GumbeldoreError as error:
                yield from self._fail(task.piece.numbers, str(error))
                continue
            for number, each in zip(task.piece.numbers, found, strict=True):
                yield from self._finish(number, each)

    def _in_processes(self) -> Iterator[Event]:
        depth = max((self._sets[task.set].problem.horizon(task.piece.state) for task in self._tasks), default=0)
        with TemporaryDirectory(prefix="gumbeldore-") as folder:
            self._board = Board(Path(folder) / "board", len(self.jobs), depth)
            self._board.clear()
            results = in_processes(_Worker(self._sets, self._board), dict(enumerate(self._tasks)), self.workers)
            try:
                with closing(results):
                    for index, answer in results:
                        yield from self._take(self._tasks[index].piece.numbers, answer)
            except GumbeldoreError as error:  # all workers are gone
                yield from self._fail([n for n in range(len(self.jobs)) if n not in self.done], str(error))
            finally:
                self.so_far()
                self._progress, self._board = self._board.progress().tolist(), None

    def _take(self, numbers: list[int], answer: list[Found] | str) -> Iterator[Event]:
        """What a worker says about a piece."""
        if isinstance(answer, str):
            yield from self._fail(numbers, answer)
            return
        for number, found in zip(numbers, answer, strict=True):
            yield from self._finish(number, found)

    def _report(self, piece: Piece) -> Callable[[float], None]:
        def report(fraction: float) -> None:
            for number in piece.numbers:
                self._progress[number] = fraction

        return report

    def _improve(self, number: int, found: Found) -> Iterator[Event]:
        before = self.latest.get(number)
        self.latest[number] = found
        if before is None or found.objective > before.objective:
            yield Better(number, found)

    def _finish(self, number: int, found: Found) -> Iterator[Event]:
        try:
            done = result(self.jobs[number], found)
        except GumbeldoreError as error:
            yield from self._fail([number], str(error))
            return
        self.latest[number], self.done[number] = found, done
        yield done

    def _fail(self, numbers: Sequence[int], message: str) -> Iterator[Event]:
        for number in numbers:
            self.latest.pop(number, None)
            self.failures.append(Failure(self.jobs[number].file, message, number))
            yield self.failures[-1]


def _work(given: _Set, task: _Task, report: Callable[[float], None]) -> Iterator[list[Found]]:
    """Searches a piece and refines what was found; yields what there is after each round."""
    found: list[Found] = []
    for found in search(given.problem, given.policy, given.sampler, task.piece, given.limits, report):
        yield found
    if given.refinement is not None:
        yield given.refinement(task.piece, found, task.given)


class _Worker:
    """What a process does with a task: the best of each instance, or what went wrong."""

    def __init__(self, sets: list[_Set], board: Board) -> None:
        self.sets, self.board = sets, board

    def __call__(self, task: _Task) -> list[Found] | str:
        torch.set_num_threads(1)
        numbers, found = task.piece.numbers, list[Found]()
        best = [float("-inf")] * len(numbers)

        def report(fraction: float) -> None:
            for number in numbers:
                self.board.report(number, fraction)

        try:
            for found in _work(self.sets[task.set], task, report):
                for row, (number, each) in enumerate(zip(numbers, found, strict=True)):
                    if each.objective > best[row]:
                        best[row] = each.objective
                        self.board.write(number, each)
        except GumbeldoreError as error:
            return str(error)
        return found
