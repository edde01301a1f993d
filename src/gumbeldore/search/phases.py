"""The phases of an adaptive search: objects that know what they were tuned to, and split the work among themselves.

greedy, augmentations, stepping     in one trie; together they explore
reconstruction                          parts of the best solutions chosen anew, beside and after that
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count, repeat
from typing import Generic

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gumbeldore.problem import S
from gumbeldore.search.following import Following
from gumbeldore.search.reconstruction import Ledger, Reconstruction
from gumbeldore.search.samplers import evaluation_mode
from gumbeldore.solutions import Solutions

_SHARED = 0.4
"""Evaluations per sequence, in those of a greedy solution: most of a sequence is shared with others."""


@dataclass(frozen=True)
class Work:
    """How much may be spent on an instance whose solutions have `horizon` actions."""

    horizon: int
    sequences: int | None  # None: no limit
    evaluations: float  # infinite: no limit

    @property
    def solutions(self) -> float:
        """In greedy solutions that could be made instead."""
        by_sequences = torch.inf if self.sequences is None else _SHARED * self.sequences
        return min(by_sequences, self.evaluations / max(1, self.horizon))


@dataclass
class Exploration(Generic[S]):
    """A search under way, its own limits, and those that it shares."""

    following: Following[S]
    augmentations: int
    schedule: Schedule
    work: Work  # of the search
    total: Work  # with reconstruction
    spent: Ledger  # by reconstruction

    @property
    def most(self) -> int:
        return self.schedule.most(self.work)

    def active(self) -> Bool[Tensor, " batch"]:
        """Instances that may go on: neither has all been found, nor is any limit reached."""
        found, made = self.following.found, self.following.search.evaluator.needed
        active = self.following.unexhausted & (found < self.most) & (made < self.work.evaluations)
        active &= made + self.spent.evaluations < self.total.evaluations
        return active if self.total.sequences is None else active & (found + self.spent.sequences < self.total.sequences)

    def affords(self, width: int) -> Bool[Tensor, " batch"]:
        """Whether a round of whole sequences is likely to end within the limit of evaluations."""
        search = self.following.search
        return search.evaluator.needed + _SHARED * width * search.horizon <= self.work.evaluations


@dataclass(frozen=True)
class GreedyPhase:
    """The greedy solution of the instance itself: an answer comes soon."""

    def rounds(self, on: Exploration[S]) -> Iterator[int]:
        on.following.beam(1, on.augmentations, some=range(1), active=on.active())
        yield 0


@dataclass(frozen=True)
class AugmentationsPhase:
    """A narrow deterministic beam search on each augmentation: they differ more than the sequences of a wider beam on one of them."""

    beam: int = 2  # width on each augmentation
    own: int = 3  # width on the instance itself, whose evaluations are shared with its greedy solution
    together: tuple[int, ...] = (1, 2, 4, 8)  # how many are searched in the first rounds; the last number in all later ones
    most: int = 64
    share: float = 0.75  # of all evaluations
    cost: float = 1.45  # evaluations of such a search, in those of a greedy solution

    def count(self, work: Work) -> int:
        """How many augmentations can be paid for."""
        return max(1, min(self.most, int(self.share * work.solutions / self.cost)))

    def rounds(self, on: Exploration[S]) -> Iterator[int]:
        first, sizes = 0, chain(self.together, repeat(self.together[-1]))
        while first < on.augmentations and bool((active := on.active()).any()):
            some = range(first, min(first + next(sizes), on.augmentations))
            on.following.beam(
                min(on.most, self.beam * len(some) if first else self.own), on.augmentations, some=some, active=active
            )
            first = some.stop
            yield first


@dataclass(frozen=True)
class SteppingPhase:
    """Take a step and reconsider: follows the best sequence of each instance and samples below, again and again, until all is used.

    A pass begins where the augmentation does if the last one found nothing better (or there were few augmentations) and that can be
    afforded, otherwise after the first step.
    """

    steps: int = 5  # in which the best sequence is followed to its end
    widths: tuple[int, int] = (8, 32)  # sequences of a round: as many as greedy solutions could be made instead, within these

    def width(self, work: Work, most: int) -> int:
        low, high = self.widths
        return min(high, max(low, int(work.solutions)), most)

    def rounds(self, on: Exploration[S]) -> Iterator[int]:
        search, incumbent, level = on.following.search, on.following.incumbent, int(on.augmentations > 1)
        step, width = max(1, -(-(search.horizon - level) // self.steps)), self.width(on.work, on.most)
        few = 2 * on.augmentations <= on.schedule.augmentations.count(on.work)  # then whole sequences instead
        idle = torch.zeros_like(on.following.found, dtype=torch.bool)
        stalled = torch.full_like(idle, few)
        for index in count():
            before, found = incumbent.objective, on.following.found
            incumbent.return_to(search.root)
            for depth in [*range(level), *range(level, search.horizon, step)]:
                incumbent.advance(search, depth - incumbent.depth)
                active = on.active() & incumbent.active
                if depth == level:  # dear: a round of whole sequences
                    active &= stalled & (idle | on.affords(width))
                elif depth < level:
                    active &= incumbent.exhausted(search, level)
                if bool(active.any()):
                    on.following.sample(width, index * (search.horizon + 1) + depth, active)
                    yield depth
            if not bool(on.active().any()):
                return
            stalled, idle = incumbent.objective <= before, on.following.found == found


@dataclass(frozen=True)
class ReconstructionPhase:
    """Parts of the best solutions are chosen anew. The smaller the work, the more of it goes to the search: there is little to build on."""

    chain: int = 24  # solutions that are improved side by side: one for so many greedy solutions that could be made instead ...
    most_chains: int = 16  # ... but no more than that
    searched: tuple[float, float] = (0.15, 0.8)  # the share of the search lies between these
    first: int = (
        10  # greedy solutions that a search may spend before: what is built upon should be good. A smaller one ends before
    )
    repeats: int = (
        4  # where only evaluations are limited, so many times the sequences that should use them up: parts may cost nothing
    )

    def explored(self, solutions: float) -> float:
        """The share of the search of the work, in greedy solutions."""
        least, most = self.searched
        return min(most, max(least, (4 / solutions) ** 0.5))

    def due(self, spent: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """How much both should have spent together, in greedy solutions, when the search has spent so much."""
        least, most = self.searched
        together = torch.minimum(torch.maximum(spent / most, spent.square() / 4), spent / least)
        return together.where(spent > self.first, 0)

    def chains(self, work: Work) -> int:
        """How many solutions are improved side by side."""
        return max(1, min(self.most_chains, int(work.solutions / self.chain)))

    def rounds(self, reconstruction: Reconstruction[S], work: Work, most: int, *, alone: bool = False) -> Iterator[Solutions]:
        """Pass after pass until the search and this have spent together what is due, or, `alone`, until a limit is reached."""
        most = work.sequences or self.repeats * most
        searched = reconstruction.searched
        spent = searched.diagnostics.evaluations - searched.diagnostics.evaluations_repeated
        due = torch.full_like(spent, torch.inf, dtype=torch.float64) if alone else self.due(spent / work.horizon) * work.horizon
        limit = due.clamp(max=work.evaluations)
        while True:
            active = (spent + reconstruction.spent.evaluations < limit) & (
                searched.filled.sum(1) + reconstruction.spent.sequences < most
            )
            active &= searched.diagnostics.remaining_mass > 0
            if not bool(active.any()):
                return
            with evaluation_mode(reconstruction.task.policy), torch.inference_mode():
                reconstruction.reconstruct(active)
            yield reconstruction.found


@dataclass(frozen=True)
class Schedule:
    """All phases of a search, in their order."""

    greedy: GreedyPhase = field(default_factory=GreedyPhase)
    augmentations: AugmentationsPhase = field(default_factory=AugmentationsPhase)
    stepping: SteppingPhase = field(default_factory=SteppingPhase)
    reconstruction: ReconstructionPhase = field(default_factory=ReconstructionPhase)
    sequences: int = 128  # where nothing is limited

    def most(self, work: Work) -> int:
        """Sequences. Where only evaluations are limited, so many that those will be used up first."""
        return work.sequences if work.sequences is not None else self.stepping.widths[1] + int(8 * work.solutions)

    def explore(self, on: Exploration[S]) -> Iterator[int]:
        """The phases that share a trie, round by round."""
        return chain(self.greedy.rounds(on), self.augmentations.rounds(on), self.stepping.rounds(on))
