"""The auxiliary successor loss: which token follows which, by a bilinear head over the final tokens of a network, beside its actions."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from gumbeldore.networks.segments import Layout

_FORBIDDEN = -1e9
"""The score of a token that cannot follow; finite, so that rows without any target have finite gradients."""


class SuccessorHead(nn.Module):
    """Scores of every token as the successor of every other: q_i . k_j / sqrt(d)."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.query = nn.Linear(d, d, bias=False)
        self.key = nn.Linear(d, d, bias=False)

    def forward(self, x: Float[Tensor, "row token d"]) -> Float[Tensor, "row token token"]:
        return self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(x.shape[-1])


def successor_losses(
    scores: Float[Tensor, "row token token"], target: Int[Tensor, "row token"], allowed: Bool[Tensor, "row token"]
) -> Float[Tensor, " row"]:
    """Mean negative log-probability of the tokens that follow, over those with a target (not -1); no token follows itself.

    `allowed` are the tokens that may follow any other.
    """
    forbidden = torch.eye(scores.shape[1], dtype=torch.bool, device=scores.device)[None] | ~allowed[:, None]
    log_prob = scores.masked_fill(forbidden, _FORBIDDEN).log_softmax(-1)
    known = target >= 0
    chosen = log_prob.gather(2, target.clamp(min=0)[..., None]).squeeze(2).masked_fill(~known, 0)
    return -chosen.sum(1) / known.sum(1).clamp(min=1)


def segment_losses(
    head: SuccessorHead, x: Float[Tensor, "token d"], layout: Layout, target: Int[Tensor, " token"]
) -> Float[Tensor, " segment"]:
    """`successor_losses` of tokens that can only follow others of their segment; `target` are tokens, -1 where none follows."""
    index, real = layout.places()
    place = torch.zeros_like(target).index_put_(
        (index[real],), torch.arange(index.shape[1], device=x.device).expand_as(index)[real]
    )
    local = place[target.clamp(min=0)].where(target >= 0, -1)[index].where(real, -1)
    return successor_losses(head(x[index]), local, real)
