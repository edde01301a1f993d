"""Canonical coordinates: what a network sees from where it stands, turned and mirrored, so that equal situations look equal.

A tour that is moved, turned or mirrored is as good as before, and so is every decision on the way. A network that is given
coordinates has to learn that from examples. In the frame of the current node it need not: this node and the goal lie on the first
axis, with their middle in the centre of the unit square, and the candidates' centroid is not below that axis. Where we are at the
goal already, the axis points to the centroid, and the nearest candidate is not below it.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_GRID = 2**32
"""Parts of a unit in which means are computed."""

DISTANCES = 2
"""Features beside coordinates: the distances from the current node and from the goal."""


def in_frame(
    points: Float[Tensor, "row token 2"],
    here: Float[Tensor, "row 2"],
    goal: Float[Tensor, "row 2"],
    candidates: Bool[Tensor, "row token"],
) -> tuple[Float[Tensor, "row token 2"], Float[Tensor, "row token 2"]]:
    """Points as seen from `here` on the way to `goal`, and their distances from both, twice as large like coordinates in [-1, 1]."""
    both = distances(points, here, goal)
    away, way, middle, centre = both[..., 0], goal - here, centroid(points, candidates), (here + goal) / 2
    leaving = (way != 0).any(1, keepdim=True)
    axis = _unit(torch.where(leaving, way, middle - here))
    nearest = away.masked_fill(~candidates, torch.inf).argmin(1)
    side = torch.where(leaving, middle, points[torch.arange(len(points), device=points.device), nearest])
    seen, below = turned(points - centre[:, None], axis[:, None]), turned(side - centre, axis)[:, 1:] < 0
    seen = torch.cat([seen[..., :1], torch.where(below[:, None], -seen[..., 1:], seen[..., 1:])], -1)
    return seen + 0.5, both


def distances(
    points: Float[Tensor, "row token 2"], here: Float[Tensor, "row 2"], goal: Float[Tensor, "row 2"]
) -> Float[Tensor, "row token 2"]:
    """From both, twice as large like coordinates in [-1, 1]."""
    return 2 * torch.stack([_length(points - place[:, None]) for place in (here, goal)], -1)


def centroid(points: Float[Tensor, "row token 2"], candidates: Bool[Tensor, "row token"]) -> Float[Tensor, "row 2"]:
    """The mean of the candidates, by integers: a sum of floats would be rounded by how many other tokens a row has."""
    grid = (points * _GRID).round().long()
    count = candidates.sum(1, keepdim=True).clamp(min=1)
    return grid.masked_fill(~candidates[..., None], 0).sum(1).to(points.dtype) / (count * _GRID)


def turned(points: Float[Tensor, "*axes 2"], axis: Float[Tensor, "*#axes 2"]) -> Float[Tensor, "*axes 2"]:
    """Points turned such that the unit vector `axis` becomes the first axis."""
    (x, y), (cosine, sine) = points.unbind(-1), axis.unbind(-1)
    return torch.stack([x * cosine + y * sine, y * cosine - x * sine], -1)


def _length(vector: Float[Tensor, "*axes 2"]) -> Float[Tensor, "*axes"]:
    x, y = vector.unbind(-1)
    return (x.square() + y.square()).sqrt()


def _unit(vector: Float[Tensor, "row 2"]) -> Float[Tensor, "row 2"]:
    """Of length 1; (1, 0) where there is no direction."""
    length = _length(vector)[:, None]
    ahead = torch.zeros_like(vector)
    ahead[:, 0] = 1
    return torch.where(length > 0, vector / length.where(length > 0, 1), ahead)
