"""A search without knobs: say how much work it may do, and it splits that into variants, beams and rounds itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar, Generic

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
from gumbeldore.search.scores import by_gumbels, by_probability, by_probability_within, root_gumbels
from gumbeldore.search.stepping import Way
from gumbeldore.solutions import Solutions

BEAM = 4
"""Width of the deterministic beam search on each variant."""
WIDTH = 32
"""The most sequences of a round."""
MOST_VARIANTS = 64
STEPS = 5
"""In how many steps the best sequence is followed to its end."""


@dataclass
class Course(Generic[S]):
    """A search under way."""

    search: Search[S]
    seeds: Int[Tensor, " batch"]
    sequences: int  # per instance
    evaluations: int | None
    results: list[Round] = field(default_factory=list)
    deterministic: int = 0  # rounds
    needed: int = 1  # sequences that must be left for an instance to go on
    found: Int[Tensor, " batch"] = field(init=False)  # sequences
    nucleus: AutoNucleus = field(default_factory=AutoNucleus)
    step: AutoStep = field(default_factory=AutoStep)
    way: Way[S] = field(init=False)

    def __post_init__(self) -> None:
        self.way, self.found = Way.at_root(self.search), torch.zeros_like(self.search.root.instance)

    @property
    def active(self) -> Bool[Tensor, " batch"]:
        """Instances that may go on: neither has all been found, nor is any limit reached."""
        active = (self.found + self.needed <= self.sequences) & (self.search.trie.left[0, :, 0] > -torch.inf)
        return active if self.evaluations is None else active & (self.search.evaluator.made < self.evaluations)

    @property
    def goes_on(self) -> bool:
        return bool(self.active.any())

    def sample(self, width: int, stream: int) -> Round:
        """A round of sampling without replacement from where the way stands, with noise of its own."""
        result = self.round(
            width,
            by_gumbels(self.seeds, stream),
            global_advantage,
            nucleus=self.nucleus.p,
            root_score=root_gumbels(self.seeds, stream),
            active=self.active & self.way.active,
            depth=self.way.depth,
            start=(self.way.state, self.way.node),
        )
        self.results[-1] = replace(result, log_prob=result.log_prob + self.way.log_prob[:, None])
        return result

    def round(self, width: int, perturb: Perturb, advantage: AdvantageFn, **options: Any) -> Round:
        """One round, and what it teaches."""
        options = {"active": self.active, "watch": None if self.results else self.nucleus, **options}
        result = self.search.round(width, perturb, **options)
        self.step.see(result)
        self.nucleus.see(result)
        self.search.trie.learn(result.nodes, self.step.shift(result, advantage), result.filled)
        self.search.trie.remove(result.leaf, result.leaf_depth, result.filled)
        self.way.reconsider(result)
        self.results.append(result)
        self.found = self.found + result.filled.sum(1)
        return result


@dataclass(frozen=True)
class Adaptive(Sampler):
    """About as many `sequences` without replacement, or policy `evaluations`, as said, whatever is reached first.

    1. A narrow beam search on every variant of the instance, some variants at a time: they differ more than the sequences that a
       wider beam on one of them would find. About half of all sequences go there, if there are variants enough.
    2. Take a step and reconsider: the best sequence so far is followed to its end in a few steps, with samples below each. Then
       again from the root, until everything is used.

    All of it happens in one trie, so nothing is drawn twice, with an automatic step of advantages and an automatic nucleus
    (`search/auto.py`). Stop its `stream` whenever you like.
    """

    by_horizon: ClassVar[bool] = True

    sequences: int = 128  # per instance; a round of at most 32 that has begun is finished
    evaluations: int | None = None  # per instance, likewise
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
            course = Course(self._search(problem, policy, state, variants > 1), seeds, self.sequences, self.evaluations)
        for plan in (self._on_variants(course, variants), self._in_passes(course)):
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
            if not course.goes_on:
                return
            course.deterministic += 1
            perturb = by_probability if variants == 1 else by_probability_within(variants, some)
            yield course.round(min(BEAM * len(some), self.sequences), perturb, mean_advantage)

    def _in_passes(self, course: Course[S]) -> Iterator[Round]:
        """Follows the best sequence of each instance step by step, and samples below; then again from the root, until all is used."""
        search, way = course.search, course.way
        step, width = -(-search.horizon // STEPS) or 1, min(WIDTH, -(-self.sequences // 2))
        for index in count():
            for depth in range(step if index == 0 else 0, search.horizon, step):
                way.advance(search, depth - way.depth)
                if bool((course.active & way.active).any()):
                    yield course.sample(width, index * search.horizon + depth)
            way.return_to(search.root)
            course.needed = min(width, self.sequences)  # a pass that begins at the root is dear
            if not course.goes_on:
                return

    def _search(self, problem: Problem[S], policy: Policy[S], state: S, has_variants: bool) -> Search[S]:
        actions, horizon = problem.mask(state.rows(slice(0, 1))).shape[1], problem.horizon(state)
        size = state.row_count * trie_bytes(self._nodes, actions, horizon, cached=True)
        return Search(
            problem,
            policy,
            state,
            self._nodes,
            cache_priors=size <= self.memory // 2,
            transpositions=self.transpositions,
            network_bytes=self.memory // 2,
            has_variants=has_variants,
        )

    def instance_bytes(self, actions: int, horizon: int) -> int:
        work = beam_bytes(min(WIDTH, self.sequences), actions)
        cached = trie_bytes(self._nodes, actions, horizon, cached=True) + work
        return cached if cached <= self.memory // 2 else trie_bytes(self._nodes, actions, horizon, cached=False) + work

    @property
    def _nodes(self) -> int:
        """The most sequences that can be found."""
        return self.sequences - 1 + min(WIDTH, self.sequences)
