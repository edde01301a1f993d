"""Which operations may be scheduled next, so that nothing is lost and much is left out.

One of the optimal schedules is built by choices of operations in the order in which they begin, each of which begins before any other could have
ended: otherwise that one could have run before it, where nothing is in its way, and would have ended earlier than it does. (Giffler and
Thompson's active schedules of 1960 leave out more, but they need to know the machine of each operation.)
"""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from gumbeldore.problems.fjsp.problem import FJSPState
from gumbeldore.problems.scheduling import never


def active_pairs(state: FJSPState) -> Bool[Tensor, "row job machine"]:
    """The pairs of a job and a machine that begin before any could end, or end as soon as the first; none if a row is done.

    `Flexible::write` of compiled/flexible.cpp has the same rule.
    """
    times, starts = state.next_times(), state.next_starts()
    able = times >= 0
    ends = (starts + times).masked_fill(~able, never(starts))
    earliest = ends.amin((1, 2), keepdim=True)
    return able & ((starts < earliest) | (ends == earliest))


def waiting(state: FJSPState) -> Bool[Tensor, "row job machine"]:
    """All pairs of an unfinished job and a machine for its next operation."""
    return torch.ge(state.next_times(), 0)
