"""What a run's policy finds on its validation instances, as pictures."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from gumbeldore.io.policy_files import POLICY, load_policy
from gumbeldore.kits.instances import row_arrays
from gumbeldore.runs.folders import RunRecord
from gumbeldore.runs.page import Picture
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.renamed import renewed
from gumbeldore.runs.settings import VALIDATION_SEED, RunSettings
from gumbeldore.search.samplers import Greedy


def solved_pictures(run: RunRecord, entry: Entry, count: int, seed: int) -> list[Picture]:
    """Solves the first validation instances of a run with its best policy and its own sampler, and draws the solutions."""
    draw = entry.kit.need("pictures of solutions", "solution_format").draw
    if draw is None:
        return []
    settings = _settings(run, entry)
    policy = load_policy(run.folder / POLICY, entry.architecture.network)
    state = _instances(settings, count)

    def best(sampler: Any) -> Any:
        return sampler(settings.validation_problem, policy, state, generator=torch.Generator().manual_seed(seed))

    sampled, greedy = best(settings.sampler.build(max(run.epochs, 1))), best(Greedy())
    pictures = []
    for row in range(state.row_count):
        actions = [action for action in sampled.best_actions[row].tolist() if action >= 0]
        costs = [entry.measure.shown(solutions.best_objective[row].item()) for solutions in (sampled, greedy)]
        title = f"{entry.measure.name} {costs[0]:.4g}"
        caption = f"validation instance {row}: {entry.measure.name} {costs[0]:.4f} (greedy {costs[1]:.4f})"
        pictures.append(Picture(_png(draw, row_arrays(state, row), actions, title), caption))
    return pictures


def _settings(run: RunRecord, entry: Entry) -> RunSettings:
    known = renewed(run.settings)
    own = {key: known[key] for key in RunSettings.__dataclass_fields__ if key in known}
    return entry.recorded(own)


def _instances(settings: RunSettings, count: int) -> Any:
    """The first of those on which the run is judged."""
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    state = settings.validation_problem.generate(settings.validation.instances, generator=generator)
    return state.rows(slice(0, count)).compact()


def _png(draw: Any, instance: Any, actions: list[int], title: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solution.png"
        draw(path, instance, actions, title)
        return path.read_bytes()
