"""A search without knobs: say how much work it may do, and it splits that into variants, beams and rounds itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S
from gumbeldore.search.advantage import AdvantageFn, global_advantage, mean_advantage
from gumbeldore.search.auto import AutoNucleus, AutoStep
from gumbeldore.search.expansion import Perturb, Round, Search
from gumbeldore.search.samplers import (
    MEMORY,
    Sampler,
    beam_bytes,
    check_positive,
    collect,
    evaluation_mode,
    trie_bytes,
)
from gumbeldore.search.scores import by_gumbels, by_probability_within, root_gumbels
from gumbeldore.search.stepping import Way
from gumbeldore.solutions import Solutions

BEAM = 4
"""Width of the deterministic beam search on each variant."""
WIDTH = 32
"""Sequences of a round that searches variants, or samples from the root."""
MOST_VARIANTS = 64
STEPS = 8
"""In how many steps the best sequence is followed to its end."""


@dataclass
class Course(Generic[S]):
    """A search under way."""

    search: Search[S]
    seeds: Int[Tensor, " batch"]
    evaluations: int | None
    results: list[Round] = field(default_factory=list)
    deterministic: int = 0  # rounds
    sequences: int = 0  # asked for so far
    nucleus: AutoNucleus = field(default_factory=AutoNucleus)
    step: AutoStep = field(default_factory=AutoStep)
    way: Way[S] = field(init=False)

    def __post_init__(self) -> None:
        self.way = Way.at_root(self.search)

    @property
    def active(self) -> Bool[Tensor, " batch"]:
        """Instances that may go on."""
        made = self.search.evaluator.made
        return torch.ones_like(made, dtype=torch.bool) if self.evaluations is None else made < self.evaluations

    @property
    def goes_on(self) -> bool:
        return bool(self.active.any())

    def sample(self, width: int, way: Way[S] | None) -> Round:
        """A round of sampling without replacement from the root, or from where the way stands."""
        index = len(self.results)
        start: dict[str, Any] = {} if way is None else {"depth": way.depth, "start": (way.state, way.node)}
        active = self.active if way is None else self.active & way.active
        return self.round(
            width,
            by_gumbels(self.seeds, index),
            global_advantage,
            nucleus=self.nucleus.p,
            root_score=root_gumbels(self.seeds, index),
            active=active,
            **start,
        )

    def round(self, width: int, perturb: Perturb, advantage: AdvantageFn, **options: Any) -> Round:
        """One round, and what it teaches."""
        options = {"active": self.active, "watch": None if self.results else self.nucleus, **options}
        result = self.search.round(width, perturb, **options)
        self.step.see(result)
        self.nucleus.see(result)
        self.search.trie.learn(result.nodes, self.step.shift(result, advantage), result.filled)
        self.search.trie.remove(result.leaf, result.leaf_depth, result.filled)
        self.way.reconsider(result)
        if "depth" in options:
            result = replace(result, log_prob=result.log_prob + self.way.log_prob[:, None])
        self.results.append(result)
        self.sequences += width
        return result


@dataclass(frozen=True)
class Adaptive(Sampler):
    """At most `sequences` sequences without replacement, or about as many policy `evaluations` as said, whatever ends first.

    1. A narrow beam search on every variant of the instance, some variants at a time: they differ more than the sequences that a
       wider beam on one of them would find. At most half of all sequences go there.
    2. Take a step and reconsider: the best sequence is followed in a few steps, with samples below each.
    3. What is left goes into rounds of Gumbeldore from the root.

    All of it happens in one trie, with an automatic step and nucleus (`search/auto.py`). Stop its `stream` whenever you like.
    """

    sequences: int = 128
    evaluations: int | None = None  # per instance; a round that has begun is finished
    memory: int = MEMORY
    transpositions: bool = True  # evaluate equal states once, where the problem has keys

    def __post_init__(self) -> None:
        check_positive("sequences", self.sequences)
        check_positive("memory", self.memory)
        limit = self.evaluations
        require(limit is None or limit >= 1, f"`evaluations` must be at least 1, or None for no limit, got {limit}.")

    @property
    def variants(self) -> int:  # type: ignore[override]
        """How many variants are asked for."""
        return max(1, min(MOST_VARIANTS, self.sequences // (2 * BEAM)))

    def rounds_of(
        self, problem: Problem[S], policy: Policy[S], state: S, seeds: Int[Tensor, " batch"], variants: int
    ) -> Iterator[Solutions]:
        with evaluation_mode(policy):
            course = Course(self._search(problem, policy, state, variants > 1), seeds, self.evaluations)
        for plan in (self._on_variants(course, variants), self._in_steps(course), self._from_the_root(course)):
            while True:
                with evaluation_mode(policy), torch.inference_mode():
                    if next(plan, None) is None:
                        break
                    solutions = collect(course.search, course.results, course.deterministic)
                yield solutions  # outside: the caller's code runs with its own gradient mode

    def _on_variants(self, course: Course[S], variants: int) -> Iterator[Round]:
        """Beam searches side by side, on some variants after the others."""
        size = WIDTH // BEAM
        for first in range(0, variants, size):
            some = range(first, min(first + size, variants))
            width = min(BEAM * len(some), self.sequences - course.sequences)
            if width < len(some) or not course.goes_on:
                return
            course.deterministic += 1
            yield course.round(width, by_probability_within(variants, some), mean_advantage)

    def _in_steps(self, course: Course[S]) -> Iterator[Round]:
        """Follows the best sequence of each instance, and samples below."""
        step = -(-course.search.horizon // STEPS)
        width = (self.sequences - course.sequences) // STEPS
        course.way.advance(course.search, step)
        while width >= 1 and course.goes_on and bool(course.way.active.any()):
            yield course.sample(width, course.way)
            course.way.advance(course.search, step)

    def _from_the_root(self, course: Course[S]) -> Iterator[Round]:
        while course.goes_on and (width := min(WIDTH, self.sequences - course.sequences)) >= 1:
            yield course.sample(width, None)

    def _search(self, problem: Problem[S], policy: Policy[S], state: S, has_variants: bool) -> Search[S]:
        actions, horizon = problem.mask(state.rows(slice(0, 1))).shape[1], problem.horizon(state)
        size = state.row_count * trie_bytes(self.sequences, actions, horizon, cached=True)
        return Search(
            problem,
            policy,
            state,
            self.sequences,
            cache_priors=size <= self.memory // 2,
            transpositions=self.transpositions,
            network_bytes=self.memory // 2,
            has_variants=has_variants,
        )

    def instance_bytes(self, actions: int, horizon: int) -> int:
        work = beam_bytes(min(WIDTH, self.sequences), actions)
        cached = trie_bytes(self.sequences, actions, horizon, cached=True) + work
        return cached if cached <= self.memory // 2 else trie_bytes(self.sequences, actions, horizon, cached=False) + work
