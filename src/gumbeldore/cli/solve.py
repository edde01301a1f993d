"""gumbeldore solve: instances of files, or random ones of a problem, with live progress, a table, pictures and files of solutions."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from gumbeldore.cli.solve_settings import SolveSettings, settings_of
from gumbeldore.cli.solve_table import show_failures, show_notes, show_results
from gumbeldore.errors import SettingsError
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.names import problem_names
from gumbeldore.networks.layers import slow_note
from gumbeldore.parallel.devices import pick_device, pick_workers
from gumbeldore.policy import Network
from gumbeldore.runs.presets import Entry, entry
from gumbeldore.solving.display import Display
from gumbeldore.solving.effort import Effort
from gumbeldore.solving.inputs import left_out
from gumbeldore.solving.policies import policies_for, policy_for, unsolvable
from gumbeldore.solving.running import Better, Failure, Solving
from gumbeldore.solving.saving import SolutionFolder, as_json
from gumbeldore.start import STOPPED

_MANY = 4
"""From so many instances on it is worth starting processes."""


def command(arguments: list[str]) -> int:
    """gumbeldore solve FILE... or PROBLEM; returns the exit code: 0, 1 if some failed, 2 if all did, 130 if stopped early."""
    first = arguments[0] if arguments else ""
    problem = entry(first) if _is_a_problem(first) else None
    settings = settings_of(arguments if problem is None else arguments[1:], problem)
    effort = settings.effort
    folder, console = SolutionFolder(settings.folder, settings.replace), Console(stderr=settings.json)
    with folder.reserved():
        solving, failures = _prepared(settings, effort, problem, folder, console)
        with Display(solving, console) as display:
            for event in solving:
                display.show(event)
                if isinstance(event, Better):
                    folder.save_meanwhile(solving)
        return _finish(settings, console, solving, folder, failures, display.stopped)


def _is_a_problem(argument: str) -> bool:
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


def _prepared(
    settings: SolveSettings, effort: Effort, problem: Entry | None, folder: SolutionFolder, console: Console
) -> tuple[Solving, list[Failure]]:
    """What is to be solved, and why the rest is not; shows what a user should know before."""
    device = pick_device(settings.device)
    kit = problem.kit if problem else entry(settings.problem).kit if settings.problem else None
    architecture = problem.architecture if problem and problem.name != problem.kit.name else None  # a usual name: any will do

    def find(kit: Kit) -> Network:
        return policy_for(kit, settings.policy, architecture).to(device)

    jobs, failures = settings.jobs(kit, find)
    policies, faults = policies_for(jobs, effort, find)
    missing = {job.file: fault for job, fault in unsolvable(jobs, effort, faults, named=settings.policy is not None)}
    failures += [Failure(file, fault) for file, fault in missing.items()]
    jobs = [settings.begun(job, folder) for job in jobs if job.file not in missing]
    workers = 0 if settings.workers is None and len(jobs) < _MANY else pick_workers(settings.workers, settings.device)
    solving = Solving(jobs, policies, effort, workers=workers)
    alone = [f"{fault} Local search works alone." for kit, fault in faults.items() if any(j.kit.name == kit for j in jobs)]
    slow = [slow_note(policy) for policy in policies.values() if isinstance(policy, Network)]
    show_notes(console, [left_out(settings.files, kit), *slow, *alone, *solving.notes], jobs)
    return solving, failures


def _finish(
    settings: SolveSettings,
    console: Console,
    solving: Solving,
    folder: SolutionFolder,
    failures: list[Failure],
    stopped: bool,
) -> int:
    """Shows and saves what there is; returns the exit code."""
    results, failures = solving.results(), failures + solving.failures
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
