"""Active schedules: no operation could begin earlier without another one beginning later. One of them is optimal.

Giffler and Thompson (1960): of all next operations, take the one that would end first, and its machine; one of those that could begin there
before that end has to be the next. Each active schedule comes about by exactly one sequence of such choices, where there are thousands for
each schedule if any job may come next; and about half of the choices are none, because only one operation is left to choose from.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Num
from torch import Tensor

from gumbeldore.problems.jssp.problem import JSSP, JSSPState
from gumbeldore.problems.scheduling import never, occurrence


@dataclass(frozen=True)
class ActiveSchedules:
    """An action space: the choices that lead to active schedules."""

    def mask(self, state: JSSPState) -> Bool[Tensor, "row job"]:
        return active_jobs(state)

    def ordered(self, state: JSSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
        """Complete schedules of initial states by such choices."""
        return active_order(state, actions)


def active_jobs(state: JSSPState) -> Bool[Tensor, "row job"]:
    """Which jobs may come next, so that the schedule becomes active. Of machines with equally early ends it is the first; none if a row is done.

    `Shop::write` of compiled/shops.cpp has the same rule.
    """
    machine, start, end = _next_operations(state)
    first = end.masked_fill(~state.unfinished, never(end)).amin(1, keepdim=True)
    soonest = state.unfinished & (end == first)
    there = machine == machine.where(soonest, state.operations).amin(1, keepdim=True)
    return state.unfinished & there & ((start < first) | soonest)


def _next_operations(state: JSSPState) -> tuple[Int[Tensor, "row job"], Num[Tensor, "row job"], Num[Tensor, "row job"]]:
    """Where each job's next operation would be, and when it would begin and end. Meaningless for finished jobs."""
    place, start = state.next_places(), state.next_starts()
    return state.machines.take(place), start, start + state.times.take(place)


def active_order(state: JSSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
    """Complete schedules of initial states by the choices that lead to active ones: the same where they are, else no operation begins later."""
    rank = torch.arange(actions.shape[1], device=state.device).expand_as(actions)
    operation = actions * state.operations + occurrence(actions, state.jobs)
    rank = torch.empty_like(actions).scatter_(1, operation, rank).view(-1, state.jobs, state.operations)
    visits = state.machines.argsort(2)[state.instance]  # when each job comes to each machine
    chosen = []
    for _ in range(actions.shape[1]):
        may, (machines, _, ends) = active_jobs(state), _next_operations(state)
        machine = machines.gather(1, may.int().argmax(1, keepdim=True))
        visit = visits.gather(2, machine[:, :, None].expand(-1, state.jobs, 1))
        waits = visit.squeeze(2) >= state.scheduled
        first = rank.gather(2, visit).squeeze(2).masked_fill(~waits, actions.shape[1]).argmin(1, keepdim=True)
        soonest = ends.masked_fill(~may, never(ends)).argmin(1, keepdim=True)  # there is room for it
        chosen.append(torch.where(may.gather(1, first), first, soonest).squeeze(1))
        state = JSSP().step(state, chosen[-1])
    return torch.stack(chosen, 1)
