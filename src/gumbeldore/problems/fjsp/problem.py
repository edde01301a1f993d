"""The flexible job shop scheduling problem (Brucker and Schlie 1990; Brandimarte 1993), of which the general job shop is a special case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import hash_numbers, mix
from gumbeldore.local_search.flexible import improve_flexible
from gumbeldore.problem import Augmentations, Examples, Problem, ReEncoding, precise
from gumbeldore.problems.fjsp.distributions import Distribution, random_shops
from gumbeldore.problems.scheduling import ShopState, completion, never, occurrence, run

_NONE = -1
"""The time of an operation on a machine that cannot do it, or of one that does not exist."""


@dataclass(frozen=True)
class FJSPState(ShopState):
    """Partial schedules: how many operations of each job are scheduled, and when jobs and machines are available again."""

    per_instance: ClassVar[tuple[str, ...]] = ("times", "counts")

    times: Num[Tensor, "batch job operation machine"]  # int64 or float64: makespans are exact; -1: not on this machine
    counts: Int[Tensor, "batch job"]  # operations of each job
    scheduled: Int[Tensor, "row job"]  # the index of each job's next operation; its count when the job is finished
    available: Num[Tensor, "row job+machine"]  # the earliest start of a job's, a machine's next operation

    @property
    def machines(self) -> int:
        return self.times.shape[3]

    @property
    def unfinished(self) -> Bool[Tensor, "row job"]:
        return self.scheduled < self.counts[self.instance]

    def next_times(self) -> Num[Tensor, "row job machine"]:
        """What each job's next operation takes on each machine; -1 where it cannot run, and all over for finished jobs."""
        size = self.jobs * self.operations
        place = torch.arange(0, size, self.operations, device=self.device) + self.scheduled.clamp(max=self.operations - 1)
        found = self.times.view(-1, self.machines)[place + self.instance[:, None] * size]
        return found.masked_fill(~self.unfinished[:, :, None], _NONE)

    def next_starts(self) -> Num[Tensor, "row job machine"]:
        """When each job's next operation would start on each machine if it were scheduled now."""
        return torch.maximum(self.available[:, : self.jobs, None], self.machine_available[:, None])

    def ready(self) -> Num[Tensor, "row job"]:
        """When each job's next operation can start at the earliest, wherever that is; 0 for finished jobs."""
        starts = self.next_starts()
        return starts.masked_fill(self.next_times() < 0, never(starts)).amin(2).where(self.unfinished, 0)


