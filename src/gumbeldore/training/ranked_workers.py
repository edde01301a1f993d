"""Data-parallel training: the ranks of `torchrun` train one policy together.

All ranks go through the same training: they draw the same random numbers and step with the same gradient, so each holds all that a checkpoint
holds, and any number of them can go on from it. What takes time is shared: a rank samples its pieces of the instances and
takes its part of every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor, distributed

from gumbeldore.parallel.ranks import ranks
from gumbeldore.policy import Network
from gumbeldore.problem import Examples, S, slices
from gumbeldore.search.samplers import Sampler
from gumbeldore.solutions import Solutions
from gumbeldore.training.greedy import WithGreedy
from gumbeldore.training.workers import Workers


class RankedWorkers(Generic[S]):
    """The workers of this rank, which share all work with those of the others."""

    def __init__(self, local: Workers[S]) -> None:
        self.local, self.ranks = local, ranks()

    def load(self, policy: Network) -> None:
        self.local.load(policy)

    def sample(
        self, sampler: Sampler | WithGreedy, state: S, seeds: Int[Tensor, " batch"], size: int = 16
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

    def gradient(self, examples: Examples[S]) -> Callable[[], tuple[float, Float[Tensor, " trained"]]]:
        """Every rank takes a part of the examples; the sums of all are added up."""
        total = len(examples.action)
        parts = slices(total, -(-total // self.ranks.count))
        mine = parts[self.ranks.index] if self.ranks.index < len(parts) else None
        wait = self.local.gradient(examples.rows(mine)) if mine else None

        def add() -> tuple[float, Tensor]:
            loss, gradient = wait() if wait else (0.0, self.local.no_gradient())
            share = (mine.stop - mine.start) / total if mine else 0.0
            both = torch.cat([gradient, gradient.new_tensor([loss])]) * share
            distributed.all_reduce(both)
            return both[-1].item(), both[:-1]

        return add

    def close(self) -> None:
        self.local.close()
