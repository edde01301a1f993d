"""A problem of your own on the command line: the permutation flow shop as a kit, in one file.

gumbeldore check examples/flow_shop.py:KIT
gumbeldore train examples/flow_shop.py:KIT --folder runs/flow-shop
gumbeldore solve examples/flow_shop.py:KIT --policy runs/flow-shop/policy.safetensors --count 5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from gumbeldore import Problem, State
from gumbeldore.kits import (
    Architecture,
    Features,
    Kit,
    SetPolicy,
    SetSize,
    SolutionFormat,
    Verdict,
    colours,
    permutation_fault,
    saved_figure,
)


@dataclass(frozen=True)
class FlowShopState(State):
    """Which jobs are done, in the same order on all machines, and when each machine becomes free."""

    per_instance: ClassVar[tuple[str, ...]] = ("times",)

    times: Tensor  # batch job machine
    done: Tensor  # row job
    free: Tensor  # row machine


@dataclass(frozen=True)
class FlowShop(Problem[FlowShopState]):
    """Find the order of jobs, each of which visits machine 0, 1, 2, ..., with the earliest end. Action: the next job."""

    jobs: int = 20
    machines: int = 5

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> FlowShopState:
        times = torch.randint(1, 100, (count, self.jobs, self.machines), generator=generator).double().to(device)
        done = torch.zeros(count, self.jobs, dtype=torch.bool, device=device)
        return FlowShopState(torch.arange(count, device=device), times, done, times.new_zeros(count, self.machines))

    def mask(self, state: FlowShopState) -> Tensor:
        return ~state.done

    def done(self, state: FlowShopState) -> Tensor:
        return state.done.all(1)

    def step(self, state: FlowShopState, action: Tensor) -> FlowShopState:
        free = ends(state.free, state.times[state.instance, action]).where(~self.done(state)[:, None], state.free)
        return replace(state, done=state.done.scatter(1, action[:, None], True), free=free)

    def objective(self, state: FlowShopState) -> Tensor:
        return -state.free[:, -1]

    def horizon(self, state: FlowShopState) -> int:
        return int((~state.done).sum(1).max())


def ends(free: Tensor, times: Tensor) -> Tensor:
    """When a job ends on each machine, if machines are free from then on and it takes these times (... machine)."""
    result = [free[..., 0] + times[..., 0]]
    for machine in range(1, free.shape[-1]):
        result.append(torch.maximum(result[-1], free[..., machine]) + times[..., machine])
    return torch.stack(result, -1)


class FlowShopPolicy(SetPolicy):
    """A job by its work, where it lies, and what would happen if it came next. No network code: only features."""

    item_features, whole_features = 6, 2

    def features(self, state: FlowShopState) -> Features:
        times, free = state.times[state.instance], state.free[:, None]
        after = ends(free.expand_as(times), times) - free[..., -1:]
        place = torch.linspace(-1, 1, times.shape[2], device=times.device)
        idle = (after[..., 1:] - times[..., 1:] - (free - free[..., -1:])[..., 1:]).sum(2)
        values = [times.sum(2), (times * place).sum(2), times[..., 0], times[..., -1], after[..., -1], idle]
        whole = torch.stack([(free[:, 0, -1] - free[:, 0, 0]) / (100 * times.shape[2]), state.done.double().mean(1)], 1)
        return Features(torch.stack(values, -1) / (100 * times.shape[2]), ~state.done, whole)


def schedule(times: Any, order: Sequence[int]) -> list[tuple[int, int, float, float]]:
    """Job, machine, start and end of every operation, computed without the problem's code."""
    free, rows = [0.0] * times.shape[1], []
    for job in order:
        for machine, time in enumerate(times[job].tolist()):
            start = max(free[machine], rows[-1][3] if machine else 0.0)
            free[machine] = start + time
            rows.append((job, machine, start, free[machine]))
    return rows


def verify(instance: Any, actions: Sequence[int]) -> Verdict:
    if fault := permutation_fault(actions, len(instance["times"]), "job", "jobs"):
        return Verdict.infeasible(fault)
    return Verdict(True, -max(end for *_, end in schedule(instance["times"], actions)))


def draw(path: Any, instance: Any, actions: Sequence[int], title: str) -> None:
    with saved_figure(path, size=(9, 3)) as axes:
        for job, machine, start, end in schedule(instance["times"], actions):
            colour = colours(len(actions))[job]
            axes.broken_barh([(start, end - start)], (machine - 0.4, 0.8), color=colour, edgecolor="white")
        axes.set(title=title, xlabel="time", ylabel="machine", yticks=range(instance["times"].shape[1]))


KIT = Kit(
    "flowshop",
    "permutation flow shop",
    problem=FlowShop(),
    architectures={"set": Architecture(FlowShopPolicy, SetSize())},
    cost="makespan",
    solution_format=SolutionFormat(verify, lambda instance, actions: {"order": list(actions)}, draw, "schedule.png"),
)
