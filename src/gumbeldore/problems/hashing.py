"""Keys of states that are sets with a few numbers beside them: sums of fixed random numbers (Zobrist 1970)."""

from __future__ import annotations

from functools import lru_cache

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gumbeldore.gumbel import mix


@lru_cache(maxsize=64)
def random_numbers(count: int, device: torch.device) -> Int[Tensor, "2 number"]:
    """Two rows of fixed random 64-bit numbers."""
    return mix(torch.arange(1, 2 * count + 1, device=device)).view(2, count)


@lru_cache(maxsize=64)
def _tables(elements: int, numbers: int, device: torch.device) -> tuple[Int[Tensor, "2 1 element"], tuple[Tensor, ...]]:
    """Random numbers for the elements of a set, and for each of some integers beside it."""
    table = random_numbers(elements + numbers, device)
    return table[:, None, :elements], table[:, elements:, None].unbind(1)


def hash_numbers(values: Int[Tensor, "row number"]) -> Int[Tensor, "row 2"]:
    """Two independent 64-bit hashes of some integers per row: sums of their multiples of random numbers, modulo 2^64.

    Two rows collide in both halves with a probability of about 2^-128, times 4^k if all their differences are multiples of 2^k:
    numbers whose last bits say little should be scattered by `mix` first.
    """
    return (values[:, None] * random_numbers(values.shape[1], values.device)).sum(2)


def hash_set(members: Bool[Tensor, "row element"], *numbers: Int[Tensor, " row"]) -> Int[Tensor, "row 2"]:
    """Two independent 64-bit hashes of a set and of some integers per row.

    Every element stands for a random number and every integer for its multiple of one; the hash is their sum modulo 2^64.
    Two different rows collide in both halves with a probability of about 2^-128.
    """
    table, factors = _tables(members.shape[1], len(numbers), members.device)
    total = (members.long().neg_() & table).sum(2)
    for number, factor in zip(numbers, factors, strict=True):
        total.addcmul_(number, factor)
    return total.t()
