"""The job shop scheduling problem (paper, appendix "Job Shop Scheduling Problem")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import hash_numbers, mix
from gumbeldore.local_search.improve import improve_schedules
from gumbeldore.problem import Augmentations, Examples, Problem, ReEncoding, precise
from gumbeldore.problems.scheduling import ShopState, completion, occurrence, run


@dataclass(frozen=True)
class JSSPState(ShopState):
    """Partial schedules: how many operations of each job are scheduled, and when jobs and machines are available again."""

    per_instance: ClassVar[tuple[str, ...]] = ("times", "machines")

    times: Num[Tensor, "batch job operation"]  # int64 or float64: makespans are exact
    machines: Int[Tensor, "batch job operation"]  # from 0
    scheduled: Int[Tensor, "row job"]  # the index of each job's next operation; M when the job is finished
    available: Num[Tensor, "row job+operation"]  # A_job, then A_mach: the earliest start of a job's, a machine's next operation

    @property
    def unfinished(self) -> Bool[Tensor, "row job"]:
        return self.scheduled < self.operations

    def next_places(self) -> Int[Tensor, "row job"]:
        """Where each job's next operation stands in `times` and `machines`. Meaningless for finished jobs."""
        size = self.jobs * self.operations
        job = torch.arange(0, size, self.operations, device=self.device)
        operation = self.scheduled.clamp(max=self.operations - 1)
        return operation.add_(job).add_(self.instance[:, None], alpha=size)

    def next_starts(self) -> Num[Tensor, "row job"]:
        """r_i: when each job's next operation would start if it were scheduled now. Meaningless for finished jobs."""
        return torch.maximum(self.job_available, self.machine_available.gather(1, self.machines.take(self.next_places())))


