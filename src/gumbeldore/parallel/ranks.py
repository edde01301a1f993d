"""Several processes with a GPU each, or machines, that do the same work together (`torchrun`).

All ranks go through the same events and draw the same random numbers. What takes time is shared. The first rank alone writes files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import distributed

T = TypeVar("T")
E = TypeVar("E")


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
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or ranks().count > 1:
        yield ranks()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield ranks()
    finally:
        distributed.destroy_process_group()
