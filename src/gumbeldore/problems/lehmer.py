"""The random numbers of Taillard's benchmarks (1993): x <- 16807 x mod (2^31 - 1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

MODULUS = 2**31 - 1
_MULTIPLIER = 16807


def lehmer(seeds: Sequence[int], count: int) -> Int[Tensor, "batch count"]:
    """The first `count` states x <- 16807 x mod (2^31 - 1) after each seed (Bratley, Fox and Schrage), in exact integers."""
    powers = torch.tensor([_MULTIPLIER])
    while len(powers) < count:  # powers of the multiplier, twice as many each time
        powers = torch.cat([powers, powers * powers[-1] % MODULUS])
    return torch.tensor(seeds)[:, None] * powers[:count] % MODULUS


def uniform_integers(states: Int[Tensor, "..."], count: int) -> Int[Tensor, "..."]:
    """floor(u * count) with u = x / (2^31 - 1): integers in 0 .. count - 1."""
    return torch.div(states * count, MODULUS, rounding_mode="floor")
