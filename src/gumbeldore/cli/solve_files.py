"""gumbeldore solve FILE...: any files of instances, with live progress, a table, pictures and files of solutions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console

from gumbeldore.cli.dispatch import STOPPED
from gumbeldore.cli.solve_display import Display, show_failures, show_notes, show_results
from gumbeldore.cli.solve_sampler import OwnSampler
from gumbeldore.errors import GumbeldoreError, require
from gumbeldore.files import check_writable
from gumbeldore.networks.layers import slow_note
from gumbeldore.policy import Network
from gumbeldore.runs.presets import entry
from gumbeldore.runs.training import pick_device, pick_workers
from gumbeldore.solving.files import files_in, left_out, read_jobs
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.policies import policy_for
from gumbeldore.solving.results import Result
from gumbeldore.solving.running import Effort, Failure, Solving
from gumbeldore.solving.saving import PICTURES, save

MANY = 4
"""From so many instances on it is worth starting processes."""


@dataclass(frozen=True)
class FilesSettings:
    """Solve the instances of files with a trained policy: TSPLIB .tsp, CVRPLIB .vrp, job shops as text, points as .csv, .json or .npy,
    sets as .npz. The problem is guessed from the content. Ctrl-C keeps the best solutions found so far."""

    files: tyro.conf.Positional[tuple[Path, ...]]  # files, or folders of them
    policy: str | None = (
        None  # a policy.safetensors, the folder of a run, or the name of one that ships; none: the one that ships for the problem
    )
    preset: Literal["fast", "balanced", "best"] = "balanced"  # how hard to search
    time_limit: float | None = None  # seconds per instance; by default 10 for a preset, none for a sampler of your own
    sequences: int | None = None  # how many to sample per instance, in whole rounds
    local_search: int = 0  # afterwards: attempts per node or operation of a quick local search from the best sequences
    polish: float | None = None  # afterwards: seconds per instance for PyVRP or CP-SAT to go on from the best sequences
    nearest: int | None = None  # go on only to so many nearest nodes, 0: to all; by default 100 for routes of 300 nodes or more
    problem: str | None = None  # the problem of the files, where guessing fails; also file.py:KIT, which executes that file
    folder: Path = Path("runs/solve")  # solutions.json, pictures and files of solutions go here
    pictures: int = PICTURES  # draw at most so many
    json: bool = False  # print the results as JSON, and nothing else, on standard output
    seed: int = 0
    workers: int | None = None  # processes; by default one per core if there are at least 4 instances
    device: str = "auto"
    sampler: OwnSampler = field(default_factory=OwnSampler)

    @property
    def effort(self) -> Effort:
        require(self.pictures >= 0, f"`pictures` must be at least 0, got {self.pictures}.")
        require(self.workers is None or self.workers >= 0, f"`workers` must be at least 0, got {self.workers}.")
        require(self.sampler.memory_mb >= 1, f"`sampler.memory_mb` must be at least 1, got {self.sampler.memory_mb}.")
        own = self.sampler.chosen()
        require(
            own is None or self.preset == "balanced",
            "`preset` and `sampler.method` both say how to search: leave one of them out.",
        )
        options = {
            name: getattr(self, name) for name in ("time_limit", "sequences", "nearest", "local_search", "polish", "seed")
        }
        return Effort(own or self.preset, **options, memory=self.sampler.memory_mb << 20)


def command(arguments: list[str]) -> int:
    """gumbeldore solve FILE...; returns the exit code: 0, 1 if some failed, 2 if all did, 130 if stopped early."""
    return solve(tyro.cli(FilesSettings, args=arguments, prog="gumbeldore solve", description=FilesSettings.__doc__))


def solve(settings: FilesSettings) -> int:
    console = Console(stderr=settings.json)
    effort, device = settings.effort, pick_device(settings.device)
    require(len(settings.files) > 0, "Name at least one file: gumbeldore solve FILE...")
    check_writable(settings.folder, "--folder")
    kit = entry(settings.problem).kit if settings.problem else None
    jobs, failures = read_jobs(files_in(settings.files, kit), kit)
    jobs, policies, more = with_policies(jobs, settings.policy)
    failures += more
    for name, policy in policies.items():
        policies[name] = policy.to(device)
        if note := slow_note(policy):
            console.print(note)
    workers = pick_workers(settings.workers, settings.device)
    if settings.workers is None and len(jobs) < MANY:
        workers = 0
    solving = Solving(jobs, policies, effort, workers=workers)
    show_notes(console, [left_out(settings.files, kit), *solving.notes], jobs)
    stopped = _run(solving, console)
    return _finish(settings, console, solving, failures + solving.failures, stopped)


def with_policies(jobs: Sequence[Job], named: str | None) -> tuple[list[Job], dict[str, Network], list[Failure]]:
    """The jobs for which there is a policy, the policies by kit, and why the others cannot be solved."""
    policies: dict[str, Network] = {}
    faults: dict[str, str] = {}
    for kit in {job.kit.name: job.kit for job in jobs}.values():
        try:
            policies[kit.name] = policy_for(kit, named)
        except GumbeldoreError as error:
            faults[kit.name] = str(error)
    failed = {job.file: job.kit.name for job in jobs if job.kit.name in faults}
    return (
        [job for job in jobs if job.kit.name in policies],
        policies,
        [Failure(file, faults[kit]) for file, kit in failed.items()],
    )


def _run(solving: Solving, console: Console) -> bool:
    """Solves; returns whether it was stopped early."""
    if not solving.jobs:
        return False
    try:
        with Display(solving, console) as display:
            for event in solving:
                display.show(event)
    except KeyboardInterrupt:
        if not solving.so_far():
            raise
        return True
    return False


def _finish(settings: FilesSettings, console: Console, solving: Solving, failures: list[Failure], stopped: bool) -> int:
    """Shows and saves what there is; returns the exit code."""
    results = solving.results()
    if stopped:
        missing = len(solving.jobs) - len(results) - len(solving.failures)
        more = f" {missing} instances have none yet." if missing else ""
        console.print(f"Interrupted: these are the best solutions found so far.{more}", highlight=False)
    if results:
        show_results(console, results)
        records = [result.record() for result in results]
        for line in save(results, settings.folder, records, settings.pictures):
            console.print(line, soft_wrap=True, highlight=False)
    show_failures(Console(stderr=True), failures)
    if settings.json:
        print(json.dumps(as_json(results, failures, stopped), indent=1))
    if stopped:
        return STOPPED
    return 0 if not failures else 1 if results else 2


def as_json(results: Sequence[Result], failures: Sequence[Failure], stopped: bool) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "solutions": [result.record() for result in results],
        "failures": [
            {"file": None if failure.file is None else str(failure.file), "message": failure.message} for failure in failures
        ],
        "stopped_early": stopped,
    }