@dataclass(frozen=True)
class FJSP(Problem[FJSPState]):
    """Choose a machine for every operation, and when it runs, so that the last one ends as early as possible.

    - Instances: jobs of one operation or more, in a fixed order. Each operation can run on at least one machine and takes its own time on
      each. A job may come to a machine never, once or several times. `generate` draws `jobs` jobs on `machines` machines from a
      distribution of the literature; `instances` takes data of any shape.
    - Action: job * M + machine. The job's next operation starts on this machine as soon as both are available.
    - A schedule takes as many actions as there are operations.
    - Objective: minus the makespan.
    """

    jobs: int = 10
    machines: int = 5
    times: Distribution = "sd1"

    def __post_init__(self) -> None:
        require(self.jobs >= 1, f"`jobs` must be at least 1, got {self.jobs}.")
        require(self.machines >= 1, f"`machines` must be at least 1, got {self.machines}.")

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> FJSPState:
        source = generator.device
        uniform = partial(torch.rand, generator=generator, device=source, dtype=precise(source))
        return self._initial(random_shops(self.times, count, self.jobs, self.machines, uniform).to(device))

    def instances(self, times: Num[Tensor, "batch job operation machine"]) -> FJSPState:
        """Initial states for given data: operation l of job i takes `times[:, i, l, k]` on machine k (from 0), -1 where it cannot run.

        Operations beyond a job's last one are -1 on all machines.
        """
        _check_times(times)
        return self._initial(times.to(precise(times.device) if times.is_floating_point() else torch.int64))

    def _initial(self, times: Num[Tensor, "batch job operation machine"]) -> FJSPState:
        count, jobs, _, machines = times.shape
        device = times.device
        return FJSPState(
            instance=torch.arange(count, device=device),
            times=times.contiguous(),
            counts=(times >= 0).any(3).sum(2),
            scheduled=torch.zeros(count, jobs, dtype=torch.int64, device=device),
            available=torch.zeros(count, jobs + machines, dtype=times.dtype, device=device),
        )

    def mask(self, state: FJSPState) -> Bool[Tensor, "row action"]:
        return (state.next_times() >= 0).flatten(1)

    def done(self, state: FJSPState) -> Bool[Tensor, " row"]:
        return ~state.unfinished.any(1)

    def step(self, state: FJSPState, action: Int[Tensor, " row"]) -> FJSPState:
        action = action.where(state.unfinished.any(1), 0)[:, None]
        job, machine = action // state.machines, action % state.machines
        operation = state.scheduled.gather(1, job)
        moving = operation < state.counts[state.instance].gather(1, job)
        time = state.times.take(_places(state, job, operation.clamp(max=state.operations - 1)) + machine)
        resources = torch.cat([job, machine + state.jobs], 1)
        held = state.available.gather(1, resources)
        return replace(
            state,
            scheduled=state.scheduled.scatter(1, job, operation + moving),
            available=state.available.scatter(1, resources, torch.where(moving, completion(held, 1, time), held)),
        )

    def objective(self, state: FJSPState) -> Float[Tensor, " row"]:
        return -state.available.amax(1).to(precise(state.device))

    def horizon(self, state: FJSPState) -> int:
        return int((state.counts[state.instance] - state.scheduled).sum(1).max())

    def examples_after(
        self, state: FJSPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[FJSPState]:
        """The `successor` of an operation is the machine that it runs on."""
        prefix, target = self.prefix(state, actions, steps), actions.gather(1, steps[:, None]).squeeze(1)
        if bool(state.scheduled.any()):
            return Examples(prefix, target)
        return Examples(prefix, target, assignments(state, actions))

    def prefix(self, state: FJSPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"]) -> FJSPState:
        """What `replay` does, several times faster: only the availability times are computed action by action."""
        depth = int(steps.max())
        moving = torch.arange(depth, device=state.device) < steps[:, None]
        action = actions[:, :depth].where(moving, 0)
        job, machine = action // state.machines, action % state.machines
        operation = state.scheduled.gather(1, job) + occurrence(job.where(moving, state.jobs), state.jobs + 1)
        place = (_places(state, job, operation) + machine).where(moving, 0)
        available = run(state.available, torch.stack([job, machine + state.jobs]), state.times.take(place), moving)
        return replace(state, scheduled=state.scheduled.scatter_add(1, job, moving.long()), available=available)

    def local_search(
        self, state: FJSPState, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        """Tabu search, `effort` moves per operation that may move; its schedule in the order in which operations start."""
        require(not bool(state.scheduled.any()), "`polish` needs complete schedules of full instances.")
        return improve_flexible(state.times[state.instance], actions, seeds, effort * max(actions.shape[1] - kept, 0), kept)

    def augmentations(self, state: FJSPState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[FJSPState]:
        """The shop itself, and reversed: every job from its last operation to its first. The tag says which."""
        count = min(count, 2)
        rows = torch.arange(state.row_count, device=state.device).repeat_interleave(count)
        tag = torch.arange(count, device=state.device).repeat(state.row_count)
        return Augmentations(self._turned(state.rows(rows), tag), tag, count)

    def _turned(self, state: FJSPState, tag: Int[Tensor, " row"]) -> FJSPState:
        """Initial states of the shops themselves (tag 0), or reversed."""
        same = state.compact()
        order = torch.arange(same.operations, device=same.device).expand(len(tag), same.jobs, -1)
        backwards = same.counts[:, :, None] - 1 - order
        order = torch.where(tag.bool()[:, None, None] & (backwards >= 0), backwards, order)
        return replace(same, times=same.times.gather(2, order[..., None].expand_as(same.times)))

    def inverse_transform(self, state: FJSPState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        """A schedule of the reversed shop, read backwards, keeps the orders on all machines, and so its longest path. The same the other way."""
        length = (actions >= 0).sum(1, keepdim=True)
        place = torch.arange(actions.shape[1], device=actions.device).expand_as(actions)
        return torch.where(
            tag.bool()[:, None] & (place < length), actions.gather(1, (length - 1 - place).clamp(min=0)), actions
        )

    def reencoded(
        self, state: FJSPState, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]
    ) -> ReEncoding[FJSPState]:
        """The schedule as it is or read backwards, in the order of starts, so that the last actions are the last ones in time."""
        require(not bool(state.scheduled.any()), "`reencoded` needs solutions of initial states.")
        tag = mix(seeds) & 1
        turned = self._turned(state, tag)
        return ReEncoding(turned, tag, _by_start(self, turned, self.inverse_transform(state, tag, actions)))

    def key(self, state: FJSPState) -> Int[Tensor, "row 2"]:
        """Two hashes of what the future depends on: counters, machines, when unfinished jobs are ready, the makespan so far.

        A job's own availability matters only through the starts of its next operation, because machines never become available earlier.
        """
        parts = [state.machine_available, state.ready(), state.available.amax(1, keepdim=True)]
        if state.available.is_floating_point():
            times = torch.cat(parts, 1)
            parts = [mix(times.view(torch.int64 if times.element_size() == 8 else torch.int32).long())]
        return hash_numbers(torch.cat([state.scheduled, *parts], 1))


def _places(state: FJSPState, job: Int[Tensor, "row n"], operation: Int[Tensor, "row n"]) -> Int[Tensor, "row n"]:
    """Where operations stand in `times`: on machine 0."""
    return ((state.instance[:, None] * state.jobs + job) * state.operations + operation) * state.machines


def _by_start(problem: FJSP, state: FJSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
    """The same schedules of initial states, with their operations in the order in which they begin; of equal ones, as they were."""
    starts = []
    for action in actions.unbind(1):
        start = state.next_starts().flatten(1).gather(1, action.clamp(min=0)[:, None])
        starts.append(start.masked_fill(action[:, None] < 0, never(start)))
        state = problem.step(state, action.clamp(min=0))
    return actions.gather(1, torch.cat(starts, 1).argsort(dim=1, stable=True))


def assignments(state: FJSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row operation"]:
    """The machine that each operation (job * O + step) of complete schedules runs on; -1 for those that do not exist."""
    job = torch.div(actions, state.machines, rounding_mode="floor").where(actions >= 0, state.jobs)
    place = job * state.operations + occurrence(job, state.jobs + 1).clamp(max=state.operations - 1)
    found = torch.full((len(actions), (state.jobs + 1) * state.operations), -1, device=state.device)
    found.scatter_(1, place, torch.where(actions >= 0, actions % state.machines, -1))
    return found[:, : state.jobs * state.operations]


def _check_times(times: Num[Tensor, "..."]) -> None:
    """Every job has an operation, none after a gap, and times are at least 0 or exactly -1."""
    require(
        times.dim() == 4 and min(times.shape[1:]) >= 1,
        f"`times` must have the shape (instances, jobs, operations, machines), none of them 0, got {tuple(times.shape)}.",
    )
    wrong = ~(times.isfinite() & ((times >= 0) | (times == _NONE)))
    if bool(wrong.any()):
        instance, job, operation, machine = wrong.nonzero()[0].tolist()
        require(
            False,
            f"`times` must be at least 0 and finite, or -1 where a machine cannot do an operation, but operation {operation} of job {job} of "
            f"instance {instance} takes {times[instance, job, operation, machine].item():g} on machine {machine}.",
        )
    exists = (times >= 0).any(3)
    gaps = ~exists[:, :, 0] | (exists[:, :, 1:] & ~exists[:, :, :-1]).any(2)
    if bool(gaps.any()):
        instance, job = gaps.nonzero()[0].tolist()
        require(False, f"`times` must give each operation a machine, but one of job {job} of instance {instance} has none.")
