"""Solving many instances, in this process or in several, so that what was found so far is there at any moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from gumbeldore.errors import GumbeldoreError, SettingsError
from gumbeldore.parallel.processes import in_processes
from gumbeldore.policy import Policy
from gumbeldore.search.samplers import Sampler, draw_seeds
from gumbeldore.solving.blame import blamed
from gumbeldore.solving.board import Board
from gumbeldore.solving.effort import Effort, PartName
from gumbeldore.solving.found import START, Found, Improvement
from gumbeldore.solving.jobs import ALONE, LARGE, TOGETHER, Group, Job, fitting, groups, restriction
from gumbeldore.solving.portfolio import Portfolio
from gumbeldore.solving.refining import check_polish, polished
from gumbeldore.solving.results import Result, result
from gumbeldore.solving.search import Report, search
from gumbeldore.solving.sharing import ENDED, Others, together


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

    @property
    def line(self) -> str:
        """The message, with the file if it does not name it."""
        name = "" if self.file is None else str(self.file)
        return self.message if name in self.message else f"{name}: {self.message}"


Event = Better | Result | Failure


@dataclass(frozen=True)
class Worker:
    """What is done with a group of jobs, here or in another process."""

    policies: Mapping[str, Policy[Any]]
    effort: Effort
    sampler: Sampler

    def rounds(self, group: Group, report: Report, others: Others | None = None) -> Iterator[list[Found]]:
        """What there is after each round of the search; the last is final. `others` search the same instance elsewhere."""
        job = group.jobs[0]
        policy = self.policies.get(job.kit.name)
        parts, limits = self.effort.parts_for(job, policy is not None), self.effort.limits
        if parts == ("policy",) and policy is not None:
            found = search(group, policy, self.sampler, limits, report)
        else:
            found = iter(Portfolio(group, policy, self.sampler, limits, parts, report, others))
        return found if self.effort.polish is None else polished(group, found, self.effort.polish)


class Solving:
    """Jobs that are being solved: iterate over it for what happens, ask for `results` at any time, also after an interrupt."""

    def __init__(self, jobs: Sequence[Job], policies: Mapping[str, Policy[Any]], effort: Effort, *, workers: int = 0) -> None:
        """`policies` by name of the kit; 0 `workers`: in this process."""
        self.jobs, self.effort, self.workers = jobs, effort, workers
        self.latest: dict[int, Found] = {}  # the best so far, by number of the job
        self.done: dict[int, Result] = {}
        self.failures: list[Failure] = []
        self.notes: list[str] = []  # what a user should know
        self._progress = [0.0] * len(jobs)
        self._board: Board | None = None
        self._copies = 1  # of each job, in several processes
        self._answers: dict[int, list[Found]] = {}  # of those that are done
        for kit in {job.kit.name: job.kit for job in jobs}.values():
            check_polish(kit, effort.polish)
        sampler = replace(effort.chosen, memory=effort.memory // max(1, workers))  # type: ignore[type-var]
        self._worker = Worker(policies, effort, sampler)
        self._groups = list(self._plan())

    def __iter__(self) -> Iterator[Event]:
        yield from self._trivial()
        if self.workers:
            yield from self._in_processes()
            return
        with one_thread():
            for group in self._groups:
                try:
                    for found in self._worker.rounds(group, self._report(group)):
                        for number, each in zip(group.numbers, found, strict=True):
                            if each.best and self._improves(number, each):
                                yield Better(number, each)
                except Exception as error:
                    yield from self._fail(group.numbers, blamed(error, group.jobs[0].kit))
                    continue
                for number in group.numbers:
                    yield from self._finish(number, self.latest[number])

    @property
    def completed(self) -> float:
        """How many jobs are done, in parts."""
        if self._board is not None:
            self._progress = self._board.progress().tolist()
        return sum(1.0 if number in self.done else self._progress[number] for number in range(len(self.jobs)))

    def so_far(self) -> dict[int, Found]:
        """The best of every job that has some; also what workers found a moment ago."""
        if self._board is not None:
            for place, turns in enumerate(self._board.turns().tolist()):
                number = place % len(self.jobs)
                if turns and number not in self.done:
                    found = self._board.read(place)
                    self.latest[number] = min(self.latest.get(number, found), found, key=lambda each: each.cost)
        return dict(sorted(self.latest.items()))

    def result(self, number: int) -> Result:
        """Of a job of which something is known."""
        return self.done.get(number) or result(self.jobs[number], self.latest[number])

    def results(self) -> list[Result]:
        """Of all jobs of which something is known, in their order."""
        return [self.result(number) for number in self.so_far()]

    def _plan(self) -> Iterator[Group]:
        """All pieces of work."""
        numbers = [number for number, job in enumerate(self.jobs) if job.given.solved is None]
        seeds = self._seeds()
        for kit in {self.jobs[number].kit.name for number in numbers}:
            mine = [number for number in numbers if self.jobs[number].kit.name == kit]
            alone = [number for number in mine if self._parts(number) == ("policy",)]
            for group in groups(self.jobs, alone, seeds, self.effort.nearest):
                self._note(group)
                each = max(1, min(TOGETHER, -(-len(numbers) // (2 * max(1, self.workers)))))
                fits = fitting(group, self._worker.sampler)
                yield from group.parts(min(fits, each if self.workers else ALONE))
            if len(mine) == len(numbers) and not alone:  # more processes than jobs: some work on the same ones
                self._copies = max(1, self.workers // len(mine))
            for number in sorted(set(mine) - set(alone)):
                for copy in range(self._copies):
                    yield Group([number], [self.jobs[number]], [seeds[number] ^ copy], self.effort.nearest, copy)

    def _parts(self, number: int) -> tuple[PartName, ...]:
        job = self.jobs[number]
        return self.effort.parts_for(job, job.kit.name in self._worker.policies)

    def _seeds(self) -> list[int]:
        """One for each job."""
        if isinstance(self.effort.seed, int):
            return draw_seeds(len(self.jobs), torch.Generator().manual_seed(self.effort.seed)).tolist()
        if len(self.effort.seed) != len(self.jobs):
            raise SettingsError(
                f"`seed` must be one, or one for each of {len(self.jobs)} instances, got {len(self.effort.seed)}."
            )
        return list(self.effort.seed)

    def _note(self, group: Group) -> None:
        """Says so where a policy alone would not see all nodes."""
        problem, state = group.parts(1)[0].initial()
        nearest = restriction(group.jobs[0].kit, problem.horizon(state), None)
        if self.effort.nearest is None and nearest is not None and problem.horizon(state) >= LARGE:
            what = group.jobs[0].name if len(group) == 1 else f"{len(group)} instances"
            self.notes.append(f"{what}: large, so routes go on only to one of the {nearest} nearest nodes (`nearest`).")

    def _trivial(self) -> Iterator[Event]:
        """Where there is nothing to search."""
        for number, job in enumerate(self.jobs):
            if job.given.solved is not None:
                actions = list(job.given.solved)
                cost = job.cost(actions)
                yield from self._finish(number, Found([(actions, cost)], 0, 0.0, improvements=(Improvement(START, cost, 0.0),)))

    def _in_processes(self) -> Iterator[Event]:
        depth = max((longest(group) for group in self._groups), default=0)
        with TemporaryDirectory(prefix="gumbeldore-") as folder:
            self._board = Board(Path(folder) / "board", len(self.jobs) * self._copies, depth)
            self._board.clear()
            results = in_processes(
                InProcess(self._worker, self._board, len(self.jobs), self._copies), dict(enumerate(self._groups)), self.workers
            )
            try:
                with closing(results):
                    for index, answer in results:
                        yield from self._take(self._groups[index].numbers, answer)
            except GumbeldoreError as error:  # all workers are gone
                yield from self._fail([n for n in range(len(self.jobs)) if n not in self.done], str(error))
            finally:
                self.so_far()
                self._progress, self._board = self._board.progress().tolist(), None

    def _take(self, numbers: list[int], answer: list[Found] | str) -> Iterator[Event]:
        """What a worker says about a group."""
        if isinstance(answer, str):
            yield from self._fail(numbers, answer)
            return
        for number, found in zip(numbers, answer, strict=True):
            copies = self._answers.setdefault(number, [])
            copies.append(found)
            if len(copies) == self._copies:
                yield from self._finish(number, together(copies))

    def _report(self, group: Group) -> Callable[[float], None]:
        def report(fraction: float) -> None:
            for number in group.numbers:
                self._progress[number] = fraction

        return report

    def _improves(self, number: int, found: Found) -> bool:
        before = self.latest.get(number)
        self.latest[number] = found
        return before is None or found.cost < before.cost

    def _finish(self, number: int, found: Found) -> Iterator[Event]:
        try:
            done = result(self.jobs[number], found)
        except Exception as error:
            yield from self._fail([number], blamed(error, self.jobs[number].kit))
            return
        self.latest[number], self.done[number] = found, done
        yield done

    def _fail(self, numbers: Sequence[int], message: str) -> Iterator[Event]:
        for number in numbers:
            if any(failure.number == number for failure in self.failures):  # another copy has said so
                continue
            self.latest.pop(number, None)
            self.failures.append(Failure(self.jobs[number].file, message, number))
            yield self.failures[-1]


@dataclass(frozen=True)
class InProcess:
    """A group solved in a process of its own: the best of each job goes to the board as it comes. Returns what went wrong as a text."""

    worker: Worker
    board: Board
    jobs: int = 0
    copies: int = 1

    def __call__(self, group: Group) -> list[Found] | str:
        found, best = list[Found](), [float("inf")] * len(group)
        places = [number + group.copy * self.jobs for number in group.numbers]

        def report(fraction: float) -> None:
            for place in places:
                self.board.report(place, fraction)

        try:
            with one_thread():
                for found in self.worker.rounds(group, report, self._others(group)):
                    for row, (place, each) in enumerate(zip(places, found, strict=True)):
                        if each.best and each.cost < best[row]:
                            best[row] = each.cost
                            self.board.write(place, each)
        except Exception as error:
            return blamed(error, group.jobs[0].kit)
        report(ENDED)
        return found

    def _others(self, group: Group) -> Others | None:
        if self.copies == 1:
            return None
        (number,) = group.numbers
        return Others(self.board, [number + copy * self.jobs for copy in range(self.copies) if copy != group.copy])


@contextmanager
def one_thread() -> Iterator[None]:
    """Networks of this size gain next to nothing by a second thread, and lose nine tenths where a core is busy otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def longest(group: Group) -> int:
    """How many actions a solution of these jobs may have."""
    job = group.jobs[0]
    if not job.for_policies:
        return 2 * max(array.shape[0] for array in job.given.arrays.values() if array.ndim)
    problem, state = group.parts(1)[0].initial()
    return problem.horizon(state)
