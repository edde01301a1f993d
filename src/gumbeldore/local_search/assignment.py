"""Assignments of matrices (`compiled/assignment.cpp`): each city gets another one to follow it, at the least cost.

A tour is an assignment of one cycle, so the least assignment bounds the shortest tour, and what its prices leave of each distance says how far an
edge is from being of use (Jonker and Volgenant 1987). Cycles joined at the least cost are a good tour (Karp 1979).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.local_search.compiling import code, plain


class Assigned(NamedTuple):
    """The least assignment of each matrix."""

    follower: Int[np.ndarray, "batch city"]
    prices: Float[np.ndarray, "batch 2 city"]  # of leaving a city, and of reaching it; no distance is less than both together
    tour: Int[np.ndarray, "batch city"]  # its cycles, joined, and its segments where they are best


def assign(distances: Float[np.ndarray, "batch city another"]) -> Assigned:
    """Of each matrix; the diagonal is not looked at."""
    matrices = np.ascontiguousarray(distances, np.float64)
    count, cities = matrices.shape[:2]
    found = Assigned(np.empty((count, cities), np.int64), np.empty((count, 2, cities)), np.empty((count, cities), np.int64))
    code().assign(matrices, *found)
    return found


class LookAhead(NamedTuple):
    """What assignments of what is left of tours say of each city that is left. Lengths are in mean edges, `scale`."""

    regret: Float[Tensor, "row place"]  # by how much the bound grows if it is next
    tried: Float[Tensor, "row place"]  # 1 where a tour was patched together that goes there first
    detour: Float[Tensor, "row place"]  # how much longer that is than the shortest of them
    pieces: Float[Tensor, "row place"]  # cycles of the assignment that goes there first
    leave: Float[Tensor, "row place"]  # what prices leave of the way there
    back: Float[Tensor, "row place"]  # ... of the way from there to the first city
    next: Float[Tensor, "row place"]  # 1 where the assignment goes now
    last: Float[Tensor, "row place"]  # 1 for the city from which it returns
    within: Float[Tensor, "row place"]  # 1 in the cycle of the current city
    cycle: Float[Tensor, "row place"]  # the size of its cycle, as a share
    leaving: Float[Tensor, "row place"]  # prices
    reaching: Float[Tensor, "row place"]
    follower: Float[Tensor, "row place"]  # the place of the city that follows; -1: the first city
    scale: Float[Tensor, " row"]


def look_ahead(
    distances: Float[Tensor, "batch city another"],
    instances: Int[Tensor, " row"],
    ends: Int[Tensor, "row 2"],
    left: Int[Tensor, "row place"],
    *,
    tries: int,
) -> LookAhead:
    """Of ways from one end of each row over all cities that are `left` (-1 after them) to the other end."""
    result, scale = torch.zeros(*left.shape, len(LookAhead._fields) - 1), torch.empty(len(left))
    given = plain(distances, torch.float64), *(plain(each, torch.int64) for each in (instances, ends, left))
    code().look_ahead_by_assignment(*given, tries, torch.get_num_threads(), result.numpy(), scale.numpy())
    return LookAhead._make([*result.to(left.device).unbind(-1), scale.to(left.device)])
