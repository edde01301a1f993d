"""Prizes and budgets of random instances as Kool et al. (2019) draw them, after Fischetti, Salazar-González and Toth (1998)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gumbeldore.errors import SettingsError

KINDS = ("constant", "uniform", "distance")
BUDGETS = {20: 2.0, 50: 3.0, 100: 4.0}
"""About half of what a tour of so many customers takes, so that a good half of them can be visited."""


def drawn_prizes(
    kind: str, away: Float[Tensor, "batch customer"], random: Float[Tensor, "batch customer"]
) -> Float[Tensor, "batch customer"]:
    """1; hundredths, uniform in 1 .. 100; or hundredths that grow with the distance from the depot, up to 100 for the farthest customer."""
    if kind == "constant":
        return torch.ones_like(random)
    if kind == "uniform":
        return (1 + (100 * random).floor().clamp(max=99)) / 100
    if kind == "distance":
        farthest = away.amax(1, keepdim=True).clamp(min=1e-300)
        return (1 + (away / farthest * 99).floor()) / 100
    raise SettingsError(f"`prizes` must be one of {', '.join(KINDS)}, got {kind!r}.")


def usual_budget(customers: int) -> float:
    """Theirs, where they have one; between and beyond, in proportion to the root of the number of customers, as tours grow."""
    return BUDGETS.get(customers, 0.4 * customers**0.5)
