"""What a network sees of operations: when they can begin and end, what must follow them, and how critical jobs and machines are.

Everything is a share, of a lower bound on what is left or of a few mean operations, so that a network sees the same of an instance in other units.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gumbeldore.problems.fjsp.problem import FJSPState
from gumbeldore.problems.scheduling import never

FEATURES = 15
_SOON = 6
"""What is further away than so many mean operations counts as that far, where a feature is about the near future."""

Values = Float[Tensor, "row job operation machine"]


def features(state: FJSPState, dtype: torch.dtype) -> Float[Tensor, "row job operation machine 15"]:
    """Of every unscheduled operation on every machine that can do it; what is said of all others means nothing."""
    left = torch.arange(state.operations, device=state.device) >= state.scheduled[:, :, None]
    times = state.times[state.instance].to(dtype)
    able = (times >= 0) & left[..., None]
    some = able.any(3)
    shortest = times.masked_fill(~able, torch.inf).amin(3).where(some, 0)
    alternatives = able.sum(3).clamp(min=1).to(dtype)[..., None]
    ready, now = _ready(state, dtype)
    free = (state.machine_available.to(dtype) - now).clamp(min=0)[:, None, None]
    arrival = _arrivals(times.masked_fill(~able, torch.inf), free, ready, some)[..., None]
    begin = torch.maximum(arrival, free)
    end = begin + times
    soonest = end.masked_fill(~able, torch.inf).amin(3, keepdim=True).masked_fill(~some[..., None], 0)
    after = (shortest.flip(2).cumsum(2).flip(2) - shortest)[..., None]
    path = end + after
    share = torch.where(able, times, 0) / alternatives
    work = free + share.sum((1, 2), keepdim=True)
    total = _total(soonest + after, free, shortest)
    unit = _SOON * _mean(state, dtype)
    shares = [begin, times, after, work, work.mean(3, keepdim=True), (total - path), (total - work), arrival]
    soon = [begin, times, end - soonest, begin - arrival, begin - free, total - path]
    values = [(value / total).expand_as(times) for value in shares]
    values += [(value / unit).clamp(-1, 1).expand_as(times) for value in soon]
    return torch.stack([*values, (1 / alternatives).expand_as(times)], -1)


def _ready(state: FJSPState, dtype: torch.dtype) -> tuple[Float[Tensor, "row job"], Float[Tensor, "row 1"]]:
    """When jobs can go on, from now on, which is when the first of them can; and when now is."""
    ready = state.ready()
    now = (
        ready.masked_fill(~state.unfinished, never(ready))
        .amin(1, keepdim=True)
        .masked_fill(~state.unfinished.any(1, keepdim=True), 0)
    )
    return (ready - now).to(dtype), now.to(dtype)


def _arrivals(times: Values, free: Tensor, ready: Float[Tensor, "row job"], some: Tensor) -> Float[Tensor, "row job operation"]:
    """When each operation can begin after those before it in its job, each on the machine where it ends first."""
    at, found = ready, []
    for step in range(times.shape[2]):
        found.append(at)
        end = (torch.maximum(at[..., None], free[:, 0]) + times[:, :, step]).amin(2)
        at = torch.where(some[:, :, step], end, at)
    return torch.stack(found, 2)


def _total(path: Tensor, free: Tensor, shortest: Float[Tensor, "row job operation"]) -> Float[Tensor, "row 1 1 1"]:
    """No schedule ends before that: by the longest job, and by the mean work of a machine."""
    work = free.sum(3, keepdim=True) + shortest.sum((1, 2))[:, None, None, None]
    return torch.maximum(path.amax((1, 2), keepdim=True), work / free.shape[3]).clamp(min=1e-9)


def _mean(state: FJSPState, dtype: torch.dtype) -> Float[Tensor, "row 1 1 1"]:
    """The mean time of all operations of an instance."""
    able = state.times >= 0
    mean = state.times.where(able, 0).sum((1, 2, 3)).to(dtype) / able.sum((1, 2, 3)).clamp(min=1)
    return mean.clamp(min=1e-9)[state.instance][:, None, None, None]
