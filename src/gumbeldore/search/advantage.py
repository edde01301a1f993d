"""What a round teaches: the shift of a node's logit, computed from the objectives between two rounds.

An advantage function maps a finished round to one number per sequence (added to every edge on its path) or to one number
per sequence and edge. `sigma` times these numbers is summed up in `Trie.bonus`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from gumbeldore.search.expansion import Round
from gumbeldore.search.gumbel import threshold_weights, weighted_mean

AdvantageFn = Callable[[Round], Float[Tensor, "batch beam"] | Float[Tensor, "depth batch beam"]]


def expected_objective(
    result: Round,
) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """The normalised estimate mu of the round's expected objective (eq. 4), its standard error, effective sample size."""
    weight = threshold_weights(result.round_log_prob, result.score, result.filled, result.complete)
    mean, error, size = weighted_mean(weight, result.objective)
    return mean, error.masked_fill(result.complete & result.filled.any(1), 0), size  # complete: mu is exact


def global_advantage(result: Round) -> Float[Tensor, "batch beam"]:
    """The objective above the expected one, for the whole path (eq. 6): the paper's Gumbeldore."""
    return _above(result, expected_objective(result)[0])


def outcome(result: Round) -> Float[Tensor, "batch beam"]:
    """The objective itself, without a baseline, for games whose outcomes are centred at a draw (Gomoku)."""
    return result.objective.where(result.filled, 0)


def min_max_normalised(advantage: AdvantageFn = global_advantage) -> AdvantageFn:
    """Scales advantages so that the round's best has 1 and its worst -1 (each sign by its own extreme)."""

    def normalised(result: Round) -> Tensor:
        value = advantage(result)
        high = value.clamp(min=0).amax(-1, keepdim=True)
        low = value.clamp(max=0).amin(-1, keepdim=True).neg()
        scale = torch.where(value > 0, high, low)
        return value / scale.where(scale > 0, 1)

    normalised.__name__ = f"min_max_normalised_{getattr(advantage, '__name__', 'advantage')}"
    return normalised


def local_advantage(result: Round) -> Float[Tensor, "depth batch beam"]:
    """The expected objective below a node minus that below its parent, edge by edge (eq. 1 with the estimates of eq. 5).

    An edge is updated once, however many sequences pass through it (the first of them carries the value), and only where
    at least two sequences pass through its parent.
    """
    depth, batch, beam = result.nodes.shape
    root = torch.zeros(1, batch, beam, dtype=torch.long, device=result.nodes.device)
    path = torch.cat([root, result.nodes])  # levels 0 .. depth
    on_path = result.filled & (torch.arange(depth + 1, device=path.device)[:, None, None] <= result.leaf_depth)
    # same[l, b, i, j]: the sequences i and j share their node at level l
    same = (path[..., :, None] == path[..., None, :]) & on_path[..., :, None] & on_path[..., None, :]
    weight = threshold_weights(
        result.round_log_prob[:, None].expand(depth + 1, batch, beam, beam),
        result.score[:, None].expand(depth + 1, batch, beam, beam),
        same,
        result.complete[:, None].expand(depth + 1, batch, beam),
    )
    value = weighted_mean(weight, result.objective[:, None].expand_as(weight))[0]
    first = same.int().argmax(-1) == torch.arange(beam, device=path.device)
    shared = same[:-1].sum(-1) >= 2  # of the parent
    return (value[1:] - value[:-1]).where(on_path[1:] & first[1:] & shared, 0)


def _above(result: Round, baseline: Float[Tensor, " batch"]) -> Float[Tensor, "batch beam"]:
    return (result.objective - baseline[:, None]).where(result.filled, 0)
