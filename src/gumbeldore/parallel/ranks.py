"""Several processes with a GPU each, or machines, that do the same work together (`torchrun`).

All ranks go through the same events and draw the same random numbers. What takes time is shared. The first rank alone writes files.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed

from gumbeldore.errors import SettingsError, require

T = TypeVar("T")
E = TypeVar("E")

_KEY = "ranks"
"""In the store of the ranks: how many of them are there."""

_MEETINGS = itertools.count()
"""A process may train more than once, and `torchrun` may start its ranks again: each meeting has keys of its own."""

PATIENCE, TELL = 1800.0, 10.0
"""Seconds after which a rank that waits for others gives up, and after which it says that it waits."""

log = logging.getLogger("gumbeldore")


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this is."""

    index: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        return self.index == 0

    def share(self, number: int) -> int:
        """This rank's part of a number of things."""
        return number * (self.index + 1) // self.count - number * self.index // self.count

    def told(self, value: T) -> T:
        """The first rank's value, on all ranks. To be called by all at the same place."""
        if self.count == 1:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0)
        return box[0]

    def synchronised(self, events: Iterator[E], ends: type) -> Iterator[E]:
        """The events of a training. If the first rank leaves after one of the kind `ends`, the others do, too."""
        for event in events:
            try:
                yield event
            except GeneratorExit:
                if isinstance(event, ends) and self.first:
                    self.told(False)
                raise
            if isinstance(event, ends) and not self.told(True):
                return


def ranks() -> Ranks:
    """Those of the process group that this process has joined; one alone otherwise."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return Ranks()
    return Ranks(distributed.get_rank(), distributed.get_world_size())


@contextmanager
def joined() -> Iterator[Ranks]:
    """Joins the ranks that `torchrun` started, with a GPU each where there are any; nothing without it."""
    index, count = _place()
    if count == 1 or ranks().count > 1:
        yield ranks()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    store = _meeting(index, count)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, store=store, rank=index, world_size=count)
    try:
        yield ranks()
    finally:
        distributed.destroy_process_group()


def _place() -> tuple[int, int]:
    """Which of how many this process is, as `torchrun` says."""
    texts = {name: os.environ.get(name, usual) for name, usual in (("RANK", "0"), ("WORLD_SIZE", "1"))}
    require(
        all(text.isdigit() for text in texts.values()), f"RANK and WORLD_SIZE must be numbers from `torchrun`, got {texts}."
    )
    index, count = map(int, texts.values())
    require(index < max(count, 1), f"RANK must be below WORLD_SIZE, got {index} of {count}.")
    return index, max(count, 1)


def _meeting(index: int, count: int) -> Any:
    """Where the ranks meet, when all are there. Waits in short turns, so that Ctrl-C ends it, and says for whom."""
    host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    require(bool(host) and port.isdigit(), "Ranks need MASTER_ADDR and MASTER_PORT. Start them with `torchrun`.")
    hosts = index == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    began, told = time.monotonic(), False
    prefix = f"gumbeldore/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{next(_MEETINGS)}"
    store: Any = None
    while store is None or store.add(_KEY, 0) < count:
        if store is None and (reached := _reached(host, int(port), hosts)) is not None:
            store = distributed.PrefixStore(prefix, reached)  # type: ignore[attr-defined]
            store.add(_KEY, 1)
            continue
        waited = time.monotonic() - began
        require(waited < PATIENCE, f"The {count} ranks did not meet at {host}:{port} within {PATIENCE:g} s. Are all started?")
        if waited > TELL and not told:
            log.warning("Rank %d waits at %s:%s for the other ranks. Ctrl-C stops.", index, host, port)
            told = True
        time.sleep(0.05)
    store.set_timeout(timedelta(seconds=PATIENCE))
    return store


def _reached(host: str, port: int, hosts: bool) -> Any:
    """The store of the ranks, made here or by another one; None while nobody answers."""
    if not hosts and not _answers(host, port):
        return None
    try:
        return distributed.TCPStore(  # type: ignore[attr-defined]
            host, port, None, hosts, timeout=timedelta(seconds=10), wait_for_workers=False
        )
    except RuntimeError as error:  # torch's own errors of connections
        if hosts:
            raise SettingsError(f"Rank 0 cannot listen at {host}:{port}: {str(error).splitlines()[0]}") from error
        return None


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return False
    return True
