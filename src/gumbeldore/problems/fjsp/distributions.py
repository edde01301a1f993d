"""Random flexible job shops as the literature draws them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

Distribution = Literal["sd1", "sd2"]
"""SD1: Song, Chen, Li and Cao (2023), "Flexible job-shop scheduling via graph neural network and deep reinforcement learning", IEEE
Transactions on Industrial Informatics 19. SD2: Wang et al. (2024), "Flexible job shop scheduling via dual attention network-based
reinforcement learning", IEEE Transactions on Neural Networks and Learning Systems 35."""

Uniform = Callable[[tuple[int, ...]], Tensor]
"""Numbers in 0 .. 1, without 1, of some shape."""


def random_shops(
    times: Distribution, count: int, jobs: int, machines: int, uniform: Uniform
) -> Int[Tensor, "batch job operation machine"]:
    """Times of `count` shops, -1 where an operation cannot run.

    Each operation can run on k machines, k uniform in 1 .. M, all sets of k equally likely. SD1: jobs of round(0.8 M) .. round(1.2 M)
    operations, each with a mean time m uniform in 1 .. 20 and times uniform in max(1, round(0.8 m)) .. min(20, round(1.2 m)). SD2: jobs of M
    operations, times uniform in 1 .. 99. The numbers are drawn in this order: operations of jobs (SD1 only), k, a rank for each machine, the
    mean times (SD1 only), times.
    """
    first, last = spread(machines) if times == "sd1" else (machines, machines)
    shape = count, jobs, last
    counts = first + _integers(uniform((count, jobs)), last - first + 1) if times == "sd1" else torch.full((count, jobs), last)
    alternatives = 1 + _integers(uniform(shape), machines)
    chosen = uniform((*shape, machines)).argsort(3).argsort(3) < alternatives[..., None].to(counts.device)
    if times == "sd1":
        mean = 1 + _integers(uniform(shape), 20)
        low, high = ((share * mean + 5) // 10 for share in (8, 12))
        low, high = low.clamp(min=1)[..., None], high.clamp(max=20)[..., None]
    else:
        low, high = torch.tensor(1, device=chosen.device), torch.tensor(99, device=chosen.device)
    taken = low + _integers(uniform((*shape, machines)), high - low + 1)
    exists = torch.arange(last, device=counts.device) < counts[..., None]
    return taken.where(chosen & exists.to(chosen.device)[..., None], -1)


def spread(machines: int) -> tuple[int, int]:
    """The fewest and the most operations of a job of SD1."""
    return max(1, (8 * machines + 5) // 10), (12 * machines + 5) // 10


def _integers(uniform: Float[Tensor, "*shape"], count: Int[Tensor, "*sizes"] | int) -> Int[Tensor, "*shape"]:
    """Uniform integers in 0 .. count - 1."""
    return (uniform * count).long()
