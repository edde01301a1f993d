"""Good solutions made better: each is written down in another form, and its last actions are chosen anew, again and again.

The form decides which part of the solution comes last (of a tour any stretch, in either direction), so every part has its turn. It is the random
reconstruction of Luo et al. (2023, LEHD) with a narrow beam instead of greedy construction, on several solutions of an instance side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Generic

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from gumbeldore.hashing import mix
from gumbeldore.problem import Problem, S, replay
from gumbeldore.search.memory import MemoryBudget
from gumbeldore.search.scores import by_probability
from gumbeldore.search.task import Task
from gumbeldore.solutions import Solutions

_WIDTH = 2
"""Of the beam that builds a part anew."""
PART = (0.1, 0.7)
"""The smallest and the largest part that is built anew, as fractions of all actions."""
GOLDEN = 0.6180339887498949
"""Its multiples, modulo 1, fill the interval evenly: the sizes of parts."""
_GAIN = 1e-6
"""Relative. Less is not better: isometries round."""


def can_reconstruct(problem: Problem[Any]) -> bool:
    """Whether the problem writes its solutions down in other forms."""
    return type(problem).reencoded is not Problem.reencoded


@dataclass
class Ledger:
    """What reconstruction has spent so far, of the work that it shares with a search."""

    evaluations: Int[Tensor, " batch"]
    sequences: Int[Tensor, " batch"]

    @classmethod
    def empty(cls, like: Int[Tensor, " batch"]) -> Ledger:
        return cls(torch.zeros_like(like), torch.zeros_like(like))


@dataclass
class Reconstruction(Generic[S]):
    """Some of the best solutions of each instance, improved independently of each other, while a search may go on to find more."""

    task: Task[S]
    chains: int
    memory: int
    searched: Solutions  # all that the search has found
    transpositions: bool = True
    spent: Ledger = field(default=None)  # type: ignore[assignment]
    actions: Int[Tensor, "batch chain depth"] = field(init=False)
    objective: Float[Tensor, "batch chain"] = field(init=False)
    passes: Int[Tensor, " batch"] = field(init=False)
    added: list[tuple[Int[Tensor, "batch 1 depth"], Float[Tensor, "batch 1"]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.passes = torch.zeros_like(self.task.state.instance)
        self.spent = self.spent or Ledger.empty(self.passes)
        self.actions, self.objective = best_apart(self.searched.actions, self.searched.objective, self.chains)

    @property
    def best(self) -> Float[Tensor, " batch"]:
        return torch.maximum(self.objective.amax(1), self.searched.best_objective)

    @property
    def found(self) -> Solutions:
        """By the search, and by reconstruction what was better than all before."""
        found, diagnostics = self.searched, self.searched.diagnostics
        found = replace(found, diagnostics=replace(diagnostics, evaluations=diagnostics.evaluations + self.spent.evaluations))
        if not self.added:
            return found
        depth = max(actions.shape[2] for actions, _ in self.added)
        actions = [pad(actions, (0, depth - actions.shape[2]), value=-1) for actions, _ in self.added]
        return extended(found, torch.cat(actions, 1), torch.cat([objective for _, objective in self.added], 1))

    def see(self, searched: Solutions) -> None:
        """The search has gone on: what it found may be better than solutions that are being improved.

        Where it found nothing, they stay as they are: other instances may have been searched meanwhile.
        """
        new = slice(self.searched.actions.shape[1], None)
        found = searched.filled[:, new].any(1)
        depth = max(self.actions.shape[2], searched.actions.shape[2])
        actions = [pad(each, (0, depth - each.shape[2]), value=-1) for each in (self.actions, searched.actions[:, new])]
        objective = torch.cat([self.objective, searched.objective[:, new]], 1)
        self.searched = searched
        best, value = best_apart(torch.cat(actions, 1), objective, self.chains)
        self.actions, self.objective = (
            torch.where(found[:, None, None], best, actions[0]),
            torch.where(found[:, None], value, self.objective),
        )

    def reconstruct(self, active: Bool[Tensor, " batch"]) -> None:
        """A part of every solution of the active instances is built anew, and kept where that is better."""
        problem, state, chains = self.task.problem, self.task.state, self.actions.shape[1]
        row = active.nonzero().squeeze(1).repeat_interleave(chains)
        chain = torch.arange(len(row), device=row.device) % chains
        seeds = mix(mix(self.task.seeds[row] + chain) + self.passes[row])
        form = problem.reencoded(state.rows(row), self.actions[row, chain], seeds=seeds)
        whole = (form.actions >= 0).sum(1)
        share = PART[0] + (PART[1] - PART[0]) * (self.passes[row] * GOLDEN % 1)
        kept = (whole - (share * whole).ceil().long().clamp(min=2)).clamp(min=0)
        objective, last = self._continued(row, replay(problem, form.state, form.actions, kept))
        new = problem.inverse_transform(state.rows(row), form.tag, continued(form.actions, kept, last))
        self.passes = self.passes + active.long()
        self._keep(row, chain, new, objective)

    def _continued(self, row: Int[Tensor, " row"], there: S) -> tuple[Float[Tensor, " row"], Int[Tensor, "row depth"]]:
        """The best objective, and its actions, of a beam search from partial solutions of these instances."""
        budget = MemoryBudget(_WIDTH, _WIDTH, self.memory, reuses=False)
        search = budget.search(replace(self.task, state=there.compact()), transpositions=self.transpositions)
        result = search.round(_WIDTH, by_probability)
        objective, slot = result.objective.max(1)
        self.spent.evaluations = self.spent.evaluations.index_add(0, row, search.evaluator.made)
        self.spent.sequences = self.spent.sequences.index_add(0, row, result.filled.sum(1))
        return objective, result.actions.gather(2, slot[None, :, None].expand(len(result.actions), -1, 1)).squeeze(2).t()

    def _keep(
        self,
        row: Int[Tensor, " row"],
        chain: Int[Tensor, " row"],
        actions: Int[Tensor, "row depth"],
        objective: Float[Tensor, " row"],
    ) -> None:
        """Solutions that are better than those they came from. The best of each instance is added, if it is better than all before."""
        before, best = self.objective[row, chain], self.best[:, None]
        better = objective > before + _GAIN * before.abs()
        row, chain, actions, objective = row[better], chain[better], actions[better], objective[better]
        self.actions = pad(self.actions, (0, max(0, actions.shape[1] - self.actions.shape[2])), value=-1)
        self.actions[row, chain] = pad(actions, (0, self.actions.shape[2] - actions.shape[1]), value=-1)
        self.objective[row, chain] = objective
        value, slot = self.objective.max(1, keepdim=True)
        new = value > best
        if bool(new.any()):
            chosen = self.actions.gather(1, slot[..., None].expand(-1, -1, self.actions.shape[2]))
            self.added.append((chosen.where(new[..., None], -1), value.where(new, -torch.inf)))


def best_apart(
    actions: Int[Tensor, "batch sample depth"], objective: Float[Tensor, "batch sample"], count: int
) -> tuple[Int[Tensor, "batch chain depth"], Float[Tensor, "batch chain"]]:
    """The best solutions, no two of equal worth, which may be the same; where there are fewer, the best one several times."""
    value, order = objective.sort(dim=1, descending=True, stable=True)
    again = value[:, 1:] >= value[:, :-1] - _GAIN * value[:, :-1].abs()
    value = value.masked_fill(pad(again, (1, 0), value=False), -torch.inf)
    place = value.sort(dim=1, descending=True, stable=True).indices[:, :count]
    place = pad(place.where(value.gather(1, place) > -torch.inf, 0), (0, count - place.shape[1]))
    slot = order.gather(1, place)
    return actions.gather(1, slot[..., None].expand(-1, -1, actions.shape[2])), objective.gather(1, slot)


def continued(
    actions: Int[Tensor, "row depth"], kept: Int[Tensor, " row"], last: Int[Tensor, "row part"]
) -> Int[Tensor, "row all"]:
    """The first `kept` actions of each row, then others; -1 after the end of those that are shorter than the longest."""
    depth = int((kept + (last >= 0).sum(1)).max())
    place = torch.arange(depth, device=kept.device) - kept[:, None]
    last, actions = (pad(each, (0, max(0, depth - each.shape[1])), value=-1)[:, :depth] for each in (last, actions))
    return torch.where(place >= 0, last.gather(1, place.clamp(min=0)), actions)


def extended(found: Solutions, actions: Int[Tensor, "batch more depth"], objective: Float[Tensor, "batch more"]) -> Solutions:
    """With more sequences of each instance, none where the objective is -inf. How probable they are, is not known."""
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
