"""Solving instances of files with trained policies.

import gumbeldore
result = gumbeldore.solve("berlin52.tsp")
print(result.cost, result.gap, result.tour)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from gumbeldore.errors import SettingsError, require
from gumbeldore.kits.kit import Kit
from gumbeldore.policy import Network
from gumbeldore.solving.files import files_in, read_jobs
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.policies import policy_for
from gumbeldore.solving.results import Result, Solution, Stage
from gumbeldore.solving.running import Better, Effort, Failure, Solving

__all__ = ["Better", "Effort", "Failure", "Job", "Result", "Solution", "Solving", "Stage", "solve", "solve_all"]


def solve(file: str | Path, *, policy: str | Path | Network | None = None, kit: Kit | None = None, **effort: Any) -> Result:
    """Solves the one instance of a file. See `solve_all` for the options."""
    results = solve_all([file], policy=policy, kit=kit, **effort)
    require(len(results) == 1, f"{file} holds {len(results)} instances: use `solve_all`, which returns a list.")
    return results[0]


def solve_all(
    files: Iterable[str | Path],
    *,
    policy: str | Path | Network | None = None,
    kit: Kit | None = None,
    workers: int = 0,
    device: torch.device | str = "cpu",
    **effort: Any,
) -> list[Result]:
    """Solves all instances of files and folders, in order. The first thing that goes wrong is raised.

    - `policy`: a file of weights, the name of one that ships, or a network; None: the one that ships for the problem.
    - `kit`: of the problem, where it is not to be guessed.
    - `workers`: processes; a script that uses them needs `if __name__ == "__main__":`.
    - All others are the fields of `Effort`: `sampler`, `time_limit`, `sequences`, `nearest`, `local_search`, `polish`, `seed`.

    For what happens meanwhile, or to keep the best after an interrupt, iterate over a `Solving` yourself.
    """
    jobs, failures = read_jobs(files_in(files, kit), kit)
    if failures:
        raise SettingsError(failures[0].message)
    kits = {job.kit.name: job.kit for job in jobs}
    policies = {
        name: (policy if isinstance(policy, Network) else policy_for(each, policy)).to(device) for name, each in kits.items()
    }
    solving = Solving(jobs, policies, Effort(**effort), workers=workers)
    for event in solving:
        if isinstance(event, Failure):
            raise SettingsError(event.message)
    return solving.results()
