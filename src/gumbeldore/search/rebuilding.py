"""Good solutions made better: each is written down in another form, and its last actions are chosen anew, again and again.

The form decides which part of the solution comes last (of a tour any stretch, in either direction), so every part has its turn. It is the random
reconstruction of Luo et al. (2023, LEHD) with a narrow beam instead of greedy construction, on several solutions of an instance side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S, replay
from gumbeldore.search.gumbel import substreams
from gumbeldore.search.room import Room
from gumbeldore.search.scores import by_probability
from gumbeldore.solutions import Solutions

WIDTH = 2
"""Of the beam that builds a part anew."""
PART = (0.1, 0.7)
"""The smallest and the largest part that is built anew, as fractions of all actions."""
GOLDEN = 0.6180339887498949
"""Its multiples, modulo 1, fill the interval evenly: the sizes of parts."""
GAIN = 1e-6
"""Relative. Less is not better: isometries round."""


def can_rebuild(problem: Problem[Any]) -> bool:
    """Whether the problem writes its solutions down in other forms."""
    return type(problem).rewritten is not Problem.rewritten


@dataclass
class Rebuilding(Generic[S]):
    """The best solutions of each instance, which are improved independently of each other."""

    problem: Problem[S]
    policy: Policy[S]
    state: S  # one initial row per instance
    seeds: Int[Tensor, " batch"]
    found: Solutions  # by a search, and whatever is better than all before
    actions: Int[Tensor, "batch chain depth"]
    objective: Float[Tensor, "batch chain"]
    memory: int
    drawn: Int[Tensor, " batch"]  # sequences in all
    passes: int = 0

    @classmethod
    def of(
        cls, problem: Problem[S], policy: Policy[S], state: S, seeds: Tensor, found: Solutions, *, chains: int, memory: int
    ) -> Rebuilding[S]:
        """Begins with the `chains` best solutions that were found; where an instance has fewer, with its best one several times."""
        best = found.top(chains)
        slot = torch.arange(best.filled.shape[1], device=seeds.device).where(best.filled, 0)
        actions = best.actions.gather(1, slot[..., None].expand_as(best.actions))
        objective = best.objective.gather(1, slot)
        return cls(problem, policy, state, seeds, found, actions, objective, memory, found.filled.sum(1))

    def rebuild(self, active: Bool[Tensor, " batch"]) -> None:
        """A part of every solution of the active instances is built anew, and kept where that is better."""
        chains = self.actions.shape[1]
        row = active.nonzero().squeeze(1).repeat_interleave(chains)
        chain = torch.arange(len(row), device=row.device) % chains
        form = self.problem.rewritten(
            self.state.rows(row), self.actions[row, chain], seeds=substreams(self.seeds[row] + chain, (self.passes,))
        )
        whole = (form.actions >= 0).sum(1)
        share = PART[0] + (PART[1] - PART[0]) * (self.passes * GOLDEN % 1)
        kept = (whole - (share * whole).ceil().long().clamp(min=2)).clamp(min=0)
        objective, last = self._continued(row, replay(self.problem, form.state, form.actions, kept))
        new = self.problem.translated(self.state.rows(row), form.tag, continued(form.actions, kept, last))
        self.passes += 1
        self._keep(row, chain, new, objective)

    def _continued(self, row: Int[Tensor, " row"], there: S) -> tuple[Float[Tensor, " row"], Int[Tensor, "row depth"]]:
        """The best objective, and its actions, of a beam search from partial solutions of these instances."""
        room = Room(WIDTH, WIDTH, self.memory, reuses=False)
        search = room.search(self.problem, self.policy, there.compact(), transpositions=True, has_variants=False)
        result = search.round(WIDTH, by_probability)
        objective, slot = result.objective.max(1)
        diagnostics = self.found.diagnostics
        counts = {"evaluations": search.evaluator.made, "evaluations_shared": search.evaluator.shared}
        counts["evaluations_forced"] = search.evaluator.forced
        added = {name: getattr(diagnostics, name).index_add(0, row, made) for name, made in counts.items()}
        self.found = replace(self.found, diagnostics=replace(diagnostics, **added))
        self.drawn = self.drawn.index_add(0, row, result.filled.sum(1))
        return objective, result.actions.gather(2, slot[None, :, None].expand(len(result.actions), -1, 1)).squeeze(2).t()

    def _keep(
        self,
        row: Int[Tensor, " row"],
        chain: Int[Tensor, " row"],
        actions: Int[Tensor, "row depth"],
        objective: Float[Tensor, " row"],
    ) -> None:
        """Solutions that are better than those they came from; of each instance the best is found, if it is better than all before."""
        before = self.objective[row, chain]
        better = objective > before + GAIN * before.abs()
        row, chain, actions, objective = row[better], chain[better], actions[better], objective[better]
        self.actions = pad(self.actions, (0, max(0, actions.shape[1] - self.actions.shape[2])), value=-1)
        self.actions[row, chain] = pad(actions, (0, self.actions.shape[2] - actions.shape[1]), value=-1)
        self.objective[row, chain] = objective
        best, slot = self.objective.max(1, keepdim=True)
        new = best > self.found.best_objective[:, None]
        if bool(new.any()):
            chosen = self.actions.gather(1, slot[..., None].expand(-1, -1, self.actions.shape[2]))
            self.found = extended(self.found, chosen.where(new[..., None], -1), best.where(new, -torch.inf))


def continued(
    actions: Int[Tensor, "row depth"], kept: Int[Tensor, " row"], last: Int[Tensor, "row part"]
) -> Int[Tensor, "row all"]:
    """The first `kept` actions of each row, then others; -1 after the end."""
    depth = max(actions.shape[1], int(kept.max()) + last.shape[1])
    place = torch.arange(depth, device=kept.device) - kept[:, None]
    last, actions = (pad(each, (0, depth - each.shape[1]), value=-1) for each in (last, actions))
    return torch.where(place >= 0, last.gather(1, place.clamp(min=0)), actions)


def extended(found: Solutions, actions: Int[Tensor, "batch 1 depth"], objective: Float[Tensor, "batch 1"]) -> Solutions:
    """With one more sequence of each instance, or none where the objective is -inf. How probable it is, is not known."""
    filled = objective > -torch.inf
    depth = max(found.actions.shape[2], actions.shape[2])
    both = [pad(each, (0, depth - each.shape[2]), value=-1) for each in (found.actions, actions)]
    return replace(
        found,
        actions=torch.cat(both, 1),
        objective=torch.cat([found.objective, objective], 1),
        log_prob=torch.cat([found.log_prob, torch.where(filled, torch.nan, -torch.inf).to(objective.dtype)], 1),
        filled=torch.cat([found.filled, filled], 1),
    )
