"""gumbeldore solve: instances of files, or random ones of a problem, with live progress, a table, pictures and files of solutions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from gumbeldore.cli.dispatch import STOPPED
from gumbeldore.cli.solve_display import Display, show_failures, show_notes, show_results
from gumbeldore.cli.solve_settings import ProblemSettings, SolveSettings, settings_of
from gumbeldore.errors import SettingsError, require
from gumbeldore.kits.kit import Kit, StateGenerator
from gumbeldore.kits.names import problem_names
from gumbeldore.networks.layers import slow_note
from gumbeldore.parallel.devices import pick_device, pick_workers
from gumbeldore.policy import Network
from gumbeldore.runs.presets import Entry, entry
from gumbeldore.solving.inputs import begun, files_in, left_out, random_jobs, read_jobs
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.policies import policies_for, policy_for, without_policy
from gumbeldore.solving.running import Better, Failure, Solving
from gumbeldore.solving.saving import SolutionFolder, as_json

MANY = 4
"""From so many instances on it is worth starting processes."""


def command(arguments: list[str]) -> int:
    """gumbeldore solve FILE... or PROBLEM; returns the exit code: 0, 1 if some failed, 2 if all did, 130 if stopped early."""
    first = arguments[0] if arguments else ""
    problem = entry(first) if is_a_problem(first) else None
    return solve(settings_of(arguments if problem is None else arguments[1:], problem), problem)


def is_a_problem(argument: str) -> bool:
    """Rather than a file. A name that could be either is a problem: `./tsp` is a folder."""
    if not argument:
        raise SettingsError(
            f"Name files or a problem: gumbeldore solve FILE... or PROBLEM. Problems: {', '.join(problem_names())}."
        )
    path = Path(argument)
    if argument in problem_names() or (":" in argument and not path.exists()):
        return True
    if argument.startswith("-") or path.exists() or path.suffix or path.name != argument:
        return False
    raise SettingsError(f"`{argument}` is neither a file nor a problem. Problems: {', '.join(problem_names())}.")


def solve(settings: SolveSettings, problem: Entry | None = None) -> int:
    console, effort, device = Console(stderr=settings.json), settings.effort, pick_device(settings.device)
    kit = problem.kit if problem else entry(settings.problem).kit if settings.problem else None

    def find(kit: Kit) -> Network:
        return policy_for(kit, settings.policy, problem.architecture if problem and not usual(problem) else None).to(device)

    folder = SolutionFolder(settings.folder, settings.replace)
    with folder.reserved():
        jobs, failures = _jobs(settings, problem, kit, find)
        policies, faults = policies_for(jobs, effort, find)
        unsolvable = {
            job.file: faults[job.kit.name]
            for job in jobs
            if job.kit.name in faults and (settings.policy is not None or not without_policy(effort, job))
        }
        failures += [Failure(file, fault) for file, fault in unsolvable.items()]
        jobs = [_begun(job, settings, folder) for job in jobs if job.file not in unsolvable]
        workers = 0 if settings.workers is None and len(jobs) < MANY else pick_workers(settings.workers, settings.device)
        solving = Solving(jobs, policies, effort, workers=workers)
        notes = [slow_note(policy) for policy in policies.values() if isinstance(policy, Network)]
        alone = [f"{fault} Local search works alone." for kit, fault in faults.items() if any(j.kit.name == kit for j in jobs)]
        show_notes(console, [left_out(settings.files, kit), *notes, *alone, *solving.notes], jobs)
        stopped = _watch(solving, console, folder)
        return _finish(settings, console, solving, folder, failures + solving.failures, stopped)


def usual(problem: Entry) -> bool:
    """Whether any of the kit's policies will do, and not those of one architecture alone."""
    return problem.name == problem.kit.name


def _jobs(
    settings: SolveSettings, problem: Entry | None, kit: Kit | None, find: Callable[[Kit], Network]
) -> tuple[list[Job], list[Failure]]:
    """The instances, and what is wrong with files."""
    if settings.files:
        files = isinstance(settings, ProblemSettings) and settings.random is not None
        require(not files, "`random` and files both say what to solve: leave one of them out.")
        return read_jobs(files_in(settings.files, kit), kit)
    require(isinstance(settings, ProblemSettings), "Name at least one file: gumbeldore solve FILE...")
    assert isinstance(settings, ProblemSettings)
    assert problem is not None
    generator = settings.instances
    network = find(problem.kit) if isinstance(generator, StateGenerator) else None
    return random_jobs(problem.kit, generator, network), []


def _begun(job: Job, settings: SolveSettings, folder: SolutionFolder) -> Job:
    """With the solution that it goes on from."""
    if settings.start is not None:
        return begun(job, settings.start)
    return folder.start(job) if settings.resume else job


def _watch(solving: Solving, console: Console, folder: SolutionFolder) -> bool:
    """Solves, shows and saves what is found; returns whether it was stopped early."""
    try:
        with Display(solving, console) as display:
            for event in solving:
                display.show(event)
                if isinstance(event, Better):
                    folder.save_meanwhile(solving)
    except KeyboardInterrupt:
        if not solving.so_far():
            raise
        return True
    return False


def _finish(
    settings: SolveSettings,
    console: Console,
    solving: Solving,
    folder: SolutionFolder,
    failures: Sequence[Failure],
    stopped: bool,
) -> int:
    """Shows and saves what there is; returns the exit code."""
    results = solving.results()
    if stopped:
        missing = len(solving.jobs) - len(results) - len(solving.failures)
        more = f" {missing} instances have none yet." if missing else ""
        console.print(f"Interrupted: these are the best solutions found so far.{more}", highlight=False)
    if results:
        show_results(console, results)
        for line in folder.save(results, settings.pictures):
            console.print(line, soft_wrap=True, highlight=False)
    show_failures(Console(stderr=True), failures)
    if settings.json:
        print(json.dumps(as_json(results, failures, stopped), indent=1))
    if stopped:
        return STOPPED
    return 0 if not failures else 1 if results else 2
