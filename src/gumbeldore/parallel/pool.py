"""A pool of workers, wherever they live: they are given items one at a time, and those that die are replaced.

A worker's exception is raised here, at once and with its cause. The item of a worker that dies is done again by another one, so what is
done with an item must depend on the item alone.
"""

from __future__ import annotations

import logging
import traceback
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

from gumbeldore.errors import GumbeldoreError, foreign_fault, memory_fault, require

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")
Answer = tuple[str, Any]  # what went wrong, or nothing; and the result

_ATTEMPTS = 3
"""So many workers may die in a row while they start, or at one item, before that is an error."""

READY: Answer = ("", None)
"""The first answer of every worker."""

log = logging.getLogger(__name__)


class WorkerError(GumbeldoreError):
    """A worker raised an exception or died."""


class WorkerDeath(Exception):  # noqa: N818 - it is an event; whether it is an error is up to the pool
    """How a worker died. `final`: another one would fare no better. `with_machine`: it is nobody's fault, however often it happens."""

    def __init__(self, how: str, *, final: bool = False, with_machine: bool = False) -> None:
        super().__init__(how)
        self.final, self.with_machine = final, with_machine


class Worker(ABC):
    """One that works. Both methods that talk to it raise a `WorkerDeath` if it is no more."""

    ready = False
    task: tuple[Any, Any] | None = None  # the key and the item it works on

    @abstractmethod
    def give(self, item: Any) -> None:
        """Begins with an item. Called when it is ready for one."""

    @abstractmethod
    def answer(self) -> Answer:
        """What it has to say. Called when there is something."""

    @abstractmethod
    def end(self) -> None:
        """Ends it, at once."""


W = TypeVar("W", bound=Worker)


class WorkerPool(ABC, Generic[W, T, R]):
    """Workers that apply one function to items. An exception in a worker ends all of them, and so does leaving a run early."""

    def __init__(self) -> None:
        self._workers: list[W] = []
        self._running = self._closed = False
        self._failed_starts = 0

    @abstractmethod
    def _start(self) -> W:
        """A new worker; it need not be ready."""

    @abstractmethod
    def _heard(self, workers: Sequence[W]) -> Sequence[W]:
        """Waits until some of them, starting or at work, have something to say or are dead. May give up after a while."""

    @abstractmethod
    def _wanted(self) -> int:
        """How many workers there should be now."""

    def run(self, items: Mapping[Key, T], name: Callable[[Key], str] = "item {}".format) -> Iterator[tuple[Key, R]]:
        """Gives out the first items now, each when it is asked of `items`; yields (key, function(item)) as they get finished, in any order. One run at a time.

        `name` says in errors what an item is.
        """
        require(not self._closed, "The workers have ended.")
        require(not self._running, "The workers are still at another run: take all its results first.")
        self._running = True
        run = _Run(items, name)
        with self._closing():
            self._hand_out(run)
        return self._results(run)

    def _results(self, run: _Run) -> Iterator[tuple[Any, Any]]:
        with self._closing():
            while run.waiting or any(worker.task for worker in self._workers):
                for worker in self._heard([w for w in self._workers if w.task or not w.ready]):
                    yield from self._listen(worker, run)
                self._hand_out(run)
            self._running = False

    def _listen(self, worker: W, run: _Run) -> Iterator[tuple[Any, Any]]:
        """Takes what a worker says. It gets its next item before its result is passed on."""
        try:
            failure, result = worker.answer()
        except WorkerDeath as death:
            self._reap(worker, run, death)
            return
        if not worker.ready:
            worker.ready, self._failed_starts = True, 0
            return
        assert worker.task is not None
        (key, _), worker.task = worker.task, None
        if failure:
            raise WorkerError(f"{_capital(run.name(key))} failed in a worker process: {failure}")
        self._hand_out(run)
        yield key, result

    def _hand_out(self, run: _Run) -> None:
        """Gives every free worker an item, and starts those that are missing."""
        while run.waiting and (free := next((w for w in self._workers if w.ready and not w.task), None)):
            key = run.waiting.popleft()
            free.task = key, run.items[key]
            try:
                free.give(free.task[1])
            except WorkerDeath as death:
                self._reap(free, run, death)
        unserved = len(run.waiting) - sum(not worker.ready for worker in self._workers)
        if unserved > 0:
            self._workers += [self._start() for _ in range(min(unserved, self._wanted() - len(self._workers)))]

    def _reap(self, worker: W, run: _Run, death: WorkerDeath) -> None:
        """Puts the item of a dead worker back; too many deaths are an error."""
        self._workers.remove(worker)
        worker.end()
        if worker.task is None:
            self._failed_starts += not death.with_machine
            count, where = self._failed_starts, "while it started"
        else:
            run.deaths[worker.task[0]] += not death.with_machine
            count, where = run.deaths[worker.task[0]], f"at {run.name(worker.task[0])}"
            run.waiting.appendleft(worker.task[0])
        if death.final or count >= _ATTEMPTS:
            others = f" So did the {count - 1} before it." if count > 1 else ""
            raise WorkerError(f"A worker process died {where} ({death}).{others}") from None
        log.warning("A worker process died %s (%s). Another one takes its place.", where, death)

    def close(self) -> None:
        """Ends the workers, at once."""
        for worker in self._workers:
            worker.end()
        self._workers, self._running, self._closed = [], False, True

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """Ends the workers if the block is left before its end."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Run:
    """The items of a run, the keys of those that nobody works on, what they are called, and how many workers have died at each."""

    def __init__(self, items: Mapping[Any, Any], name: Callable[[Any], str]) -> None:
        self.items, self.waiting, self.name, self.deaths = items, deque(items), name, Counter[Any]()


def attempt(work: Callable[[], Any]) -> Answer:
    """What a worker answers: the result, or what went wrong."""
    try:
        return "", work()
    except GumbeldoreError as error:
        return str(error), None
    except Exception as error:
        return memory_fault(error) or foreign_fault(error) or "\n" + traceback.format_exc().rstrip(), None


def same(function: Callable[[T], R]) -> Callable[[T], R]:
    """For workers that need not make the function which they call."""
    return function


def in_order(results: Iterator[tuple[int, R]]) -> Iterator[R]:
    """The results of the items 0, 1, 2, ... in this order, each as soon as all before it are there."""
    ready: dict[int, R] = {}
    position = 0
    for key, result in results:
        ready[key] = result
        while position in ready:
            yield ready.pop(position)
            position += 1


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
