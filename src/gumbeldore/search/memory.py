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
        return self._bytes(actions, horizon, cached=self.keeps(actions, horizon))

    def keeps(self, actions: int, horizon: int) -> bool:
        """Whether priors are kept. This depends on the instance alone, so that whatever counts evaluations does, too."""
        return self.reuses and self._bytes(actions, horizon, cached=True) <= self.memory // 2

    def _bytes(self, actions: int, horizon: int, *, cached: bool) -> int:
        kept = 4 * actions if cached else 0
        return trie_bytes(self.nodes, horizon, kept + 40 * self.reuses) + beam_bytes(self.width, actions)

    def search(
        self,
        task: Task[S],
        *,
        transpositions: bool,
        must_keep: bool = False,
        nodes: int | None = None,
    ) -> Search[S]:
        """A search with its tries empty, of so many nodes per level if they are fewer. Priors are kept where they fit, or must be."""
        problem, state = task.problem, task.state
        actions, horizon = problem.mask(state.rows(slice(0, 1))).shape[1], problem.horizon(state)
        keeps = must_keep or self.keeps(actions, horizon)
        return Search(
            problem,
            task.policy,
            state,
            nodes or self.nodes,
            cache_priors=keeps,
            counts_repeats=self.reuses and not keeps,
            transpositions=transpositions,
            network_bytes=self.memory // 2,
            augmented=task.augmented,
            deadline=task.deadline,
        )


def trie_bytes(nodes: int, horizon: int, kept: int) -> int:
    """Memory of one instance's trie: 7 numbers of 8 bytes per node, and what is kept of it: its key (40), its prior in float32."""
    return (horizon + 1) * (nodes + 1) * (56 + kept)


def beam_bytes(width: int, actions: int) -> int:
    """Working memory of one expansion: about a dozen float64 tensors over the candidates."""
    return 12 * 8 * width * actions
