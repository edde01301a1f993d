"""A network for permutation flow shops: jobs are items, known by their times and by what would happen if they came next."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool1d

from gumbeldore.networks.set_transformer import Features, SetPolicy
from gumbeldore.problems.pfsp.problem import PFSPState, ends

_SECTIONS = 5
"""Machines are told in so many groups of neighbours, so that one network serves any number of them."""


class PFSPPolicy(SetPolicy):
    """A transformer over the jobs that are left. All features are in units of mean times, so other units of time change nothing."""

    item_features, whole_features = 6 + 3 * _SECTIONS, 2 + 2 * _SECTIONS

    def features(self, state: PFSPState) -> Features:
        dtype = self.logit.weight.dtype
        mean = state.times.to(dtype).mean((1, 2)).clamp(min=1e-9)[state.instance]
        times = state.times[state.instance].to(dtype) / mean[:, None, None]
        left = ~state.placed
        free = state.free.to(dtype) / mean[:, None]
        free = (free - free[:, :1])[:, None]
        machines = times.shape[2]
        after = ends(free.expand_as(times), times)
        idle = after - times - free
        work = torch.where(left[..., None], times, 0).sum(1, keepdim=True)
        tail = times.flip(2).cumsum(2).flip(2) - times  # of a job behind each machine
        shortest = tail.masked_fill(~left[..., None], torch.inf).amin(1, keepdim=True)
        shortest = torch.where(left.any(1)[:, None, None], shortest, 0)
        now = (free + work + shortest).amax(2)
        then = (after + work - times + shortest).amax(2)
        place = torch.linspace(-1, 1, machines, device=times.device, dtype=dtype)
        early = torch.linspace(
            2, 0, machines, device=times.device, dtype=dtype
        )  # idle time weighs more where more machines follow
        root = machines**0.5
        single = [
            (times.sum(2) - machines) / root,
            (times * place).sum(2) / root,
            idle.sum(2) / root,
            (idle * early).sum(2) / root,
            (after - free)[..., -1] / root,
            then - now,
        ]
        items = torch.cat([torch.stack(single, 2), _sections(times) - 1, _sections(idle), _sections(after - free)], 2)
        share = left.to(dtype).mean(1)
        whole = torch.cat(
            [
                torch.stack([share, 1 / left.sum(1).clamp(min=1)], 1),
                *(_sections(each)[:, 0] for each in (free / root, (free + work + shortest - now[..., None]) / root)),
            ],
            1,
        )
        return Features(items.clamp(-20, 20), left, whole.clamp(-20, 20))


def _sections(values: Float[Tensor, "row item machine"]) -> Float[Tensor, "row item section"]:
    """Means over neighbouring machines."""
    return adaptive_avg_pool1d(values, _SECTIONS)
