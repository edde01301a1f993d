"""Worker processes that are started once and given items to work on. A worker's failure is raised here, at once and with its cause."""

from __future__ import annotations

import io
import pickle
import signal
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Self, TypeVar

import torch

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


class Crew(Generic[T, R]):
    """Processes that call one function, which `make(*shared)` returns in each of them; `shared` are tensors in shared memory.

    Spawned processes must be able to import `make`, so a script starts them below `if __name__ == "__main__":`. An exception in a
    worker, or its death, ends all of them with a `WorkerError` that names the item. So does leaving a run early, also by Ctrl-C. If
    this process is killed, they end after the item they are at.
    """

    def __init__(self, make: Callable[..., Callable[[T], R]], workers: int, shared: tuple[torch.Tensor, ...] = ()) -> None:
        require(workers >= 1, f"`workers` must be at least 1, got {workers}.")
        self._workers = [_started(make, shared) for _ in range(workers)]
        self._running = False

    def run(self, items: Mapping[Key, T]) -> Iterator[tuple[Key, R]]:
        """Gives out the first items now; yields (key, function(item)) as they get finished, in any order. One run at a time."""
        require(len(self._workers) > 0, "The workers have ended.")
        require(not self._running, "The workers are still at another run: take all its results first.")
        self._running = True
        waiting, busy = iter(items.items()), dict[Connection, _Worker]()
        try:
            for worker, (key, item) in zip(self._workers, waiting, strict=False):
                _give(worker, key, item)
                busy[worker.connection] = worker
        except BaseException:
            self.close()
            raise
        return self._results(busy, waiting)

    def _results(self, busy: dict[Connection, _Worker], waiting: Iterator[tuple[Key, T]]) -> Iterator[tuple[Key, R]]:
        try:
            while busy:
                for connection in wait(list(busy)):
                    worker = busy[connection]  # type: ignore[index]
                    done, result = worker.key, _result(worker)
                    if following := next(waiting, None):
                        _give(worker, *following)
                    else:
                        del busy[worker.connection]
                    yield done, result
            self._running = False
        finally:
            if self._running:
                self.close()

    def close(self) -> None:
        """Ends the workers, at once."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers, self._running = [], False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def in_processes(function: Callable[[T], R], items: Mapping[Key, T], workers: int) -> Iterator[tuple[Key, R]]:
    """Yields (key, function(item)) as they get finished, in any order, from processes started for these items."""
    require(workers >= 1, f"`workers` must be at least 1, got {workers}.")
    if items:
        with Crew(partial(_same, function), min(workers, len(items))) as crew:
            yield from crew.run(items)


def in_order(results: Iterator[tuple[int, R]]) -> Iterator[R]:
    """The results of the items 0, 1, 2, ... in this order, each as soon as all before it are there."""
    ready: dict[int, R] = {}
    position = 0
    for key, result in results:
        ready[key] = result
        while position in ready:
            yield ready.pop(position)
            position += 1


def _same(function: Callable[[T], R]) -> Callable[[T], R]:
    return function


def _started(make: Callable[..., Callable[[Any], Any]], shared: tuple[torch.Tensor, ...]) -> _Worker:
    context = get_context("spawn")  # a fork would copy locks that other threads hold
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, _packed(make), shared), daemon=True)
    process.start()
    there.close()  # so that the end of the worker ends our reading
    return _Worker(process, here)


def _give(worker: _Worker, key: Any, item: Any) -> None:
    worker.key = key
    try:
        worker.connection.send_bytes(_packed(item))
    except OSError as error:
        raise _death(worker) from error


def _result(worker: _Worker) -> Any:
    try:
        failure, result = pickle.loads(worker.connection.recv_bytes())  # from our own process
    except (EOFError, OSError) as error:
        raise _death(worker) from error
    if failure:
        raise WorkerError(f"Item {worker.key} failed in a worker process: {failure}")
    return result


def _death(worker: _Worker) -> WorkerError:
    worker.process.join()
    return WorkerError(
        f"A worker process died at item {worker.key} (exit code {worker.process.exitcode}; -9 often means that memory ran out, "
        f"-11 that a compiled library crashed)."
    )


def _work(connection: Connection, make: bytes, shared: tuple[torch.Tensor, ...]) -> None:
    """The life of a worker: until the other side goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    function: Callable[[Any], Any] | None = None
    while True:
        try:
            item = connection.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            function = function or pickle.loads(make)(*shared)
            answer = ("", function(pickle.loads(item)))
        except GumbeldoreError as error:
            answer = (str(error), None)
        except Exception:
            answer = ("\n" + traceback.format_exc().rstrip(), None)
        try:
            connection.send_bytes(_packed(answer))
        except OSError:
            return


class _Pickler(pickle.Pickler):
    """Sends tensors as plain arrays, which is much faster for small ones than sharing their memory."""

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is torch.Tensor and thing.device.type == "cpu" and not thing.requires_grad:
            return torch.from_numpy, (thing.numpy(),)
        return NotImplemented


def _packed(thing: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(thing)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise WorkerError(
            f"This cannot be sent to a worker process: {error}. Define functions and classes at the top of a module (not lambdas, not "
            f"inside functions), or set `workers` to 0."
        ) from error
    return buffer.getvalue()
