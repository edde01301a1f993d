"""Which operations may be scheduled next, so that nothing is lost and much is left out.

One of the optimal schedules is built by choices of operations in the order in which they begin, each of which begins before any other could have
ended: otherwise that one could have run before it, where nothing is in its way, and would have ended earlier than it does. (Giffler and
Thompson's active schedules of 1960 leave out more, but they need to know the machine of each operation.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gumbeldore.local_search.flexible import improve_flexible
from gumbeldore.problems.fjsp.problem import FJSPState
from gumbeldore.problems.scheduling import never


@dataclass(frozen=True)
class EarlyStarts:
    """An action space: every operation begins before any other could have ended."""

    def mask(self, state: FJSPState) -> Bool[Tensor, "row action"]:
        return active_pairs(state).flatten(1)

    def ordered(self, state: FJSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
        """Complete schedules of initial states by such choices, or better ones; of operations that begin together first the one with most work
        left in its job."""
        seeds = torch.zeros(len(actions), dtype=torch.int64)
        return improve_flexible(state.times[state.instance], actions, seeds, 0)


def active_pairs(state: FJSPState) -> Bool[Tensor, "row job machine"]:
    """The pairs of a job and a machine that begin before any could end, or end as soon as the first; none if a row is done.

    `Flexible::write` of compiled/flexible.cpp has the same rule.
    """
    times, starts = state.next_times(), state.next_starts()
    able = times >= 0
    ends = (starts + times).masked_fill(~able, never(starts))
    earliest = ends.amin((1, 2), keepdim=True)
    return able & ((starts < earliest) | (ends == earliest))
