"""A search under way: rounds at the root or below a node that moves along the best sequence, and what they teach."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.problem import S, step_some
from gumbeldore.search.advantage import global_advantage
from gumbeldore.search.auto import AutoNucleus, AutoStep
from gumbeldore.search.expansion import Round, Search
from gumbeldore.search.samplers import collect
from gumbeldore.search.scores import by_gumbels, by_probability, by_probability_within, root_gumbels
from gumbeldore.solutions import Solutions


@dataclass
class Incumbent(Generic[S]):
    """Where every instance stands, and the best sequence that it follows."""

    state: S
    node: Int[Tensor, " batch"]
    log_prob: Float[Tensor, " batch"]  # of the way there
    objective: Float[Tensor, " batch"]  # of the best sequence
    actions: Int[Tensor, "batch depth"]  # of the best sequence; -1 after its end
    nodes: Int[Tensor, "batch depth"]  # at levels 1 .. depth
    depth: int = 0

    @classmethod
    def at_root(cls, search: Search[S]) -> Incumbent[S]:
        node = torch.zeros_like(search.root.instance)
        number = search.trie.edge.new_zeros(len(node))
        none = node.new_full((len(node), search.horizon), -1)
        return cls(search.root, node, number, number - torch.inf, none, none)

    @property
    def active(self) -> Bool[Tensor, " batch"]:
        """Whether the best sequence goes on from here."""
        return self.actions[:, self.depth] >= 0 if self.depth < self.actions.shape[1] else torch.zeros_like(self.node).bool()

    def exhausted(self, search: Search[S], depth: int) -> Bool[Tensor, " batch"]:
        """Whether all below the node at `depth` of the best sequence has been found."""
        return search.trie.left[depth].gather(1, self.nodes[:, depth - 1, None].clamp(min=0)).squeeze(1) == -torch.inf

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

    def return_to(self, root: S) -> None:
        """Stands at the root again."""
        self.state, self.node, self.depth = root, torch.zeros_like(self.node), 0
        self.log_prob = torch.zeros_like(self.log_prob)

    def advance(self, search: Search[S], steps: int) -> None:
        """Some steps along the best sequences, or to their ends."""
        for _ in range(steps):
            moving = self.active
            if not bool(moving.any()):
                self.depth += 1
                continue
            action = self.actions[:, self.depth].clamp(min=0)
            self.node = self.nodes[:, self.depth].where(moving, self.node)
            self.depth += 1
            edge = search.trie.edge[self.depth].gather(1, self.node[:, None]).squeeze(1)
            self.log_prob = self.log_prob + edge.where(moving, 0)
            self.state = step_some(search.problem, self.state, action, moving)


@dataclass
class Following(Generic[S]):
    """The rounds of a search. All happen in one trie, so that nothing is drawn twice."""

    search: Search[S]
    seeds: Int[Tensor, " batch"]
    nucleus: AutoNucleus | float
    sigma: float | Literal["auto"]  # of advantages between rounds; 0: nothing is learnt
    results: list[Round] = field(default_factory=list)
    deterministic: int = 0  # rounds, which come first
    found: Int[Tensor, " batch"] = field(init=False)  # sequences
    step: AutoStep = field(init=False)
    incumbent: Incumbent[S] = field(init=False)

    def __post_init__(self) -> None:
        root = self.search.root
        self.incumbent, self.found = Incumbent.at_root(self.search), torch.zeros_like(root.instance)
        self.step = AutoStep.start(root.row_count, root.device)

    @property
    def unexhausted(self) -> Bool[Tensor, " batch"]:
        """Where not everything has been found."""
        return self.search.trie.left[0, :, 0] > -torch.inf

    @property
    def solutions(self) -> Solutions:
        """All that was found so far."""
        return collect(self.search, self.results, self.deterministic)

    def beam(
        self,
        width: int,
        augmentations: int,
        *,
        some: range | None = None,
        active: Bool[Tensor, " batch"] | None = None,
    ) -> None:
        """A deterministic beam search at the root, of this width on all (or `some`) augmentations together. It teaches nothing."""
        self.deterministic += 1
        perturb = by_probability if augmentations == 1 else by_probability_within(augmentations, some)
        watch = self.nucleus if isinstance(self.nucleus, AutoNucleus) and not self.results else None
        self._take(self.search.round(width, perturb, active=active, watch=watch), sampled=False)

    def sample(self, width: int, stream: int, active: Bool[Tensor, " batch"] | None = None) -> None:
        """A round of sampling without replacement from where the incumbent stands, with noise of its own."""
        result = self.search.round(
            width,
            by_gumbels(self.seeds, stream),
            nucleus=self.nucleus if isinstance(self.nucleus, float) else self.nucleus.p,
            root_score=root_gumbels(self.seeds, stream),
            depth=self.incumbent.depth,
            start=(self.incumbent.state, self.incumbent.node),
            active=active,
        )
        self._take(result, sampled=True)

    def _take(self, result: Round, *, sampled: bool) -> None:
        """Learns from a round, if that was sampled, and keeps it."""
        self.step.see(result)
        if sampled and self.sigma != 0:
            auto, advantage = self.sigma == "auto", global_advantage
            shift = self.step.shift(result, advantage) if auto else float(self.sigma) * advantage(result)
            self.search.trie.learn(result.nodes, shift, result.filled)
        if isinstance(self.nucleus, AutoNucleus):
            self.nucleus.see(result, sampled)
        self.search.trie.remove(result.leaf, result.leaf_depth, result.filled)
        self.incumbent.reconsider(result)
        self.results.append(replace(result, log_prob=result.log_prob + self.incumbent.log_prob[:, None]))
        self.found = self.found + result.filled.sum(1)
