"""A start at which attention already looks at what is near: heads with Gaussian windows over points in the plane.

A linear embedding of coordinates leaves it to training to find out that distance matters, which takes most of a short one. With
the square |p|^2 as a third feature, -beta |p_i - p_j|^2 = 2 beta p_i . p_j - beta |p_j|^2 - (a constant of the query) is a score
that queries and keys can express, so their weights begin with it. All of them are trained like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gumbeldore.errors import require
from gumbeldore.networks.layers import Block

WIDEST, NARROWEST = 2.0, 64.0
"""The least and the largest beta, where the unit square is scaled to [-1, 1]^2."""
RESIDUAL = 0.3
"""Where ReZero scalars begin: at 0 no window would be seen for a while."""


def with_square(points: Float[Tensor, "*axes 2"]) -> Float[Tensor, "*axes 3"]:
    """Coordinates, and the square of their distance from the middle of the unit square, scaled as in [-1, 1]^2."""
    return torch.cat([points, (2 * points - 1).square().sum(-1, keepdim=True)], -1)


@torch.no_grad()
def look_around(embedding: nn.Linear, blocks: Sequence[Block], square: int) -> None:
    """Sets the first three channels to the coordinates in [-1, 1]^2 and their square, and windows on most heads of all blocks.

    Features 0 and 1 of the embedding are coordinates, feature `square` is that of `with_square`; no other enters these channels.
    Markers that are added later should leave them alone.
    """
    embedding.weight[:3], embedding.bias[:3] = 0, 0
    embedding.weight[0, 0] = embedding.weight[1, 1] = 2
    embedding.bias[:2] = -1
    embedding.weight[2, square] = 1
    for block in blocks:
        require(block.resweight is not None, "Windows need blocks with ReZero.")
        nn.init.constant_(block.resweight, RESIDUAL)  # type: ignore[arg-type]
        attention = block.self_attn
        d = attention.in_proj_weight.shape[1]
        size = d // attention.heads
        for head, beta in enumerate(betas(attention.heads)):
            if beta > 0:
                _set_window(attention.in_proj_weight, attention.in_proj_bias, head * size, d, beta * math.sqrt(size))


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
