"""Random symmetries of the unit square for problems in the plane."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


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
    return rescale((points - 0.5) @ rotation.transpose(1, 2) + 0.5)


def rescale(points: Float[Tensor, "row point 2"]) -> Float[Tensor, "row point 2"]:
    """Rows outside the unit square moved and scaled (one factor for both axes) to fit; the others unchanged."""
    low = points.amin(1, keepdim=True)
    high = points.amax(1, keepdim=True)
    outside = ((low < 0) | (high > 1)).any(-1, keepdim=True)
    size = (high - low).amax(-1, keepdim=True).clamp(min=1)
    inside = (points - low) / size
    return torch.where(outside, inside.clamp(0, 1), points)
