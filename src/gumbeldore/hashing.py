"""Hashes of integers: the source of all noise, and keys of states.

Keys are for states that are sets with a few numbers beside them: sums of fixed random numbers (Zobrist 1970).
"""

from __future__ import annotations

from functools import lru_cache

import torch
from jaxtyping import Bool, Int
from torch import Tensor

_MULTIPLY_1 = -0x40A7B892E31B1A47  # 0xBF58476D1CE4E5B9
_MULTIPLY_2 = -0x6B2FB644ECCEEE15  # 0x94D049BB133111EB


def shift_right(x: Int[Tensor, "..."], bits: int) -> Int[Tensor, "..."]:
    """Logical (zero-filling) right shift of signed 64-bit integers."""
    return (x >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def mix(x: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """The finaliser of SplitMix64 (Steele et al. 2014): a bijection that scatters 64-bit integers."""
    x = (x ^ shift_right(x, 30)).mul_(_MULTIPLY_1)
    x = x.bitwise_xor_(shift_right(x, 27)).mul_(_MULTIPLY_2)
    return x.bitwise_xor_(shift_right(x, 31))


@lru_cache(maxsize=64)
def _random_numbers(count: int, device: torch.device) -> Int[Tensor, "2 number"]:
    """Two rows of fixed random 64-bit numbers."""
    return mix(torch.arange(1, 2 * count + 1, device=device)).view(2, count)


@lru_cache(maxsize=64)
def _tables(elements: int, numbers: int, device: torch.device) -> tuple[Int[Tensor, "2 1 element"], tuple[Tensor, ...]]:
    """Random numbers for the elements of a set, and for each of some integers beside it."""
    table = _random_numbers(elements + numbers, device)
    return table[:, None, :elements], table[:, elements:, None].unbind(1)


def hash_numbers(values: Int[Tensor, "row number"]) -> Int[Tensor, "row 2"]:
    """Two independent 64-bit hashes of some integers per row: sums of their multiples of random numbers, modulo 2^64.

    Two rows collide in both halves with a probability of about 2^-128, times 4^k if all their differences are multiples of 2^k:
    numbers whose last bits say little should be scattered by `mix` first.
    """
    return (values[:, None] * _random_numbers(values.shape[1], values.device)).sum(2)


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
