"""A pool of Ray actors on many machines, as many as fit; on machines that join later, too.

    pip install "gumbeldore[ray]"

An actor is a process that keeps its policy, its thread and its share of a GPU. Machines that are lost take their actors along; the pool gives
what those were at to others.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import current_thread, main_thread
from types import ModuleType
from typing import Any

from gumbeldore.errors import SettingsError, require
from gumbeldore.parallel.pool import Answer, Key, R, T, Worker, WorkerDeath, WorkerPool, attempt, same
from gumbeldore.parallel.ranks import ranks

_LOOK_SECONDS = 1.0
"""How often a pool looks for machines that joined."""


@dataclass(frozen=True)
class Cluster:
    """Where samplers run: a Ray cluster. Gradients stay on the machine of the training, in `workers` processes (0: its own)."""

    address: str = "local"  # local: this machine, started for the purpose; auto, HOST:6379: from a machine of the cluster; ray://HOST:10001
    workers: int = 0
    gpus: float = 0.0  # of a GPU per sampler; 0: they work on CPUs
    cpus: float = 1.0  # per sampler
    samplers: int | None = None  # how many; None: as many as fit, at any time

    def __post_init__(self) -> None:
        require(self.address != "", "`cluster` must be local, auto, HOST:PORT or ray://HOST:PORT, got nothing.")
        require(0 <= self.gpus < math.inf, f"`sampler_gpus` must be at least 0 (CPUs only), got {self.gpus}.")
        require(self.gpus <= 1 or self.gpus == int(self.gpus), f"`sampler_gpus` above 1 must be whole, got {self.gpus}.")
        require(0 < self.cpus < math.inf, f"`sampler_cpus` must be above 0, got {self.cpus}.")
        require(self.samplers is None or self.samplers >= 1, f"`samplers` must be at least 1, got {self.samplers}.")

    def run(self, function: Callable[[T], R], items: Mapping[Key, T]) -> Generator[tuple[Key, R], None, None]:
        """Yields (key, function(item)) as they get finished, in any order; `in_processes` on a cluster."""
        if items:
            with Actors[T, R](partial(same, function), self) as pool:
                yield from pool.run(items)

    def slots(self, nodes: Sequence[Mapping[str, Any]]) -> int:
        """How many samplers fit on the machines that are there."""
        alive = [node["Resources"] for node in nodes if node["Alive"]]
        return sum(self._fitting(node.get("CPU", 0.0), node.get("GPU", 0.0)) for node in alive)

    def _fitting(self, cpus: float, gpus: float) -> int:
        """How many fit on one machine. A share of a GPU lies on one GPU."""
        by_gpu = math.inf if self.gpus == 0 else gpus // self.gpus if self.gpus >= 1 else gpus * (1 // self.gpus)
        return int(min(cpus // self.cpus, by_gpu))


class Actors(WorkerPool["_Actor", T, R]):
    """Actors that call one function, which `make()` returns in each of them. Connects to the cluster, or starts it."""

    def __init__(self, make: Callable[[], Callable[[T], R]], cluster: Cluster) -> None:
        super().__init__()
        self._ray, self._cluster, self._looked, self._slots = ray(), cluster, -math.inf, 0
        self._connected = not self._ray.is_initialized()
        if self._connected:
            _connect(self._ray, cluster)
        self._class = self._ray.remote(max_restarts=0)(_Life).options(num_cpus=cluster.cpus, num_gpus=cluster.gpus)
        self._make = self._ray.put(make)  # ours, and copied once to every machine
        if self._wanted() == 0:
            self.close()
            raise SettingsError(
                f"No machine of the cluster has room for a sampler ({cluster.cpus:g} CPU, {cluster.gpus:g} GPU). Lower `sampler_cpus` or "
                f"`sampler_gpus`, or add machines."
            )

    def _wanted(self) -> int:
        if self._cluster.samplers is not None:
            return self._cluster.samplers
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked, self._slots = time.monotonic(), ranks().share(self._cluster.slots(self._ray.nodes()))
        return self._slots

    def _start(self) -> _Actor:
        return _Actor(self._ray, self._class.remote(self._make))

    def _heard(self, workers: Sequence[_Actor]) -> Sequence[_Actor]:
        if not workers:  # all machines are gone
            time.sleep(_LOOK_SECONDS)
            return []
        by_reference = {worker.said: worker for worker in workers}
        said, _ = self._ray.wait(list(by_reference), timeout=_LOOK_SECONDS)
        return [by_reference[reference] for reference in said]

    def close(self) -> None:
        super().close()
        if self._connected:
            self._ray.shutdown()
            self._connected = False


class _Actor(Worker):
    """A handle on an actor, and the reference of what it says next."""

    def __init__(self, module: Any, handle: Any) -> None:
        self._ray, self._handle, self._machine = module, handle, ""
        self.said = handle.ready.remote()

    def give(self, item: Any) -> None:
        self.said = self._handle.do.remote(item)

    def answer(self) -> Answer:
        errors = self._ray.exceptions
        try:
            failure, result = self._ray.get(self.said)
        except errors.RayTaskError as error:
            return str(error), None
        except errors.RayError as error:  # the actor, its machine or the result is lost
            raise WorkerDeath(_ends(error), with_machine=self._lost_machine(error)) from error
        if not self.ready:
            self._machine = result
        return failure, result

    def _lost_machine(self, error: Exception) -> bool:
        lost = {node["NodeID"] for node in self._ray.nodes() if not node["Alive"]}
        return self._machine in lost or "its node has died" in str(error)  # Ray's words, for one that was still starting

    def end(self) -> None:
        self._ray.kill(self._handle)


class _Life:
    """What runs in an actor."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._make = make
        self._function: Callable[[Any], Any] | None = None

    def ready(self) -> Answer:
        """Where it lives."""
        return "", ray().get_runtime_context().get_node_id()

    def do(self, item: Any) -> Answer:
        return attempt(lambda: self._apply(item))

    def _apply(self, item: Any) -> Any:
        self._function = self._function or self._make()
        return self._function(item)


