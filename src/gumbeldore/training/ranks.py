"""Data-parallel training: several processes with a GPU each, or machines, that train one policy together (`torchrun`).

All ranks go through the same training: they draw the same random numbers and step with the same gradient, so each holds all that a checkpoint
holds, and any number of them can go on from it. What takes time is shared: a rank samples its pieces of the instances and
takes its part of every batch. The first rank alone writes files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, distributed

from gumbeldore.policy import Network
from gumbeldore.problem import Examples, S, slices
from gumbeldore.search.samplers import Sampler
from gumbeldore.solutions import Solutions
from gumbeldore.training.loss import Loss
from gumbeldore.training.workers import Workers

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

    def led(self, events: Iterator[E], ends: type) -> Iterator[E]:
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


class RankedWorkers(Generic[S]):
    """The workers of this rank, which share all work with those of the others."""

    def __init__(self, local: Workers[S]) -> None:
        self.local, self.ranks = local, ranks()

    def load(self, policy: Network) -> None:
        self.local.load(policy)

    def sample(
        self, sampler: Sampler, state: S, seeds: Int[Tensor, " batch"], size: int = 16
    ) -> Iterator[tuple[slice, Solutions]]:
        """The pieces are dealt out to the ranks; all get all solutions, a round of pieces at a time."""
        pieces = slices(state.row_count, size)
        mine = pieces[self.ranks.index :: self.ranks.count]
        rows = torch.cat([torch.arange(piece.start, piece.stop) for piece in mine]) if mine else torch.arange(0)
        solved = self.local.sample(sampler, state.rows(rows.to(state.device)), seeds[rows.to(seeds.device)], size)
        for start in range(0, len(pieces), self.ranks.count):
            own = next(solved, None) if mine else None
            found: list[tuple[slice, Solutions] | None] = [None] * self.ranks.count
            distributed.all_gather_object(found, own)
            for piece, theirs in zip(pieces[start:], found, strict=False):
                assert theirs is not None
                yield piece, theirs[1]

    def gradient(
        self,
        examples: Examples[S],
        taught: Loss = Loss(),  # noqa: B008 - frozen
    ) -> Callable[[], tuple[float, Float[Tensor, " trained"]]]:
        """Every rank takes a part of the examples; the sums of all are added up."""
        total = len(examples.action)
        parts = slices(total, -(-total // self.ranks.count))
        mine = parts[self.ranks.index] if self.ranks.index < len(parts) else None
        wait = self.local.gradient(examples.rows(mine), taught) if mine else None

        def add() -> tuple[float, Tensor]:
            loss, gradient = wait() if wait else (0.0, self.local.no_gradient())
            share = (mine.stop - mine.start) / total if mine else 0.0
            both = torch.cat([gradient, gradient.new_tensor([loss])]) * share
            distributed.all_reduce(both)
            return both[-1].item(), both[:-1]

        return add

    def close(self) -> None:
        self.local.close()
