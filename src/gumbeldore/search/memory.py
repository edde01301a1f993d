"""How much memory a search takes, and a search that keeps within it."""

from __future__ import annotations

from dataclasses import dataclass

from gumbeldore.problem import S
from gumbeldore.search.expansion import Search
from gumbeldore.search.task import Task


@dataclass(frozen=True)
class MemoryBudget:
    """What a search needs for one instance, and what it may use for all: half of `memory` for tries, half for the network."""

    nodes: int  # of a level of the trie: the sum of the widths of all rounds
    width: int  # of the widest round
    memory: int
    reuses: bool = True  # there are several rounds: priors are kept for the later ones, where they fit

    def instance_bytes(self, actions: int, horizon: int) -> int:
        """An instance whose priors do not fit even alone is searched without keeping them: slower, the same law."""
        work = beam_bytes(self.width, actions)
        kept = trie_bytes(self.nodes, actions, horizon, cached=self.reuses) + work
        return kept if kept <= self.memory // 2 else trie_bytes(self.nodes, actions, horizon, cached=False) + work

    def search(
        self,
        task: Task[S],
        *,
        transpositions: bool,
        must_keep: bool = False,
    ) -> Search[S]:
        """A search with its tries empty. Priors are kept where they fit, or must be."""
        problem, state = task.problem, task.state
        actions, horizon = problem.mask(state.rows(slice(0, 1))).shape[1], problem.horizon(state)
        size = state.row_count * trie_bytes(self.nodes, actions, horizon, cached=True)
        return Search(
            problem,
            task.policy,
            state,
            self.nodes,
            cache_priors=must_keep or (self.reuses and size <= self.memory // 2),
            transpositions=transpositions,
            network_bytes=self.memory // 2,
            augmented=task.augmented,
            deadline=task.deadline,
        )


def trie_bytes(nodes: int, actions: int, horizon: int, *, cached: bool) -> int:
    """Memory of one instance's trie: 8 numbers of 8 bytes per node; if priors are kept, its prior in float32 and its key."""
    return (horizon + 1) * (nodes + 1) * (64 + (40 + 4 * actions if cached else 0))


def beam_bytes(width: int, actions: int) -> int:
    """Working memory of one expansion: about a dozen float64 tensors over the candidates."""
    return 12 * 8 * width * actions
