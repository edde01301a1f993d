"""How the candidates of an expansion are ranked (by probability, by probability within each augmentation, by Gumbels), and the best of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.search import gumbel

Perturb = Callable[[Float[Tensor, "batch beam action"], Float[Tensor, "batch beam"], int], Float[Tensor, "batch beam action"]]
"""Scores of children from their total log-probabilities, their parents' scores and the depth."""

CUT = -1e300
"""The score of a candidate that may not be chosen, although it could be: what is -inf could not."""

_NOISE = 1 << 14
"""How many random numbers are drawn at once, if that is enough for several levels of a search."""

_LAST = 1 << 30
"""The rank, within an augmentation, of all that is not among the best of its slot."""


def by_probability(total: Float[Tensor, "batch beam action"], score: Float[Tensor, "batch beam"], depth: int) -> Tensor:
    """Deterministic beam search: the score is the total log-probability."""
    return total.clone()


def by_probability_within(augmentations: int, some: range | None = None) -> Perturb:
    """Beam searches side by side, one for each of `some` of the root's children (None: all): each keeps its most probable sequences.

    Of all candidates below a child the r-th best (from 0) has the score -(r * augmentations + child), from which its own children know
    theirs. The width is to be shared equally.
    """
    chosen = range(augmentations) if some is None else some

    def perturb(total: Float[Tensor, "batch beam action"], score: Float[Tensor, "batch beam"], depth: int) -> Tensor:
        none = total == -torch.inf
        if depth == 0:
            child = torch.arange(total.shape[2], device=total.device)
            others = (child < chosen.start) | (child >= chosen.stop)
            return (-child).to(total.dtype).masked_fill(others, CUT).expand_as(total).masked_fill(none, -torch.inf)
        best, action = total.topk(min(-(-total.shape[1] // len(chosen)), total.shape[2]), dim=2)
        below = (-score.clamp(min=-(2.0**50))).long() % augmentations
        rank = _rank_within(best, below, augmentations)
        full = -(_LAST * augmentations + below).to(total.dtype)[..., None].expand_as(total)
        ranked = full.scatter(2, action, -(rank * augmentations + below[..., None]).to(total.dtype))
        return ranked.masked_fill(none, -torch.inf)

    return perturb


def _rank_within(
    value: Float[Tensor, "batch beam best"], group: Int[Tensor, "batch beam"], groups: int
) -> Int[Tensor, "batch beam best"]:
    """How many values of the same group are larger; of equal ones the first counts as larger."""
    order = value.flatten(1).argsort(dim=1, descending=True, stable=True)
    ordered = group[..., None].expand_as(value).flatten(1).gather(1, order)[..., None]
    before = (ordered == torch.arange(groups, device=group.device)).cumsum(1) - 1
    return torch.empty_like(order).scatter_(1, order, before.gather(2, ordered).squeeze(2)).view_as(value)


def by_gumbels(seeds: Int[Tensor, " batch"], index: int) -> Perturb:
    """Stochastic beam search: Gumbels of the children, conditioned on their maximum being the parent's (appendix A)."""
    seeds, block = gumbel.substreams(seeds, (index,)), range(0)
    noise = torch.empty(0)

    def perturb(total: Float[Tensor, "batch beam action"], score: Float[Tensor, "batch beam"], depth: int) -> Tensor:
        nonlocal block, noise
        if depth not in block or noise.shape[1:] != total.shape:
            block = range(depth, depth + max(1, _NOISE // total.numel()))
            noise = gumbel.gumbels_by_depth(seeds, block, tuple(total.shape[1:]))
        return gumbel.gumbels_with_maximum(total, noise[depth - block.start], score)

    return perturb


def root_gumbels(seeds: Int[Tensor, " batch"], index: int) -> Float[Tensor, " batch"]:
    """The Gumbel of the root in a round; with it the unnormalised estimator (eq. 3) is unbiased."""
    return gumbel.gumbels(seeds, (index,), (1,)).squeeze(1)


def all_kept(score: Float[Tensor, "batch candidate"], width: int) -> Bool[Tensor, " batch"]:
    """Whether no candidate of an instance is cut."""
    return ((score > -torch.inf).sum(1) <= width) & (score != CUT).all(1)


def highest(
    score: Float[Tensor, "batch candidate"], count: int
) -> tuple[Float[Tensor, "batch {count}"], Int[Tensor, "batch {count}"]]:
    """The best candidates of each instance and where they stand, in descending order; of equal ones the first.

    `topk` leaves the order of equal scores open, so that the answer for an instance would depend on how many levels its batch
    goes on after it has finished. Only where there are equal ones, all are sorted. Those of -inf hold nothing.
    """
    best, choice = score.topk(min(count + 1, score.shape[1]), dim=1)  # one more, which may equal the last
    equal = best.diff(dim=1) == 0  # never for -inf: their difference is no number
    if bool(equal.any()):
        rows = equal.any(1).nonzero().squeeze(1)
        ordered, order = score.index_select(0, rows).sort(dim=1, descending=True, stable=True)
        best, choice = (
            best.index_copy(0, rows, ordered[:, : best.shape[1]]),
            choice.index_copy(0, rows, order[:, : best.shape[1]]),
        )
    return best[:, :count], choice[:, :count]
