"""Runs a function on many items in worker processes. A worker's failure is raised here, at once and with its cause."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from gumbeldore.errors import GumbeldoreError, require

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")


class WorkerError(GumbeldoreError):
    """A worker process raised an exception or died."""


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    key: Any = None  # of the item it works on


def in_processes(function: Callable[[T], R], items: Mapping[Key, T], workers: int) -> Iterator[tuple[Key, R]]:
    """Yields (key, function(item)) as they get finished, in any order; `function` is one that spawned processes can import.

    An exception in a worker, or its death, ends everything with a `WorkerError` that names the item. Closing the iterator (also
    by Ctrl-C) ends the workers at once. If this process is killed, they end after the item they are at.
    """
    require(workers >= 1, f"`workers` must be at least 1, got {workers}.")
    waiting = iter(items.items())
    crew: dict[Connection, _Worker] = {}
    try:
        for _ in range(min(workers, len(items))):
            worker = _started(function)
            crew[worker.connection] = worker
            worker.key, item = next(waiting)
            worker.connection.send(item)
        busy = dict(crew)
        while busy:
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]
                key, result = worker.key, _result(worker)
                if following := next(waiting, None):
                    worker.key, item = following
                    worker.connection.send(item)
                else:
                    del busy[worker.connection]
                yield key, result
    finally:
        for worker in crew.values():
            worker.process.terminate()
            worker.process.join()
            worker.connection.close()


def _started(function: Callable[[Any], Any]) -> _Worker:
    context = get_context("spawn")  # a fork would copy locks that other threads hold
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, function), daemon=True)
    process.start()
    there.close()  # so that the end of the worker ends our reading
    return _Worker(process, here)


def _result(worker: _Worker) -> Any:
    try:
        failure, result = worker.connection.recv()
    except (EOFError, OSError) as error:
        worker.process.join()
        raise WorkerError(
            f"A worker process died at item {worker.key} (exit code {worker.process.exitcode}; -9 often means that memory ran out, "
            f"-11 that a compiled library crashed)."
        ) from error
    if failure:
        raise WorkerError(f"Item {worker.key} failed in a worker process: {failure}")
    return result


def _work(connection: Connection, function: Callable[[Any], Any]) -> None:
    """The life of a worker: until the other side goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    while True:
        try:
            item = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = ("", function(item))
        except GumbeldoreError as error:
            answer = (str(error), None)
        except Exception:
            answer = ("\n" + traceback.format_exc().rstrip(), None)
        connection.send(answer)
