"""Features of time: when operations can begin, what must follow them, and which jobs and machines are critical.

The paper's network sees of an operation how long it takes, and of its job how late it is. That a machine is busy, how much work waits for
it, and which job cannot be late any more are sums and maxima along paths, which attention, computing means, learns late. Here they are
features, between 0 and 1 whatever the size of the shop: the usual lower bounds of branch and bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor

from gumbeldore.networks.features import Feature
from gumbeldore.problems.jssp.problem import JSSPState
from gumbeldore.problems.scheduling import never

_SOON = 300.0
"""What is further away than so much counts as that far, where a feature is about the near future: some six operations of Taillard's."""


@dataclass(frozen=True)
class ScheduleBounds(Feature):
    """When operations can begin, what must follow them, and how critical they are."""

    name: ClassVar[str] = "bounds"
    width: ClassVar[int] = 8

    def columns(self, state: JSSPState, dtype: torch.dtype) -> Float[Tensor, "row job operation 8"]:
        return bound_features(state, dtype)


class Bounds(NamedTuple):
    """Of unscheduled operations, in time from now on, which is the earliest start of any of them. For scheduled ones they mean nothing."""

    begin: Float[
        Tensor, "row job operation"
    ]  # when it can begin: after what comes before it in its job, when its machine is free
    free: Float[Tensor, "row job operation"]  # when its machine is free
    after: Float[Tensor, "row job operation"]  # the time of what must follow in its job
    path: Float[Tensor, "row job operation"]  # no schedule ends before that, by this operation and its job
    work: Float[Tensor, "row job operation"]  # all that is left to do on its machine
    machine: Float[Tensor, "row job operation"]  # no schedule ends before that, by its machine
    total: Float[Tensor, "row 1 1"]  # no schedule ends before that


def lower_bounds(state: JSSPState, dtype: torch.dtype) -> Bounds:
    left = torch.arange(state.operations, device=state.device) >= state.scheduled[:, :, None]
    times = state.times[state.instance].to(dtype).where(left, 0)
    machines = state.machines[state.instance].flatten(1)
    starts = state.next_starts()
    now = earliest_start(state, starts)
    free = (state.machine_available - now).clamp(min=0).to(dtype).gather(1, machines).view_as(times)
    begin = _begin(times, free, (starts - now).to(dtype)[:, :, None], left)
    after = times.flip(2).cumsum(2).flip(2) - times
    path = begin + times + after

    def least(values: Tensor) -> Tensor:
        """On each machine, over the operations that are left."""
        table = values.new_full((len(values), state.operations), torch.inf)
        return table.scatter_reduce(1, machines, values.where(left, torch.inf).flatten(1), "amin")

    work = times.new_zeros(len(times), state.operations).scatter_add(1, machines, times.flatten(1))
    machine = (least(begin) + work + least(after)).where(work > 0, 0)
    total = torch.maximum(path.where(left, 0).flatten(1).amax(1), machine.amax(1)).clamp(min=1)[:, None, None]
    work, machine = (each.gather(1, machines).view_as(times) for each in (work, machine))
    return Bounds(begin, free, after, path, work, machine, total)


def earliest_start(state: JSSPState, starts: Num[Tensor, "row job"]) -> Num[Tensor, "row 1"]:
    """When the first of all next operations could begin, of their `next_starts`; that of a finished row means nothing."""
    return starts.masked_fill(~state.unfinished, never(starts)).amin(1, keepdim=True)


def bound_features(state: JSSPState, dtype: torch.dtype) -> Float[Tensor, "row job operation 8"]:
    """As shares of the bound of all: begin, what follows, the machine's work, and how far machine and job are from being critical.

    Then, in units of `_SOON` and at most 1: begin, when the machine is free, and the slack of the job.
    """
    bounds = lower_bounds(state, dtype)
    slack = bounds.total - bounds.path
    shares = torch.stack([bounds.begin, bounds.after, bounds.work, bounds.total - bounds.machine, slack], -1)
    soon = torch.stack([bounds.begin, bounds.free, slack], -1)
    return torch.cat([shares / bounds.total[..., None], soon.clamp(max=_SOON) / _SOON], -1)


def _begin(
    times: Float[Tensor, "row job operation"],
    free: Float[Tensor, "row job operation"],
    start: Float[Tensor, "row job 1"],
    left: Bool[Tensor, "row job operation"],
) -> Float[Tensor, "row job operation"]:
    """begin_l = max(begin_(l-1) + p_(l-1), free_l): less the time of all before it, a running maximum along the job."""
    before = times.cumsum(2) - times
    return torch.maximum(free - before, start).where(left, start).cummax(2).values + before
