"""Distance-biased attention: a start at which attention already looks at what is near, by heads with Gaussian windows over points in the plane.

A linear embedding of coordinates leaves it to training to find out that distance matters, which takes most of a short one. With
the square |p|^2 as a third feature, -beta |p_i - p_j|^2 = 2 beta p_i . p_j - beta |p_j|^2 - (a constant of the query) is a score
that queries and keys can express, so their weights begin with it. All of them are trained like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gumbeldore.errors import require
from gumbeldore.networks.layers import Block
from gumbeldore.networks.routes import RouteFeature, View

WIDEST, NARROWEST = 2.0, 64.0
"""The least and the largest beta, where the unit square is scaled to [-1, 1]^2."""
_RESIDUAL = 0.3
"""Where ReZero scalars begin: at 0 no window would be seen for a while."""


@dataclass(frozen=True)
class DistanceBias(RouteFeature):
    """Attention begins with windows around each node. The column is the square of the distance from the middle of the unit square."""

    name: ClassVar[str] = "distance-bias"
    width: ClassVar[int] = 1

    def columns(self, view: View) -> Float[Tensor, "row token 1"]:
        return square(view.seen)

    def check(self, d: int, heads: int) -> None:
        require(
            d // heads >= 3,
            f"The feature `distance-bias` needs heads of a width of at least 3, got `d` / `heads` = {d // heads}.",
        )

    @torch.no_grad()
    def begin(self, embedding: nn.Linear, marker: nn.Embedding, blocks: Sequence[Block], column: int) -> None:
        """Sets the first three channels to the coordinates in [-1, 1]^2 and their square, and windows on most heads of all blocks.

        Features 0 and 1 of the embedding are coordinates; no other feature and no marker enters these channels.
        """
        embedding.weight[:3], embedding.bias[:3] = 0, 0
        embedding.weight[0, 0] = embedding.weight[1, 1] = 2
        embedding.bias[:2] = -1
        embedding.weight[2, column] = 1
        marker.weight[:, :3] = 0
        for block in blocks:
            assert block.resweight is not None, "Windows need blocks with ReZero."
            nn.init.constant_(block.resweight, _RESIDUAL)
            attention = block.self_attn
            d = attention.in_proj_weight.shape[1]
            size = d // attention.heads
            for head, beta in enumerate(betas(attention.heads)):
                if beta > 0:
                    _set_window(attention.in_proj_weight, attention.in_proj_bias, head * size, d, beta * math.sqrt(size))


def square(points: Float[Tensor, "*axes 2"]) -> Float[Tensor, "*axes 1"]:
    """The square of the distance from the middle of the unit square, scaled as in [-1, 1]^2."""
    return (2 * points - 1).square().sum(-1, keepdim=True)


def betas(heads: int) -> list[float]:
    """A quarter of the heads is free (0); the others have windows from wide to narrow."""
    free = max(1, heads // 4)
    count = heads - free
    ratio = (NARROWEST / WIDEST) ** (1 / max(1, count - 1))
    return [0.0] * free + [WIDEST * ratio**i for i in range(count)]


def _set_window(weight: Float[Tensor, "three_d d"], bias: Float[Tensor, " three_d"], first: int, d: int, beta: float) -> None:
    """The first three channels of a head: queries (p, -1) and keys (p, |p|^2), scaled so that their product is 2 p.p' - |p'|^2."""
    for start in (first, d + first):
        weight[start : start + 3], bias[start : start + 3] = 0, 0
        weight[start, 0] = weight[start + 1, 1] = math.sqrt(2 * beta)
    bias[first + 2] = -math.sqrt(beta)
    weight[d + first + 2, 2] = math.sqrt(beta)
