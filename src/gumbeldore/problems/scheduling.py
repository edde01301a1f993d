"""Times of jobs and machines: what all scheduling problems compute."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int, Num
from torch import Tensor

from gumbeldore.problem import State


class ShopState(State):
    """What states of all job shops have: times by job and operation, and when jobs and machines are available."""

    times: Num[Tensor, "batch job operation ..."]
    available: Num[Tensor, "row job+machine"]  # A_job, then A_mach: the earliest start of a job's, a machine's next operation

    @property
    def jobs(self) -> int:
        return self.times.shape[1]

    @property
    def operations(self) -> int:
        """Of the longest job."""
        return self.times.shape[2]

    @property
    def job_available(self) -> Num[Tensor, "row job"]:
        return self.available[:, : self.jobs]

    @property
    def machine_available(self) -> Num[Tensor, "row machine"]:
        return self.available[:, self.jobs :]


def completion(available: Num[Tensor, "..."], axis: int, time: Num[Tensor, "..."]) -> Num[Tensor, "..."]:
    """z = max(A_job, A_mach) + p, with the two availability times along `axis`: when the next operation ends."""
    return available.amax(axis, keepdim=True) + time


def never(times: Num[Tensor, "..."]) -> float:
    """A time later than all others, for minima over some of them."""
    return torch.inf if times.is_floating_point() else torch.iinfo(times.dtype).max


def occurrence(values: Int[Tensor, "row depth"], kinds: int) -> Int[Tensor, "row depth"]:
    """How often each value (in 0 .. kinds - 1) occurs before its place in its row."""
    ordered, order = values.sort(dim=1, stable=True)
    counts = torch.zeros(len(values), kinds, dtype=torch.int64, device=values.device)
    counts.scatter_add_(1, values, torch.ones_like(values))
    first = (counts.cumsum(1) - counts).gather(1, ordered)
    return torch.empty_like(values).scatter_(1, order, torch.arange(values.shape[1], device=values.device) - first)


def run(
    available: Num[Tensor, "row resource"],
    used: Int[Tensor, "kind row depth"],
    times: Num[Tensor, "row depth"],
    moving: Bool[Tensor, "row depth"],
) -> Num[Tensor, "row resource"]:
    """When jobs and machines are available after some operations in turn: each begins when all that it uses is, and holds it until its end.

    Where a row is not `moving` nothing happens.
    """
    rows, columns = len(available), available.shape[1] + 1  # one more, which operations that do not happen use
    resources = used.where(moving, columns - 1) + torch.arange(0, rows * columns, columns, device=used.device)[:, None]
    state = torch.nn.functional.pad(available, (0, 1)).flatten()
    for used_now, time in zip(resources.permute(2, 0, 1).contiguous(), times.t().contiguous(), strict=True):
        end = completion(state.take(used_now), 0, time)
        state.put_(used_now, end.expand_as(used_now))
    return state.view(rows, columns)[:, :-1].contiguous()
