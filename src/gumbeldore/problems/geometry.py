"""Points in the plane: random symmetries of the unit square, and nearest neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import mix


def augment(points: Float[Tensor, "row point 2"], generator: torch.Generator) -> Float[Tensor, "row point 2"]:
    """Each row with its own random symmetry: x and y swapped, both reflections, and a rotation about the centre.

    A rotation may leave the unit square; such a row is scaled linearly back into it. Distances keep their ratios.
    """
    rows = points.shape[0]

    def coin() -> Tensor:
        return (torch.rand(rows, 1, 1, generator=generator) < 0.5).to(points.device)

    points = torch.where(coin(), points.flip(-1), points)
    points = torch.where(torch.cat([coin(), coin()], -1), 1 - points, points)
    angle = torch.rand(rows, generator=generator).to(points.device) * (2 * math.pi)
    cosine, sine = angle.cos(), angle.sin()
    rotation = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
    return _rescale((points - 0.5) @ rotation.transpose(1, 2) + 0.5)


_SMALL = 0.1
"""Of the unit square: what is smaller has coordinates of few digits beside 1."""

ISOMETRIES = 8
"""Symmetries of the square: swapped axes, both reflections."""


def isometry(points: Float[Tensor, "row point 2"], index: Int[Tensor, " row"]) -> Float[Tensor, "row point 2"]:
    """Each row under one of the symmetries of the unit square; 0 is none.

    Points far from its size are reflected about the middle of their own box: about that of the square they would lose their digits.
    """
    swap, flip_x, flip_y = (((index >> bit) & 1).bool()[:, None, None] for bit in range(3))
    points = torch.where(swap, points.flip(-1), points)
    low, high = points.amin(1, keepdim=True), points.amax(1, keepdim=True)
    usual = ((low >= 0) & (high <= 1)).all(-1, keepdim=True) & ((high - low).amax(-1, keepdim=True) >= _SMALL)
    both = torch.where(usual, torch.ones_like(low), low + high)
    return torch.where(torch.cat([flip_x, flip_y], -1), both - points, points)


def drawn_first(seeds: Int[Tensor, " row"], kinds: int, count: int) -> Int[Tensor, "row augmentation"]:
    """`count` different numbers below `kinds` for each seed, in random order, 0 before all others."""
    noise = mix(seeds[:, None] + mix(torch.arange(1, kinds + 1, device=seeds.device)))
    noise[:, 0] = torch.iinfo(noise.dtype).min
    return noise.argsort(dim=1, stable=True)[:, :count]


def drawn_apart(seeds: Int[Tensor, " row"], kinds: int, forms: int, count: int) -> Int[Tensor, "row augmentation"]:
    """`count` different numbers kind * `forms` + form for each seed, in random order, 0 before all others.

    No kind comes again before all others have come as often: kinds differ more than forms.
    """
    order = drawn_first(seeds, kinds * forms, kinds * forms)
    place = torch.empty_like(order).scatter_(1, order, torch.arange(kinds * forms, device=order.device).expand_as(order))
    again = place.view(-1, kinds, forms).argsort(2).argsort(2).flatten(1)  # how often the kind has come before
    return order.gather(1, again.gather(1, order).argsort(dim=1, stable=True)[:, :count])


def _rescale(points: Float[Tensor, "row point 2"]) -> Float[Tensor, "row point 2"]:
    """Rows outside the unit square moved and scaled (one factor for both axes) to fit; the others unchanged."""
    low = points.amin(1, keepdim=True)
    high = points.amax(1, keepdim=True)
    outside = ((low < 0) | (high > 1)).any(-1, keepdim=True)
    size = (high - low).amax(-1, keepdim=True).clamp(min=1)
    inside = (points - low) / size
    return torch.where(outside, inside.clamp(0, 1), points)


def points_at(
    points: Float[Tensor, "batch point 2"], instance: Int[Tensor, " row"], index: Int[Tensor, " row"]
) -> Float[Tensor, "row 2"]:
    """`points[instance, index]`, faster."""
    return points.flatten(0, 1).index_select(0, torch.add(index, instance, alpha=points.shape[1]))


def all_true(values: Bool[Tensor, "row column"]) -> Bool[Tensor, " row"]:
    """`values.all(1)`, which takes twice as long on a CPU."""
    return values.sum(1) == values.shape[1]


def nearest_candidates(
    origin: Float[Tensor, "row 2"],
    points: Float[Tensor, "row point 2"],
    candidates: Bool[Tensor, "row point"],
    count: Int[Tensor, " row"],
) -> Bool[Tensor, "row point"]:
    """The `count` candidates of each row that are nearest to its origin, all of them where there are fewer.

    Among equally distant ones the first in order are taken, so the answer for a row never depends on other rows.
    """
    if bool((candidates.sum(1) <= count).all()):
        return candidates
    x, y = (points - origin[:, None]).unbind(-1)
    distance = (x.square() + y.square()).masked_fill(~candidates, torch.inf)
    order = distance.argsort(dim=1, stable=True)[:, : int(count.max())]
    first = torch.arange(order.shape[1], device=order.device) < count[:, None]
    return torch.zeros_like(candidates).scatter_(1, order, first) & candidates


def check_nearest(nearest: int | None) -> None:
    """The rule for the setting `nearest` of a problem."""
    require(nearest is None or nearest >= 1, f"`nearest` must be at least 1, or None for no restriction, got {nearest}.")


def shares(lengths: Float[Tensor, "... length"], *units: float) -> Float[Tensor, "... share"]:
    """Lengths of any size from 0 on as features from 0 to 1: as shares of themselves and each of some units. Small ones differ by the small units."""
    return torch.cat([lengths / (unit + lengths) for unit in units], -1)


UNITS = 1, 0.1, 0.01
"""In which regrets are features, in mean edges: most of those that decide are small."""
_PRIOR = -30.0, -9.0, -3.0
"""What the share of a regret in each of these units is worth to a logit at first."""


def prior(features: int, tried: int, regrets: Sequence[int]) -> Float[Tensor, " feature"]:
    """Weights of features that make a logit of them: larger where something was tried, and the larger the smaller its regret (`shares` in `UNITS`)."""
    weight = torch.zeros(features)
    weight[tried] = 12.0
    weight[list(regrets)] = torch.tensor(_PRIOR)
    return weight
