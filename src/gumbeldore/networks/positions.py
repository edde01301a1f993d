"""Encodings of positions."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


def sinusoids(count: int, like: Float[Tensor, "1 d"]) -> Float[Tensor, "position d"]:
    """Encodings of positions (Vaswani et al. 2017): sines in even, cosines in odd channels."""
    d = like.shape[1]
    frequency = torch.exp(torch.arange(0, d, 2, device=like.device) * (-math.log(10000.0) / d))
    angle = torch.arange(count, device=like.device)[:, None] * frequency
    table = like.new_zeros(count, d)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()[:, : d // 2]
    return table
