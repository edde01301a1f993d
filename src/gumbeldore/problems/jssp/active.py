"""Active schedules: no operation could begin earlier without another one beginning later. One of them is optimal.

Giffler and Thompson (1960): of all next operations, take the one that would end first, and its machine; one of those that could begin there
before that end has to be the next. Each active schedule comes about by exactly one sequence of such choices, where there are thousands for
each schedule if any job may come next; and about half of the choices are none, because only one operation is left to choose from.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from gumbeldore.problems.jssp.problem import JSSPState


def active_jobs(state: JSSPState) -> Bool[Tensor, "row job"]:
    """Which jobs may come next, so that the schedule becomes active. Of machines with equally early ends it is the first; none if a row is done.

    `Shop::write` of compiled/shops.cpp has the same rule.
    """
    job = torch.arange(state.jobs, device=state.device) * state.operations + state.scheduled.clamp(max=state.operations - 1)
    place = job + state.instance[:, None] * (state.jobs * state.operations)
    machine, start = state.machines.take(place), state.next_starts()
    end = start + state.times.take(place)
    never = torch.inf if end.is_floating_point() else torch.iinfo(end.dtype).max
    first = end.masked_fill(~state.unfinished, never).amin(1, keepdim=True)
    soonest = state.unfinished & (end == first)
    there = machine == machine.where(soonest, state.operations).amin(1, keepdim=True)
    return state.unfinished & there & ((start < first) | soonest)
