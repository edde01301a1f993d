"""Take a Step and Reconsider (Pirnay and Grimm, ECAI 2024): sample, follow the best sequence so far for some steps, sample again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Generic, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S, step_some
from gumbeldore.search.advantage import global_advantage
from gumbeldore.search.auto import AutoNucleus, AutoStep
from gumbeldore.search.expansion import Round, Search
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
from gumbeldore.solutions import Solutions


@dataclass
class Way(Generic[S]):
    """Where every instance stands, and the best sequence that it follows."""

    state: S
    node: Int[Tensor, " batch"]
    log_prob: Float[Tensor, " batch"]  # of the way there
    objective: Float[Tensor, " batch"]  # of the best sequence
    actions: Int[Tensor, "batch depth"]  # of the best sequence; -1 after its end
    nodes: Int[Tensor, "batch depth"]  # at levels 1 .. depth
    depth: int = 0

    @classmethod
    def at_root(cls, search: Search[S]) -> Way[S]:
        node = torch.zeros_like(search.root.instance)
        number = search.trie.edge.new_zeros(len(node))
        none = node.new_full((len(node), search.horizon), -1)
        return cls(search.root, node, number, number - torch.inf, none, none)

    @property
    def active(self) -> Bool[Tensor, " batch"]:
        """Whether the best sequence goes on from here."""
        return self.actions[:, self.depth] >= 0 if self.depth < self.actions.shape[1] else torch.zeros_like(self.node).bool()

    def reconsider(self, result: Round) -> None:
        """Follows a sequence of this round where that is better."""
        best, slot = result.objective.max(1)
        better = best > self.objective
        depth, batch, _ = result.actions.shape
        index = slot[None, :, None].expand(depth, batch, 1)
        for name in ("actions", "nodes"):
            mine = getattr(self, name)
            theirs = getattr(result, name).gather(2, index).squeeze(2).t()
            theirs = torch.nn.functional.pad(theirs, (0, mine.shape[1] - depth), value=-1)
            setattr(self, name, torch.where(better[:, None], theirs, mine))
        self.objective = torch.where(better, best, self.objective)

    def advance(self, search: Search[S], steps: int) -> None:
        """Some steps along the best sequences, or to their ends."""
        for _ in range(steps):
            moving = self.active
            if not bool(moving.any()):
                return
            action = self.actions[:, self.depth].clamp(min=0)
            self.node = self.nodes[:, self.depth].where(moving, self.node)
            self.depth += 1
            edge = search.trie.edge[self.depth].gather(1, self.node[:, None]).squeeze(1)
            self.log_prob = self.log_prob + edge.where(moving, 0)
            self.state = step_some(search.problem, self.state, action, moving)


@dataclass(frozen=True)
class StepAndReconsider(Sampler):
    """Rounds of sampling without replacement below a node that moves `step` actions at a time along the best sequence so far.

    Every round samples `beam_width` sequences that no round has seen. If one of them is better, it is followed from there. The first
    round is a deterministic beam search unless that is switched off. The authors use a constant nucleus and no `sigma`.
    """

    beam_width: int = 32
    step: int = 10
    nucleus: float | Literal["auto"] = 1.0
    sigma: float | Literal["auto"] = 0.0  # with advantages between rounds, as in `Gumbeldore`; 0: without
    first_round_deterministic: bool = True
    memory: int = MEMORY
    transpositions: bool = True  # evaluate equal states once, where the problem has keys
    variants: int = 1  # forms of an instance among which the first action chooses, where the problem has such

    def __post_init__(self) -> None:
        for name in ("beam_width", "step", "memory", "variants"):
            check_positive(name, getattr(self, name))
        p = self.nucleus
        require(p == "auto" or 0 < p <= 1, f'`nucleus` must lie in (0, 1], or be "auto", got {p!r}. 1 switches it off.')
        require(
            p != "auto" or self.first_round_deterministic,
            '`nucleus="auto"` needs `first_round_deterministic=True`: the first round decides it.',
        )
        sigma = self.sigma
        require(sigma == "auto" or 0 <= sigma < float("inf"), f'`sigma` must be at least 0, or "auto", got {sigma!r}.')

    def rounds_of(
        self, problem: Problem[S], policy: Policy[S], state: S, seeds: Int[Tensor, " batch"], variants: int
    ) -> Iterator[Solutions]:
        search, way, results = None, None, list[Round]()
        nucleus, step = AutoNucleus() if self.nucleus == "auto" else None, AutoStep()
        while way is None or bool(way.active.any()):
            with evaluation_mode(policy), torch.inference_mode():
                if search is None or way is None:
                    search = self._search(problem, policy, state, variants > 1)
                    way = Way.at_root(search)
                index, deterministic = len(results), self.first_round_deterministic and not results
                if deterministic:
                    perturb = by_probability if variants == 1 else by_probability_within(variants)
                    result = search.round(self.beam_width, perturb, watch=nucleus)
                else:
                    result = search.round(
                        self.beam_width,
                        by_gumbels(seeds, index),
                        nucleus=float(self.nucleus) if nucleus is None else nucleus.p,
                        root_score=root_gumbels(seeds, index),
                        depth=way.depth,
                        start=(way.state, way.node),
                        active=way.active if results else None,
                    )
                self._learn(search, result, step, deterministic)
                if nucleus is not None:
                    nucleus.see(result)
                search.trie.remove(result.leaf, result.leaf_depth, result.filled)
                way.reconsider(result)
                results.append(replace(result, log_prob=result.log_prob + way.log_prob[:, None]))
                way.advance(search, self.step)
                solutions = collect(search, results, int(self.first_round_deterministic))
            yield solutions

    def _search(self, problem: Problem[S], policy: Policy[S], state: S, has_variants: bool) -> Search[S]:
        nodes = self.beam_width * self._rounds(problem.horizon(state))
        actions = problem.mask(state.rows(slice(0, 1))).shape[1]
        size = state.row_count * trie_bytes(nodes, actions, problem.horizon(state), cached=True)
        return Search(
            problem,
            policy,
            state,
            nodes,
            cache_priors=size <= self.memory // 2,
            transpositions=self.transpositions,
            network_bytes=self.memory // 2,
            has_variants=has_variants,
        )

    def _learn(self, search: Search[S], result: Round, step: AutoStep, deterministic: bool) -> None:
        step.see(result)
        if deterministic or self.sigma == 0:
            return
        shift = step.shift(result, global_advantage) if self.sigma == "auto" else self.sigma * global_advantage(result)
        search.trie.learn(result.nodes, shift, result.filled)

    def _rounds(self, horizon: int) -> int:
        return max(1, -(-horizon // self.step))

    def instance_bytes(self, actions: int, horizon: int) -> int:
        nodes, work = self.beam_width * self._rounds(horizon), beam_bytes(self.beam_width, actions)
        cached = trie_bytes(nodes, actions, horizon, cached=True) + work
        return cached if cached <= self.memory // 2 else trie_bytes(nodes, actions, horizon, cached=False) + work
