"""What an outside solver makes of the best solutions afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from time import monotonic

from gumbeldore.errors import GumbeldoreError, SettingsError, require
from gumbeldore.kits.kit import Kit, WarmStartedSolver
from gumbeldore.kits.solver import Limit
from gumbeldore.solving.found import Found, Improvement, Share, merged
from gumbeldore.solving.jobs import Group, Job


def _polisher(kit: Kit) -> tuple[str, WarmStartedSolver]:
    """The name of an installed solver that takes a start, and the solver."""
    for name, solver in kit.warm_started.items():
        if find_spec(name) is not None:
            return name, solver
    known = f'{" or ".join(kit.warm_started)}, not installed: pip install "gumbeldore[solvers]".'
    raise SettingsError(
        f"`polish` for {kit.name} needs {known if kit.warm_started else 'a kit with `warm_started`, and this has none.'}"
    )


def check_polish(kit: Kit, seconds: float | None) -> None:
    """Raises where a solver that is asked for does not exist."""
    require(seconds is None or 0 < seconds < float("inf"), f"`polish` must be above 0 seconds, got {seconds}.")
    if seconds is not None:
        _polisher(kit)


def polished(group: Group, rounds: Iterator[list[Found]], seconds: float) -> Iterator[list[Found]]:
    """What a search finds, and at last what an outside solver makes of it."""
    found = list[Found]()
    for found in rounds:
        yield found
    columns = zip(group.jobs, found, group.seeds, strict=True)
    yield [_refined(job, each, seconds, seed) for job, each, seed in columns]


def _refined(job: Job, found: Found, seconds: float, seed: int) -> Found:
    """The same with what the solver found. If that is nothing better, or infeasible, what there was stays."""
    name, solve = _polisher(job.kit)
    begin, notes, solutions = monotonic(), found.notes, found.best
    try:
        actions = solve(job.given, [actions for actions, _ in found.best], Limit(seconds), seed % (1 << 31))
        verify = job.kit.solution_format.verify
        if verify is not None and verify(job.given.arrays, actions).feasible:
            solutions = merged(found.best, [(actions, job.cost(actions))])
    except GumbeldoreError as error:
        notes = (*notes, f"{name}: {error}")
    took, cost = monotonic() - begin, solutions[0][1]
    gain = found.cost - cost
    better = (Improvement(name, cost, found.seconds + took),) if gain > 0 else ()
    return replace(
        found,
        best=solutions,
        seconds=found.seconds + took,
        improvements=(*found.improvements, *better),
        shares=(*found.shares, Share(name, cost if better else None, took, 1, gain)),
        notes=notes,
    )
