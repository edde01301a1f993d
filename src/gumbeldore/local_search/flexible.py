"""Compiled local search for flexible job shops (`compiled/flexible.cpp`).

Deterministic: what becomes of an instance depends on its solution, its seed and the number of rounds alone.
"""

from __future__ import annotations

import torch
from jaxtyping import Int, Num
from torch import Tensor

from gumbeldore.local_search.compiling import code, plain


def improve_flexible(
    times: Num[Tensor, "batch job operation machine"],
    actions: Int[Tensor, "batch depth"],
    seeds: Int[Tensor, " batch"],
    rounds: int,
    kept: int = 0,
) -> Int[Tensor, "batch depth"]:
    """Schedules that are not longer, by `rounds` of tabu search, in the order in which operations begin. Actions are those of `FJSP`, padded with
    -1 at the end; the first `kept` of them stay."""
    result = actions.to("cpu", torch.int64, copy=True).contiguous().numpy()
    code().improve_flexible(plain(times, torch.float64), plain(seeds, torch.int64), rounds, kept, result)
    return torch.from_numpy(result).to(actions)
