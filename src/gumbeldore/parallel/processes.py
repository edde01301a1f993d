"""A pool of processes on this machine, started once and all at the same time."""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import current_process, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import torch

from gumbeldore.errors import require
from gumbeldore.parallel.devices import bounded
from gumbeldore.parallel.pool import (
    READY,
    Answer,
    Key,
    R,
    T,
    Worker,
    WorkerDeath,
    WorkerError,
    WorkerPool,
    attempt,
    in_order,
    same,
)

__all__ = ["Processes", "WorkerError", "in_order", "in_processes"]

_UNGUARDED = 78
"""The exit code of a process that, while it starts, would start processes itself: its script has no guard."""

_GUARD = (
    "its script starts processes wherever it is imported, and so in every process. Put what the script does below a line "
    '`if __name__ == "__main__":`, or set `workers` to 0'
)


class Processes(WorkerPool["_Process", T, R]):
    """Processes that call one function, which `make(*shared)` returns in each of them; `shared` are tensors in shared memory.

    Spawned processes must be able to import `make`, so a script starts them below `if __name__ == "__main__":`. If this process is
    killed, they end at once.
    """

    def __init__(self, make: Callable[..., Callable[[T], R]], workers: int, shared: tuple[torch.Tensor, ...] = ()) -> None:
        super().__init__()
        require(workers >= 1, f"`workers` must be at least 1, got {workers}.")
        self._count, self._make, self._shared = bounded(workers), _packed(make), shared
        with self._closing():
            for _ in range(self._count):
                self._workers.append(self._start())

    def _wanted(self) -> int:
        return self._count

    def _start(self) -> _Process:
        return _Process(self._make, self._shared)

    def _heard(self, workers: Sequence[_Process]) -> Sequence[_Process]:
        by_connection = {worker.connection: worker for worker in workers}
        return [by_connection[cast(Connection, connection)] for connection in wait(list(by_connection))]


def in_processes(function: Callable[[T], R], items: Mapping[Key, T], workers: int) -> Generator[tuple[Key, R], None, None]:
    """Yields (key, function(item)) as they get finished, in any order, from processes started for these items."""
    require(workers >= 1, f"`workers` must be at least 1, got {workers}.")
    if items:
        with Processes[T, R](partial(same, function), min(workers, len(items))) as pool:
            yield from pool.run(items)


class _Process(Worker):
    """A process and our end of its connection, which ends when the process does.

    What `start` itself sends must be small: it waits until that has been read, also by a process that is dead. So the rest
    follows when the process has said that it is ready.
    """

    def __init__(self, make: bytes, shared: tuple[torch.Tensor, ...]) -> None:
        context = get_context("spawn")  # a fork would copy locks that other threads hold
        self.connection, there = context.Pipe()
        self._make: bytes | None = make
        self._process = context.Process(target=_work, args=(there, shared), daemon=True)
        try:
            with _deaf():
                self._process.start()
        except RuntimeError:
            if getattr(current_process(), "_inheriting", False):  # it imports its script, and is about to do what that does
                sys.exit(_UNGUARDED)
            raise
        there.close()

    def give(self, item: Any) -> None:
        data = _packed(item)
        try:
            if self._make is not None:
                self.connection.send_bytes(self._make)
                self._make = None
            self.connection.send_bytes(data)
        except OSError as error:
            raise self._death() from error

    def answer(self) -> Answer:
        try:
            return cast(Answer, pickle.loads(self.connection.recv_bytes()))  # from our own process
        except (EOFError, OSError) as error:
            raise self._death() from error

    def _death(self) -> WorkerDeath:
        self._process.join(5)
        code = self._process.exitcode
        if code == _UNGUARDED and not self.ready:
            return WorkerDeath(_GUARD, final=True)
        if not self.ready and code is not None and code > 0:
            return WorkerDeath(f"exit code {code}; what it wrote before that says why", final=True)
        return WorkerDeath(f"exit code {code}; -9 often means that memory ran out, -11 that a compiled library crashed")

    def end(self) -> None:
        self._process.terminate()
        self._process.join(5)
        self._process.kill()
        self._process.join()
        self.connection.close()


@contextmanager
def _deaf() -> Iterator[None]:
    """What starts here never hears of Ctrl-C or of a closed terminal: those are for the parent, which ends its workers. It hears them afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it unblocks signals when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """Ends this process as soon as its parent is gone, whatever it is at."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(connection: Connection, shared: tuple[torch.Tensor, ...]) -> None:
    """The life of a worker: until the other side goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    failure, function = "", None
    try:
        connection.send_bytes(_packed(READY))
        make = connection.recv_bytes()
        while True:
            item = connection.recv_bytes()
            if function is None:
                failure, function = attempt(lambda: pickle.loads(make)(*shared))
            connection.send_bytes(_packed((failure, None)) if failure else _answer(function, item))
    except (EOFError, OSError):
        return


def _answer(function: Any, item: bytes) -> bytes:
    answer = attempt(lambda: function(pickle.loads(item)))
    try:
        return _packed(answer)
    except WorkerError as error:
        return _packed((str(error), None))


class _Pickler(pickle.Pickler):
    """Sends tensors as plain arrays, which is much faster for small ones than sharing their memory."""

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is torch.Tensor and thing.device.type == "cpu" and not thing.requires_grad:
            return torch.from_numpy, (thing.numpy(),)
        return NotImplemented


def _packed(thing: Any) -> bytes:
    """What goes to a process or comes from it."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(thing)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise WorkerError(
            f"This cannot be sent to a worker process: {error}. Define functions and classes at the top of a module (not lambdas, not "
            f"inside functions), or set `workers` to 0."
        ) from error
    return buffer.getvalue()
