"""The permutation flow shop scheduling problem (Johnson 1954)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import hash_numbers, mix
from gumbeldore.local_search.permutations import improve_permutations
from gumbeldore.problem import Augmentations, Examples, Problem, ReEncoding, State, precise


@dataclass(frozen=True)
class PFSPState(State):
    """Beginnings of orders: which jobs are in it, and when each machine becomes free."""

    per_instance: ClassVar[tuple[str, ...]] = ("times",)

    times: Num[Tensor, "batch job machine"]  # int64 or float64: makespans are exact
    placed: Bool[Tensor, "row job"]
    free: Num[Tensor, "row machine"]

    @property
    def jobs(self) -> int:
        return self.times.shape[1]


@dataclass(frozen=True)
class PFSP(Problem[PFSPState]):
    """Find the order of jobs, the same on all machines, whose last job ends as early as possible.

    - Instances: `jobs` jobs, each of which visits machine 0, 1, ..., `machines` - 1. Times are uniform in 1 .. 99 (Taillard 1993); `instances`
      takes data of any size.
    - Action: the next job. An order of J jobs takes J actions.
    - Objective: minus the makespan.
    """

    jobs: int = 20
    machines: int = 5

    def __post_init__(self) -> None:
        require(self.jobs >= 1, f"`jobs` must be at least 1, got {self.jobs}.")
        require(self.machines >= 1, f"`machines` must be at least 1, got {self.machines}.")

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> PFSPState:
        shape = count, self.jobs, self.machines
        return self._initial(torch.randint(1, 100, shape, generator=generator, device=generator.device).to(device))

    def instances(self, times: Num[Tensor, "batch job machine"]) -> PFSPState:
        """Initial states for given data: job i takes `times[:, i, k]` on machine k."""
        require(
            times.dim() == 3 and min(times.shape[1:]) >= 1,
            f"`times` must have the shape (instances, jobs >= 1, machines >= 1), got {tuple(times.shape)}.",
        )
        wrong = ~(times.isfinite() & (times >= 0))
        if bool(wrong.any()):
            instance, job, machine = wrong.nonzero()[0].tolist()
            value = times[instance, job, machine].item()
            require(
                False,
                f"`times` must be at least 0 and finite, but job {job} of instance {instance} takes {value:g} on machine {machine}.",
            )
        return self._initial(times.to(precise(times.device) if times.is_floating_point() else torch.int64))

    def _initial(self, times: Num[Tensor, "batch job machine"]) -> PFSPState:
        count, jobs, machines = times.shape
        placed = torch.zeros(count, jobs, dtype=torch.bool, device=times.device)
        return PFSPState(torch.arange(count, device=times.device), times, placed, times.new_zeros(count, machines))

    def mask(self, state: PFSPState) -> Bool[Tensor, "row job"]:
        return ~state.placed

    def done(self, state: PFSPState) -> Bool[Tensor, " row"]:
        return state.placed.all(1)

    def step(self, state: PFSPState, action: Int[Tensor, " row"]) -> PFSPState:
        done = self.done(state)
        action = action.where(~done, 0)
        free = ends(state.free, state.times[state.instance, action]).where(~done[:, None], state.free)
        return replace(state, placed=state.placed.scatter(1, action[:, None], True), free=free)

    def objective(self, state: PFSPState) -> Float[Tensor, " row"]:
        return -state.free[:, -1].to(precise(state.device))

    def horizon(self, state: PFSPState) -> int:
        return int((~state.placed).sum(1).max())

    def examples(
        self, state: PFSPState, actions: Int[Tensor, "row depth"], *, generator: torch.Generator
    ) -> Examples[PFSPState]:
        """A random prefix of each order. The last job is never the target: there is only one choice left."""
        choices = ((actions >= 0).sum(1) - 1).clamp(min=1)
        steps = (torch.rand(len(choices), generator=generator, dtype=torch.float64).to(choices.device) * choices).long()
        return self.examples_after(state, actions, steps, generator=generator)

    def local_search(
        self, state: PFSPState, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        """Iterated greedy, `effort` destructions for each job that may move."""
        require(not bool(state.placed.any()), "`polish` needs complete orders of full instances.")
        return improve_permutations(state.times[state.instance], actions, seeds, effort * (actions.shape[1] - kept), kept)

    def augmentations(self, state: PFSPState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[PFSPState]:
        """The shop itself, and reversed: jobs visit the last machine first. The tag says which."""
        count = min(count, 2)
        rows = torch.arange(state.row_count, device=state.device).repeat_interleave(count)
        tag = torch.arange(count, device=state.device).repeat(state.row_count)
        return Augmentations(self._turned(state.rows(rows), tag), tag, count)

    def _turned(self, state: PFSPState, tag: Int[Tensor, " row"]) -> PFSPState:
        same = state.compact()
        return replace(same, times=torch.where(tag.bool()[:, None, None], same.times.flip(2), same.times))

    def inverse_transform(self, state: PFSPState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        """An order of the reversed shop, read backwards, has the same makespan. The same the other way."""
        return torch.where(tag.bool()[:, None], actions.flip(1), actions)

    def reencoded(
        self, state: PFSPState, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]
    ) -> ReEncoding[PFSPState]:
        """The order as it is, or read backwards."""
        tag = mix(seeds) & 1
        return ReEncoding(self._turned(state, tag), tag, self.inverse_transform(state, tag, actions))

    def key(self, state: PFSPState) -> Int[Tensor, "row 2"]:
        """Two hashes of what the future depends on: the jobs that are left, and when machines become free."""
        free = state.free
        if free.is_floating_point():
            free = mix(free.view(torch.int64 if free.element_size() == 8 else torch.int32).long())
        return hash_numbers(torch.cat([state.placed.long(), free], 1))


def ends(free: Num[Tensor, "*shape machine"], times: Num[Tensor, "*shape machine"]) -> Num[Tensor, "*shape machine"]:
    """When a job ends on each machine: as soon as the machine is free and the job has left the one before.

    C_k = max(C_(k-1), F_k) + p_k: less the sum of times up to k, a running maximum along the machines.
    """
    total = times.cumsum(-1)
    return (free - (total - times)).cummax(-1).values + total
