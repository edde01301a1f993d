"""Solving instances: files, arrays, points.

import gumbeldore
result = gumbeldore.solve("berlin52.tsp")
print(result.cost, result.gap, result.solution.tour)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from gumbeldore.errors import SettingsError, require
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.registry import kit_at, kit_named
from gumbeldore.policy import Network, Policy
from gumbeldore.search.samplers import Sampler
from gumbeldore.solving.display import Display
from gumbeldore.solving.effort import MEMORY, Effort, PartName
from gumbeldore.solving.found import Found, Improvement, Share
from gumbeldore.solving.inputs import Source, begun, jobs_of, matrix_job
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.policies import as_policy, policies_for, policy_for, unsolvable
from gumbeldore.solving.results import Result, Solution
from gumbeldore.solving.running import Better, Failure, Solving

__all__ = [
    "Better",
    "Effort",
    "Failure",
    "Found",
    "Improvement",
    "Job",
    "Result",
    "Share",
    "Solution",
    "Solving",
    "solve",
    "solve_all",
]

AnyPolicy = str | Path | Policy[Any] | Callable[[Any], torch.Tensor] | None


def solve(
    source: Source | None = None,
    *,
    matrix: Any = None,
    kit: Kit | str | None = None,
    policy: AnyPolicy = None,
    sampler: Sampler | str = "balanced",
    time_limit: float | None = None,
    sequences: int | None = None,
    parts: Sequence[PartName] | None = None,
    nearest: int | None = None,
    polish: float | None = None,
    start: str | Path | Sequence[int] | None = None,
    seed: int = 0,
    memory: int = MEMORY,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> Result:
    """Solves one instance.

    - `source`: a file; the places of cities (a list of pairs, an array, a tensor); the arrays of an instance by name, or an `Instance`,
      with its `kit`.
    - `matrix`: instead of a source, the distances between cities, from the row's to the column's.
    - `start`: a solution to go on from, its actions or a file; what comes back is never worse.
    - The others are those of `solve_all`.
    """
    require((source is None) != (matrix is None), "Give one of `source` and `matrix`.")
    jobs = [matrix_job(matrix)] if source is None else jobs_of(source, _kit(kit))
    require(len(jobs) == 1, f"{_shown(source)} holds {len(jobs)} instances: use `solve_all`, which returns a list.")
    effort = Effort(sampler, time_limit, sequences, parts, nearest, polish, seed, memory)
    jobs = jobs if start is None else [begun(jobs[0], start)]
    return solve_jobs(jobs, effort, policy=policy, device=device, progress=progress)[0]


def solve_all(
    sources: Iterable[Source],
    *,
    kit: Kit | str | None = None,
    policy: AnyPolicy = None,
    sampler: Sampler | str = "balanced",
    time_limit: float | None = None,
    sequences: int | None = None,
    parts: Sequence[PartName] | None = None,
    nearest: int | None = None,
    polish: float | None = None,
    seed: int | Sequence[int] = 0,
    memory: int = MEMORY,
    workers: int = 0,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> list[Result]:
    """Solves all instances of files, folders and arrays, in order. The first thing that goes wrong is raised.

    - `policy`: a file of weights, the name of one that ships, a network, or a function of a state; None: the one that ships for the problem.
    - `kit`: of the problem, or its name or place, where it is not to be guessed.
    - `sampler`: a preset (fast, balanced, best), or a sampler or its name (`gd:32x4`), which then works alone.
    - `time_limit`: seconds per instance; `sequences`: how many the policy samples, alone.
    - `parts`: who works on an instance, of "policy", "local-search", "reconstruction"; None: all that there are.
    - `nearest`: a policy's routes go on only to so many nearest nodes; 0: to all.
    - `polish`: seconds for PyVRP or CP-SAT, afterwards.
    - `seed`: one, or one for each instance.
    - `workers`: processes; a script that uses them needs `if __name__ == "__main__":`.
    - `progress`: shows a bar and better solutions as they come, in a terminal or a notebook.

    For what happens meanwhile, or to keep the best after an interrupt, iterate over a `Solving` yourself.
    """
    known = _kit(kit)
    jobs = [job for source in sources for job in jobs_of(source, known)]
    effort = Effort(sampler, time_limit, sequences, parts, nearest, polish, seed, memory)
    return solve_jobs(jobs, effort, policy=policy, workers=workers, device=device, progress=progress)


def solve_jobs(
    jobs: Sequence[Job],
    effort: Effort,
    *,
    policy: AnyPolicy = None,
    workers: int = 0,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> list[Result]:
    """Solves instances that have been read."""

    def find(kit: Kit) -> Policy[Any]:
        found = policy_for(kit, policy) if policy is None or isinstance(policy, str | Path) else as_policy(policy)
        return found.to(device) if isinstance(found, Network) else found

    policies, faults = policies_for(jobs, effort, find)
    for _, fault in unsolvable(jobs, effort, faults, named=policy is not None):
        raise SettingsError(fault)
    solving = Solving(jobs, policies, effort, workers=workers)
    with Display(solving) if progress else nullcontext() as display:
        for event in solving:
            if isinstance(event, Failure):
                raise SettingsError(event.message)
            if display is not None:
                display.show(event)
    return solving.results()


def _kit(kit: Kit | str | None) -> Kit | None:
    """The kit, also by its name or by where it stands."""
    if isinstance(kit, str):
        return kit_at(kit) if ":" in kit else kit_named(kit)
    return kit


def _shown(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else "This"