def ray() -> ModuleType:
    """The library, if it is installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody unless a user wants that
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray will have it; it warns otherwise
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise SettingsError('`cluster` needs Ray, which is not installed: pip install "gumbeldore[ray]".') from error


def _call(address: str) -> None:
    """An error if nobody is there: Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host:
            socket.create_connection((host, int(port)), 10).close()
    except (OSError, ValueError) as error:
        raise SettingsError(f"`cluster` {address} does not answer ({error}). Is it running there (`ray status`)?") from error


def _connect(module: ModuleType, cluster: Cluster) -> None:
    """Ray puts a handler of its own in the place of ours for SIGTERM: that is undone."""
    _call(cluster.address)
    handler = signal.getsignal(signal.SIGTERM)
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)  # it warns that a local cluster is safe by default
    try:
        module.init(
            address=cluster.address, include_dashboard=_dashboard(cluster), log_to_driver=False, logging_level=logging.WARNING
        )
    except Exception as error:  # of any kind: Ray has no one kind for this
        local = cluster.address == "local"
        what = "cannot be started" if local else "does not answer"
        fix = "Is the machine too busy? --workers needs no Ray." if local else "Is it running (`ray status`)?"
        raise SettingsError(f"`cluster` {cluster.address} {what}: {_ends(error)} {fix}") from error
    if callable(handler) and current_thread() is main_thread():
        signal.signal(signal.SIGTERM, handler)


def _dashboard(cluster: Cluster) -> bool | None:
    """None where the cluster is there already and has one or not."""
    return False if cluster.address == "local" else None


def _ends(error: Exception) -> str:
    """Of what Ray says, which can be long, the first line and the last, which names the cause."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip() if len(lines) == 1 else f"{lines[0].strip()} ... {lines[-1].strip()}"
