"""What a sampler returns: every sequence, its objective, its log-probability, and diagnostics to act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Diagnostics:
    """Numbers that say how a search went, per instance."""

    remaining_mass: Float[Tensor, " batch"]  # probability under the original policy of all that was not sampled; 0: exhausted
    mean: Float[Tensor, "batch round"]  # mu, the estimated expected objective of each round's policy (eq. 4); NaN if empty
    standard_error: Float[Tensor, "batch round"]  # of `mean`; 0 where everything was sampled
    effective_sample_size: Float[Tensor, "batch round"]
    duplicates_avoided: Float[Tensor, " batch"]  # repeats of these sequences to expect from as many draws with replacement
    evaluations: Int[Tensor, " batch"]  # rows that went through the policy
    evaluations_repeated: Int[Tensor, " batch"]  # of these, rows that had been there before: there was no memory to keep them
    evaluations_cached: Int[Tensor, " batch"]  # rows whose prior was known from an earlier round or a shared prefix
    evaluations_shared: Int[
        Tensor, " batch"
    ]  # rows whose prior was that of an equal state with another prefix (transpositions)
    evaluations_forced: Int[Tensor, " batch"]  # rows with one allowed action, which need no policy


@dataclass(frozen=True)
class Solutions:
    """All sequences of a search. Only slots that are `filled` hold one: fewer may exist than were asked for."""

    actions: Int[Tensor, "batch sample depth"]  # -1 after the end
    objective: Float[Tensor, "batch sample"]  # larger is better; -inf where not filled
    log_prob: Float[Tensor, "batch sample"]  # under the original policy; -inf where not filled, NaN where parts were built anew
    filled: Bool[Tensor, "batch sample"]
    diagnostics: Diagnostics
    tries: tuple[Any, ...] = ()  # the search's `Trie`s, one per memory chunk, only with `keep_trie=True`

    @property
    def best_objective(self) -> Float[Tensor, " batch"]:
        return self.objective.amax(1)

    @property
    def best_actions(self) -> Int[Tensor, "batch depth"]:
        """The actions of the best sequence of each instance."""
        return self.top(1).actions.squeeze(1)

    def top(self, count: int) -> Solutions:
        """The `count` best sequences of each instance, best first; of equally good ones, those that were found first."""
        order = self.objective.argsort(dim=1, descending=True, stable=True)[:, :count]
        picked = {name: getattr(self, name).gather(1, order) for name in ("objective", "log_prob", "filled")}
        depth = self.actions.shape[2]
        return replace(self, **picked, actions=self.actions.gather(1, order[..., None].expand(-1, -1, depth)))

    def rows(self, index: Int[Tensor, " selected"] | slice) -> Solutions:
        """The instances at `index`, without search trees; no longer padded than the longest of their sequences."""
        actions = self.actions[index]
        depth = int((actions >= 0).flatten(0, 1).any(0).sum())
        return Solutions(
            actions=actions[..., :depth],
            **{name: getattr(self, name)[index] for name in ("objective", "log_prob", "filled")},
            diagnostics=Diagnostics(**{f.name: getattr(self.diagnostics, f.name)[index] for f in fields(Diagnostics)}),
        )

    def to(self, device: torch.device | str) -> Solutions:
        """The same on another device; search trees stay where they are."""
        moved = {f.name: getattr(self.diagnostics, f.name).to(device) for f in fields(Diagnostics)}
        tensors = {name: getattr(self, name).to(device) for name in ("actions", "objective", "log_prob", "filled")}
        return replace(self, **tensors, diagnostics=Diagnostics(**moved))

    @staticmethod
    def concatenate(parts: Sequence[Solutions]) -> Solutions:
        """The instances of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        joined = {f.name: _join([getattr(p.diagnostics, f.name) for p in parts], torch.nan) for f in fields(Diagnostics)}
        return Solutions(
            actions=_join([p.actions for p in parts], -1),
            objective=_join([p.objective for p in parts], -torch.inf),
            log_prob=_join([p.log_prob for p in parts], -torch.inf),
            filled=_join([p.filled for p in parts], False),
            diagnostics=Diagnostics(**joined),
            tries=tuple(trie for part in parts for trie in part.tries),
        )


def _join(tensors: Sequence[Tensor], fill: float) -> Tensor:
    """Concatenates along the batch; parts that sampled less (exhausted, or interrupted) are padded with `fill`."""
    sizes = [max(t.shape[axis] for t in tensors) for axis in range(1, tensors[0].dim())]
    padded = []
    for tensor in tensors:
        missing = [size - have for size, have in zip(sizes, tensor.shape[1:], strict=True)]
        pad = [amount for gap in reversed(missing) for amount in (0, gap)]
        padded.append(torch.nn.functional.pad(tensor, pad, value=fill) if any(missing) else tensor)
    return torch.cat(padded)


def expected_duplicates(
    log_prob: Float[Tensor, "batch sample"], filled: Bool[Tensor, "batch sample"]
) -> Float[Tensor, " batch"]:
    """How many of as many i.i.d. draws would repeat one of these sequences: sum of m p - (1 - (1 - p)^m)."""
    count = filled.sum(1, keepdim=True).to(log_prob.dtype)
    probability = log_prob.exp().clamp(max=1)
    repeats = count * probability + torch.expm1(count * torch.log1p(-probability.clamp(max=1 - 1e-15)))
    return repeats.where(filled, 0).sum(1).clamp(min=0)
