"""A search without knobs: say how much work it may do, and it splits that into augmentations, beams and rounds itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.problem import S
from gumbeldore.search.auto import GROWTH, AutoNucleus
from gumbeldore.search.following import Following
from gumbeldore.search.memory import MemoryBudget
from gumbeldore.search.reconstruction import Reconstruction, can_reconstruct
from gumbeldore.search.samplers import MEMORY, TrieSampler, check_positive, evaluation_mode
from gumbeldore.search.task import Task
from gumbeldore.solutions import Solutions

SEQUENCES = 128
"""If nothing is said."""
BEAM = 2
"""Width of the deterministic beam search on each augmentation."""
OWN = 3
"""Width of that on the instance itself, after its greedy solution, whose evaluations it shares."""
CHUNKS = (1, 2, 4, 8)
"""How many augmentations are searched in the first rounds, and in all later ones: an answer comes soon."""
MOST_VARIANTS = 64
SHARE = 0.75
"""Of all evaluations, what the augmentations may take."""
COST = 1.45
"""Evaluations of a beam search on an augmentation, in those of a greedy solution."""
SHARED = 0.4
"""Evaluations per sequence, in those of a greedy solution: most of a sequence is shared with others."""
WIDTHS = (8, 32)
"""At least and at most so many sequences are sampled in a round; in between as many as greedy solutions could be made instead."""
STEPS = 5
"""In how many steps the best sequence is followed to its end."""
CHAIN = 24
"""Solutions that are improved side by side: one for so many greedy solutions that could be made instead ..."""
MOST_CHAINS = 16
"""... but no more than that."""
LEAST_EXPLORED, MOST_EXPLORED = 0.15, 0.8
"""The share of the search, if parts of solutions can be built anew, lies between these."""
FIRST = 10
"""Greedy solutions that a search may spend before reconstruction begins: what is built upon should be good. A smaller search ends before."""
REPEATS = 4
"""Where only evaluations are limited, so many times the sequences that should use them up: parts may cost nothing."""


def explored(solutions: float) -> float:
    """The share of the search, where solutions can be reconstructed beside it: the smaller, the more can be spent, in greedy solutions."""
    return min(MOST_EXPLORED, max(LEAST_EXPLORED, (4 / solutions) ** 0.5))


def due(spent: Tensor) -> Tensor:
    """How much the search and reconstruction should have spent together, in greedy solutions, when the search has spent so much."""
    together = torch.minimum(torch.maximum(spent / MOST_EXPLORED, spent.square() / 4), spent / LEAST_EXPLORED)
    return together.where(spent > FIRST, 0)


@dataclass(frozen=True)
class Adaptive(TrieSampler):
    """About as many policy `evaluations`, or `sequences` without replacement, as said, whatever is reached first.

    1. A greedy solution, and then a narrow beam search beside it.
    2. A narrow beam search on other augmentations of the instance, some at a time: they differ more than the sequences that a wider beam
       on one of them would find. They get three quarters of the work, if there are augmentations enough.
    3. Take a step and reconsider: the best sequence so far is followed to its end in a few steps, with samples below each; again and
       again, until everything is used. A pass begins where the augmentation does if the last one found nothing better (or there were few
       augmentations) and that can be afforded, otherwise after the first step.

    Where the problem can write solutions down in other forms, that is only a part of the work (`explored`). In between and after it, parts
    of the best solutions are built anew (`search/reconstruction.py`); what is better than all before is returned.

    The search happens in one trie, so nothing is drawn twice, with an automatic nucleus (`search/auto.py`) and without advantages, which
    did not help here (docs/results/samplers.md). Stop its `stream` whenever you like.
    """

    by_horizon: ClassVar[bool] = True
    begins_greedily: ClassVar[bool] = True

    sequences: int | None = None  # per instance; a round that has begun is finished. None: 128, if there is no other limit
    evaluations: int | None = None  # per instance, likewise
    effort: int | None = None  # per instance, likewise: as many evaluations as so many greedy solutions may take
    memory: int = MEMORY
    transpositions: bool = True  # evaluate equal states once, where the problem has keys

    def __post_init__(self) -> None:
        check_positive("memory", self.memory)
        for name in ("sequences", "evaluations", "effort"):
            limit = getattr(self, name)
            require(limit is None or limit >= 1, f"`{name}` must be at least 1, or None for no limit, got {limit}.")

    def run(self, task: Task[S]) -> Iterator[Solutions]:
        """A search, and beside it, where solutions can be written down in other forms, parts of the best ones anew."""
        if not can_reconstruct(task.problem):
            yield from super().run(task)
            return
        building = None
        horizon = task.problem.horizon(task.state)
        for found in super(Adaptive, self._exploring(horizon)).run(task):
            if building is None:
                building = Reconstruction(task, self._chains(horizon), self.memory, found)
            building.see(found)
            yield building.found
            yield from self._rebuilt(building, horizon, lambda spent: due(spent / horizon) * horizon)
        assert building is not None
        yield from self._rebuilt(building, horizon, lambda spent: torch.full_like(spent, torch.inf, dtype=torch.float64))

    def _exploring(self, horizon: int) -> Adaptive:
        """The search, with its share of all limits."""
        share = explored(self._solutions(horizon))
        limits = (self._limit, self.evaluations, self.effort)
        sequences, evaluations, effort = (limit and max(1, round(share * limit)) for limit in limits)
        return replace(self, sequences=sequences, evaluations=evaluations, effort=effort)

    def _chains(self, horizon: int) -> int:
        """How many solutions are improved side by side."""
        return max(1, min(MOST_CHAINS, int(self._solutions(horizon) / CHAIN)))

    def _rebuilt(self, building: Reconstruction[S], horizon: int, until: Callable[[Tensor], Tensor]) -> Iterator[Solutions]:
        """Pass after pass, `until` so many evaluations were made, given those of the search, or a limit is reached."""
        most, searched = self._limit or REPEATS * self._most(horizon), building.searched
        spent = searched.diagnostics.evaluations - searched.diagnostics.evaluations_repeated
        limit = until(spent).clamp(max=self._evaluations(horizon))
        while True:
            active = (spent + building.made < limit) & (searched.filled.sum(1) + building.drawn < most)
            active &= searched.diagnostics.remaining_mass > 0
            if not bool(active.any()):
                return
            with evaluation_mode(building.task.policy), torch.inference_mode():
                building.reconstruct(active)
            yield building.found

    def forms(self, horizon: int) -> int:
        return max(1, min(MOST_VARIANTS, int(SHARE * self._solutions(horizon) / COST)))

    def rounds_of(self, task: Task[S]) -> Iterator[Solutions]:
        with evaluation_mode(task.policy):
            search = self.budget(task.problem.horizon(task.state)).search(task, transpositions=self.transpositions)
            nucleus = AutoNucleus.start(task.state.row_count, task.state.device, growth=GROWTH ** (1 / STEPS))
            course = Following(search, task.seeds, nucleus, sigma=0.0)
        plan = chain(self._on_augmentations(course, task.augmentations), self._in_passes(course, task.augmentations))
        while True:
            with evaluation_mode(task.policy), torch.inference_mode():
                if next(plan, None) is None:
                    return
                solutions = course.solutions
            yield solutions  # outside: the caller's code runs with its own gradient mode

    def _on_augmentations(self, course: Following[S], augmentations: int) -> Iterator[int]:
        """Beam searches side by side, on some augmentations after the others."""
        first, sizes = 0, chain(CHUNKS, repeat(CHUNKS[-1]))
        while first < augmentations and bool((active := self._active(course)).any()):
            some = range(first, min(first + next(sizes), augmentations))
            if first == 0:
                course.beam(1, augmentations, some=some, active=active)
                yield 0
                active = self._active(course)
            width = min(self._most(course.search.horizon), BEAM * len(some) if first > 0 else OWN)
            course.beam(width, augmentations, some=some, active=active)
            first = some.stop
            yield first

    def _in_passes(self, course: Following[S], augmentations: int) -> Iterator[int]:
        """Follows the best sequence of each instance step by step, and samples below; again and again, until all is used."""
        search, way, level = course.search, course.way, int(augmentations > 1)
        step, width = max(1, -(-(search.horizon - level) // STEPS)), self._width(search.horizon)
        idle = torch.zeros_like(course.found, dtype=torch.bool)
        stalled = torch.full_like(
            idle, 2 * augmentations <= self.forms(search.horizon - level)
        )  # few augmentations: whole sequences instead
        for index in count():
            before, found = way.objective, course.found
            way.return_to(search.root)
            for depth in [*range(level), *range(level, search.horizon, step)]:
                way.advance(search, depth - way.depth)
                active = self._active(course) & way.active
                if depth == level:  # dear: a round of whole sequences
                    active &= stalled & (idle | self._affords(course, width))
                elif depth < level:
                    active &= way.exhausted(search, level)
                if bool(active.any()):
                    course.sample(width, index * (search.horizon + 1) + depth, active)
                    yield depth
            if not bool(self._active(course).any()):
                return
            stalled, idle = way.objective <= before, course.found == found

    def _affords(self, course: Following[S], width: int) -> Bool[Tensor, " batch"]:
        """Whether a round of whole sequences is likely to end within the limit of evaluations."""
        return course.search.evaluator.needed + SHARED * width * course.search.horizon <= self._evaluations(
            course.search.horizon
        )

    def _active(self, course: Following[S]) -> Bool[Tensor, " batch"]:
        """Instances that may go on: neither has all been found, nor is any limit reached."""
        active = course.unexhausted & (course.found < self._most(course.search.horizon))
        return active & (course.search.evaluator.needed < self._evaluations(course.search.horizon))

    def _solutions(self, horizon: int) -> float:
        """The work in greedy solutions that could be made instead."""
        by_sequences = torch.inf if self._limit is None else SHARED * self._limit
        return min(by_sequences, self._evaluations(horizon) / max(1, horizon))

    def _evaluations(self, horizon: int) -> float:
        """At most."""
        by_effort = torch.inf if self.effort is None else self.effort * horizon
        return min(by_effort, torch.inf if self.evaluations is None else self.evaluations)

    @property
    def _limit(self) -> int | None:
        nothing = self.sequences is None and self.evaluations is None and self.effort is None
        return SEQUENCES if nothing else self.sequences

    def _most(self, horizon: int) -> int:
        """Sequences. Where only evaluations are limited, so many that those will be used up first."""
        return self._limit if self._limit is not None else WIDTHS[1] + int(8 * self._solutions(horizon))

    def _width(self, horizon: int) -> int:
        """Of a round of sampling."""
        low, high = WIDTHS
        return min(high, max(low, int(self._solutions(horizon))), self._most(horizon))

    def budget(self, horizon: int) -> MemoryBudget:
        most = self._most(horizon)
        width = min(max(self._width(horizon), BEAM * CHUNKS[-1]), most)
        return MemoryBudget(most - 1 + width, width, self.memory)
