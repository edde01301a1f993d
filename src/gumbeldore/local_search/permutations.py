"""Compiled search for orders of permutation flow shops (`compiled/permutations.cpp`).

Deterministic: what becomes of an instance depends on its order, its seed and the number of rounds alone.
"""

from __future__ import annotations

import torch
from jaxtyping import Int, Num
from torch import Tensor

from gumbeldore.local_search.compiling import code, plain


def improve_permutations(
    times: Num[Tensor, "batch job machine"],
    orders: Int[Tensor, "batch job"],
    seeds: Int[Tensor, " batch"],
    rounds: int,
    kept: int = 0,
) -> Int[Tensor, "batch job"]:
    """Orders whose last job ends no later: jobs are inserted where they fit best, then `rounds` of iterated greedy. The first `kept` jobs stay."""
    result = orders.to("cpu", torch.int64, copy=True).contiguous().numpy()
    code().improve_permutations(plain(times, torch.float64), plain(seeds, torch.int64), rounds, kept, result)
    return torch.from_numpy(result).to(orders)


def insert_jobs(times: Num[Tensor, "batch job machine"], orders: Int[Tensor, "batch job"]) -> Int[Tensor, "batch job"]:
    """The orders that come about if jobs are inserted one after the other where they fit best, the first of equally good places."""
    result = orders.to("cpu", torch.int64, copy=True).contiguous().numpy()
    code().insert_jobs(plain(times, torch.float64), result)
    return torch.from_numpy(result).to(orders)
