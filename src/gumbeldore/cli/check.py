"""`gumbeldore check`: tests that a problem keeps the contract and that its network and verifier fit it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import tyro
from rich.console import Console

from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.conformance import check_problem
from gumbeldore.errors import CheckpointError, ContractError
from gumbeldore.kits.instances import row_arrays
from gumbeldore.kits.mixture import AnyOf
from gumbeldore.problem import Problem
from gumbeldore.runs.folder import RUN
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.settings import RunSettings
from gumbeldore.search.samplers import StochasticBeamSearch
from gumbeldore.training.checkpoint import load_state
from gumbeldore.training.divergence import Examined, examined
from gumbeldore.training.settings import check_seed

COUNT = 8
TOLERANCE = 1e-4


@dataclass(frozen=True)
class CheckSettings:
    """Test a problem by playing many random solutions: masks, steps, ends, objectives, examples, keys; then its network."""

    seed: int = 0
    diverged: Path | None = (
        None  # instead: repeat the training step of this file (diverged.pt) and say what in it is not finite
    )

    def __post_init__(self) -> None:
        check_seed(self.seed)


def command(arguments: list[str]) -> None:
    """gumbeldore check PROBLEM"""
    entry, arguments = take_entry("check", arguments)
    prog, about = f"gumbeldore check {entry.name}", CheckSettings.__doc__
    settings = tyro.cli(CheckSettings, args=arguments, prog=prog, description=about)
    if settings.diverged is None:
        check(entry, settings)
    else:
        repeat(entry, settings.diverged)


def check(entry: Entry, settings: CheckSettings, console: Console | None = None) -> None:
    """Raises an error that names the method, the fault and the fix; otherwise says what was checked."""
    console = console or Console()
    generator = torch.Generator().manual_seed(settings.seed)
    run = entry.settings()
    for problem in parts(run.training_problem):
        console.print(f"Checking {problem} ...", highlight=False, markup=False)
        check_problem(problem, generator=generator)
    verified = check_solutions(entry, run.training_problem, generator)
    console.print(f"{entry.name} keeps the contract; {verified}.", highlight=False)


def repeat(entry: Entry, path: Path, console: Console | None = None) -> Examined:
    """Computes a training step that diverged again, and says what came out."""
    saved = load_state(path)
    changes = {name: value for name, value in saved.get(RUN, {}).items() if name in RunSettings.__dataclass_fields__}
    settings = entry.recorded(changes)
    try:
        found = examined(settings.training_problem, entry.build(settings), saved)
    except (LookupError, TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path} does not fit {entry.name}. Is it of another problem, or of another program?") from error
    text = f"Epoch {saved['epoch']}, batch {saved['batch']} of {len(saved['targets']['action'])} examples: {found}"
    (console or Console()).print(text, highlight=False, markup=False, soft_wrap=True)
    return found


def parts(problem: Problem[Any]) -> tuple[Problem[Any], ...]:
    """The problems that a mixture draws from, or the one there is."""
    return problem.problems if isinstance(problem, AnyOf) else (problem,)


def check_solutions(entry: Entry, problem: Problem[Any], generator: torch.Generator) -> str:
    """Solves instances with an untrained network and compares with the kit's verifier; returns what was done."""
    policy = entry.build(entry.settings())
    state = problem.generate(COUNT, generator=generator)
    solutions = StochasticBeamSearch(4, 1)(problem, policy, state, generator=generator)
    verify = entry.kit.solution_format.verify
    if verify is None:
        return "its network gives logits for it; it has no verifier (`form.verify`), so objectives were not checked"
    for row in range(COUNT):
        actions = [action for action in solutions.best_actions[row].tolist() if action >= 0]
        verdict, objective = verify(row_arrays(state, row), actions), solutions.best_objective[row].item()
        if not verdict.feasible or abs(verdict.objective - objective) > TOLERANCE * max(1.0, abs(objective)):
            raise ContractError(
                f"`form.verify` of {entry.name} must confirm every solution, but says of the actions {actions}: {verdict.reason or 'feasible'}, "
                f"objective {verdict.objective}, where the problem says {objective}."
            )
    return f"{COUNT} solutions of an untrained network are confirmed by its verifier"
