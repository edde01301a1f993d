"""Tests that a problem keeps the contract and that its network, verifier, picture, files, generator and baselines fit it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from gumbeldore.conformance import check_problem
from gumbeldore.errors import CheckpointError, ContractError
from gumbeldore.kits.instances import row_arrays
from gumbeldore.kits.mixture import AnyOf
from gumbeldore.problem import Problem
from gumbeldore.runs.checking_parts import check_parts
from gumbeldore.runs.folder import RUN
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.renamed import renewed
from gumbeldore.runs.settings import RunSettings
from gumbeldore.search.samplers import StochasticBeamSearch
from gumbeldore.training.checkpoint import load_state
from gumbeldore.training.divergence import Examined, examined

_COUNT = 8
_TOLERANCE = 1e-4


def check(entry: Entry, seed: int = 0, console: Console | None = None) -> None:
    """Raises an error that names the method, the fault and the fix; otherwise says what was checked."""
    console = console or Console()
    generator = torch.Generator().manual_seed(seed)
    run = entry.settings()
    for problem in _parts(run.training_problem):
        console.print(f"Checking {problem} ...", highlight=False, markup=False)
        check_problem(problem, generator=generator)
    verified = _check_solutions(entry, run.training_problem, generator)
    tried = check_parts(entry.kit)
    also = f" Tried, too: {', '.join(tried)}." if tried else ""
    console.print(f"{entry.name} keeps the contract; {verified}.{also}", highlight=False)


def repeat(entry: Entry, path: Path, console: Console | None = None) -> Examined:
    """Computes a training step that diverged again, and says what came out."""
    saved = load_state(path)
    record = renewed(saved.get(RUN, {}))
    changes = {name: value for name, value in record.items() if name in RunSettings.__dataclass_fields__}
    settings = entry.recorded(changes)
    try:
        found = examined(settings.training_problem, entry.build(settings), saved)
    except (LookupError, TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path} does not fit {entry.name}. Is it of another problem, or of another program?") from error
    text = f"Epoch {saved['epoch']}, batch {saved['batch']} of {len(saved['targets']['action'])} examples: {found}"
    (console or Console()).print(text, highlight=False, markup=False, soft_wrap=True)
    return found


def _parts(problem: Problem[Any]) -> tuple[Problem[Any], ...]:
    """The problems that a mixture draws from, or the one there is."""
    return problem.problems if isinstance(problem, AnyOf) else (problem,)


def _check_solutions(entry: Entry, problem: Problem[Any], generator: torch.Generator) -> str:
    """Solves instances with an untrained network and compares with the kit's verifier; returns what was done."""
    policy = entry.build(entry.settings())
    state = problem.generate(_COUNT, generator=generator)
    solutions = StochasticBeamSearch(4, 1)(problem, policy, state, generator=generator)
    verify = entry.kit.solution_format.verify
    if verify is None:
        return "its network gives logits for it; it has no verifier (`solution_format.verify`), so objectives were not checked"
    for row in range(_COUNT):
        actions = [action for action in solutions.best_actions[row].tolist() if action >= 0]
        verdict, objective = verify(row_arrays(state, row), actions), solutions.best_objective[row].item()
        if not verdict.feasible or abs(verdict.objective - objective) > _TOLERANCE * max(1.0, abs(objective)):
            raise ContractError(
                f"`solution_format.verify` of {entry.name} must confirm every solution, but says of the actions {actions}: {verdict.reason or 'feasible'}, "
                f"objective {verdict.objective}, where the problem says {objective}."
            )
    return f"{_COUNT} solutions of an untrained network are confirmed by its verifier"