@dataclass(frozen=True)
class JSSP(Problem[JSSPState]):
    """Schedule the operations of all jobs on their machines so that the last one ends as early as possible.

    - Instances: `jobs` jobs, each visiting each of `machines` machines exactly once. Processing times are uniform in
      1 .. 99 and machine orders are uniform permutations (Taillard 1993); `instances` takes data of any size.
    - Action: a job. Its next operation starts as soon as the job and the machine are available. Unfinished jobs are allowed.
    - A schedule of J jobs on M machines takes J * M actions.
    - Objective: minus the makespan.
    """

    jobs: int = 15
    machines: int = 15

    def __post_init__(self) -> None:
        require(self.jobs >= 1, f"`jobs` must be at least 1, got {self.jobs}.")
        require(self.machines >= 1, f"`machines` must be at least 1, got {self.machines}.")

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> JSSPState:
        shape, source = (count, self.jobs, self.machines), generator.device
        times = torch.randint(1, 100, shape, generator=generator, device=source)
        machines = torch.rand(shape, generator=generator, device=source, dtype=precise(source)).argsort(2)
        return self._initial(times.to(device), machines.to(device))

    def instances(self, times: Num[Tensor, "batch job operation"], machines: Int[Tensor, "batch job operation"]) -> JSSPState:
        """Initial states for given data: operation l of job i takes `times[:, i, l]` on machine `machines[:, i, l]` (from 0)."""
        require(
            times.dim() == 3 and min(times.shape[1:]) >= 1,
            f"`times` must have the shape (instances, jobs >= 1, machines >= 1), got {tuple(times.shape)}.",
        )
        require(
            machines.shape == times.shape,
            f"`machines` must have the shape of `times`, {tuple(times.shape)}, got {tuple(machines.shape)}.",
        )
        require(
            not machines.is_floating_point(),
            f"`machines` must hold integers, got {machines.dtype}. Convert them with `machines.long()`.",
        )
        _check_times(times)
        _check_routes(machines)
        exact = precise(times.device) if times.is_floating_point() else torch.int64
        return self._initial(times.to(exact), machines.long())

    def _initial(self, times: Tensor, machines: Tensor) -> JSSPState:
        count, jobs, operations = times.shape
        device = times.device
        return JSSPState(
            instance=torch.arange(count, device=device),
            times=times,
            machines=machines,
            scheduled=torch.zeros(count, jobs, dtype=torch.int64, device=device),
            available=torch.zeros(count, jobs + operations, dtype=times.dtype, device=device),
        )

    def mask(self, state: JSSPState) -> Bool[Tensor, "row job"]:
        return state.unfinished

    def done(self, state: JSSPState) -> Bool[Tensor, " row"]:
        return ~state.unfinished.any(1)

    def step(self, state: JSSPState, action: Int[Tensor, " row"]) -> JSSPState:
        job = action.where(state.unfinished.any(1), 0)[:, None]
        operation = state.scheduled.gather(1, job)
        moving = operation < state.operations
        place = torch.add(job, state.instance[:, None], alpha=state.jobs).mul_(state.operations)
        place.add_(operation.clamp(max=state.operations - 1))
        resources = torch.cat([job, state.machines.take(place) + state.jobs], 1)
        held = state.available.gather(1, resources)
        end = torch.where(moving, completion(held, 1, state.times.take(place)), held)
        return replace(
            state,
            scheduled=state.scheduled.scatter(1, job, operation + moving),
            available=state.available.scatter(1, resources, end),
        )

    def objective(self, state: JSSPState) -> Float[Tensor, " row"]:
        return -state.available.amax(1).to(precise(state.device))

    def horizon(self, state: JSSPState) -> int:
        return int((state.operations - state.scheduled).sum(1).max())

    def examples(
        self, state: JSSPState, actions: Int[Tensor, "row depth"], *, generator: torch.Generator
    ) -> Examples[JSSPState]:
        """A random prefix of each schedule: its first q - 1 actions, q uniform in 1 .. L - 1 for a schedule of L actions.

        The last action is never the target: there is only one choice left. An operation's successor is the next one on its machine.
        """
        choices = ((actions >= 0).sum(1) - 1).clamp(min=1)
        steps = (torch.rand(len(choices), generator=generator, dtype=torch.float64).to(choices.device) * choices).long()
        return self.examples_after(state, actions, steps, generator=generator)

    def examples_after(
        self, state: JSSPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[JSSPState]:
        prefix, target = self.prefix(state, actions, steps), actions.gather(1, steps[:, None]).squeeze(1)
        if actions.shape[1] < state.jobs * state.operations or bool(state.scheduled.any()):
            return Examples(prefix, target)
        return Examples(prefix, target, machine_successors(state, actions))

    def prefix(self, state: JSSPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"]) -> JSSPState:
        """What `replay` does, several times faster: only the availability times are computed action by action."""
        depth = int(steps.max())
        moving = torch.arange(depth, device=state.device) < steps[:, None]
        job = actions[:, :depth].where(moving, 0)
        scheduled = state.scheduled.scatter_add(1, job, moving.long())
        operation = state.scheduled.gather(1, job) + occurrence(job, state.jobs)
        place = ((state.instance[:, None] * state.jobs + job) * state.operations + operation).where(moving, 0)
        used = torch.stack([job, state.machines.take(place) + state.jobs])
        available = run(state.available, used, state.times.take(place), moving)
        return replace(state, scheduled=scheduled, available=available)

    def local_search(
        self, state: JSSPState, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        """Tabu search, `effort` moves per operation that may move. Its schedule is made active, and of all sequences of actions that lead to it, it
        returns the one of `active.py`: one target instead of many that are equally good."""
        require(
            actions.shape[1] == state.jobs * state.operations and not bool(state.scheduled.any()),
            "`polish` needs complete schedules of full instances.",
        )
        times, machines = state.times[state.instance], state.machines[state.instance]
        return improve_schedules(times, machines, actions, seeds, effort * (actions.shape[1] - kept), kept)

    def augmentations(self, state: JSSPState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[JSSPState]:
        """The shop itself, and reversed: every job from its last operation to its first. The tag says which."""
        count = min(count, 2)
        rows = torch.arange(state.row_count, device=state.device).repeat_interleave(count)
        tag = torch.arange(count, device=state.device).repeat(state.row_count)
        return Augmentations(self._turned(state.rows(rows), tag), tag, count)

    def _turned(self, state: JSSPState, tag: Int[Tensor, " row"]) -> JSSPState:
        """Initial states of the shops themselves (tag 0), or reversed."""
        same, backwards = state.compact(), tag.bool()[:, None, None]
        times, machines = (torch.where(backwards, each.flip(2), each) for each in (same.times, same.machines))
        return replace(same, times=times, machines=machines)

    def inverse_transform(self, state: JSSPState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        """A schedule of the reversed shop, read backwards, keeps the orders on all machines, and so its longest path. The same the other way."""
        return torch.where(tag.bool()[:, None], actions.flip(1), actions)

    def reencoded(
        self, state: JSSPState, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]
    ) -> ReEncoding[JSSPState]:
        """The schedule as it is or read backwards, in the order of starts, so that the last actions are the last ones in time."""
        require(not bool(state.scheduled.any()), "`reencoded` needs solutions of initial states.")
        tag = mix(seeds) & 1
        turned = self._turned(state, tag)
        return ReEncoding(turned, tag, _by_start(self, turned, self.inverse_transform(state, tag, actions)))

    def key(self, state: JSSPState) -> Int[Tensor, "row 2"]:
        """Two hashes of what the future depends on: counters, machines, unfinished jobs' next starts, the makespan so far.

        A job's own availability matters only through its next start r_i, because machines never become available earlier.
        """
        parts = [state.machine_available, state.next_starts().where(state.unfinished, 0), state.available.amax(1, keepdim=True)]
        if state.available.is_floating_point():
            times = torch.cat(parts, 1)
            parts = [mix(times.view(torch.int64 if times.element_size() == 8 else torch.int32).long())]
        return hash_numbers(torch.cat([state.scheduled, *parts], 1))


def _by_start(problem: JSSP, state: JSSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
    """The same schedules of initial states, with their operations in the order in which they begin; of equal ones, as they were."""
    starts = []
    for job in actions.unbind(1):
        starts.append(state.next_starts().gather(1, job[:, None]))
        state = problem.step(state, job)
    return actions.gather(1, torch.cat(starts, 1).argsort(dim=1, stable=True))


def machine_successors(state: JSSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row operation"]:
    """The operation that follows each one (job * M + step) on its machine in complete schedules, -1 for the last ones."""
    operation = actions * state.operations + occurrence(actions, state.jobs)
    machine = state.machines[state.instance].flatten(1).gather(1, operation)
    line = operation.gather(1, machine.argsort(dim=1, stable=True)).view(len(actions), state.operations, state.jobs)
    following = torch.nn.functional.pad(line[..., 1:], (0, 1), value=-1)
    return torch.empty_like(operation).scatter_(1, line.flatten(1), following.flatten(1))


def _check_times(times: Num[Tensor, "batch job operation"]) -> None:
    """An operation may take no time, as one of the published instance orb07 does."""
    wrong = ~(times.isfinite() & (times >= 0))
    if bool(wrong.any()):
        instance, job, operation = wrong.nonzero()[0].tolist()
        require(
            False,
            f"`times` must be at least 0 and finite, but job {job} of instance {instance} has an operation ({operation}) of time "
            f"{times[instance, job, operation].item():g}.",
        )


def _check_routes(machines: Int[Tensor, "batch job operation"]) -> None:
    """Every job must visit every machine exactly once."""
    count = machines.shape[2]
    wrong = (machines.sort(2).values != torch.arange(count, device=machines.device)).any(2)
    if not bool(wrong.any()):
        return
    instance, job = wrong.nonzero()[0].tolist()
    route = machines[instance, job].tolist()
    outside = [machine for machine in route if not 0 <= machine < count]
    if outside:
        fault = f"machine {outside[0]}, but {count} machines are numbered 0 .. {count - 1}"
    else:
        twice = next(machine for machine in route if route.count(machine) > 1)
        missing = next(machine for machine in range(count) if machine not in route)
        fault = f"machine {twice} more than once and machine {missing} never"
    require(
        False,
        f"`machines` must list each machine exactly once for each job, but job {job} of instance {instance} visits {fault}. "
        f"Recirculating jobs and jobs that skip machines are not supported.",
    )
