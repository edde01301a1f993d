"""The policies that samplers are compared with: small trainings, of which an early and a late state are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from gumbeldore.io.policy_files import load_policy, save_policy
from gumbeldore.policy import Network
from gumbeldore.runs.news import line
from gumbeldore.runs.presets import entry
from gumbeldore.runs.settings import VALIDATION_SEED, RunSettings
from gumbeldore.runs.weights import new_policy
from gumbeldore.training.algorithm import Epoch, self_improve_events
from gumbeldore.training.bars import bars

STAGES = ("early", "late")


@dataclass(frozen=True)
class Small:
    """A training of minutes: a preset with changes, and the epoch whose policy is the early one."""

    problem: str  # as on the command line
    preset: str
    early: int
    changes: Mapping[str, Any]

    @property
    def settings(self) -> RunSettings:
        return entry(self.problem).settings(self.preset, self.changes)


ONE_SAMPLE = {"method": "without-replacement", "beam_width": 1, "rounds": 1}
"""With polishing, one sample of each instance is enough (docs/explanation/labels.md)."""

SHORT = {"epochs": 12, "batches": 60, "ema": 0.98, "final_learning_rate": 1e-4}
"""What else makes a short training a good one."""

TRAININGS = (
    Small("tsp", "demo", early=8, changes={}),  # what `make run` trains
    Small(
        "cvrp",
        "small",
        early=2,
        changes={
            "policy": {"features": ["distance-bias"], "heads": 4},
            "sampler": ONE_SAMPLE,
            "training": {**SHORT, "instances": 200, "batch_size": 128, "local_search": 20},
            "validation": {"instances": 100},
        },
    ),
    Small(
        "jssp",
        "small",
        early=2,
        changes={
            "sampler": ONE_SAMPLE,
            "training": {**SHORT, "instances": 100, "batch_size": 64, "local_search": 20},
            "validation": {"instances": 50},
        },
    ),
    Small(
        "gomoku",
        "small",
        early=3,
        changes={
            "problem": {"size": 10},
            "sampler": {"rounds": 2},
            "training": {"epochs": 12, "instances": 50, "batches": 60},
            "validation": {"instances": 100},
        },
    ),
)


def quick(training: Small) -> Small:
    """A few steps on tiny instances: checks the script only."""
    tiny: dict[str, dict[str, Any]] = {
        "tsp": {"problem": {"cities": 8}, "policy": {"d": 16, "layers": 1}},
        "cvrp": {"problem": {"customers": 6, "capacity": 12}, "policy": {"d": 16, "layers": 1, "heads": 4}},
        "jssp": {"problem": {"jobs": 4, "machines": 3}, "policy": {"d": 16, "pairs": 1}},
        "gomoku": {"problem": {"size": 5}, "policy": {"channels": 8, "blocks": 1}},
    }
    short = {"epochs": 2, "instances": 8, "batches": 4, "batch_size": 16, "part_size": 16, "sampling_batch": 8}
    changes = {**tiny[training.problem], "training": short, "validation": {"instances": 8}}
    return Small(training.problem, training.preset, 1, changes)


def checkpoint(training: Small, stage: str, folder: Path, console: Console) -> Network:
    """The policy of a training at a stage; the training happens where its files are missing."""
    paths = {name: folder / f"{training.problem}-{name}.safetensors" for name in STAGES}
    if not all(path.exists() for path in paths.values()):
        _train(training, paths, console)
    return load_policy(paths[stage])


def _train(training: Small, paths: Mapping[str, Path], console: Console) -> None:
    """Both policies as files: the best one until the early epoch, and the best of all."""
    kind, settings = entry(training.problem), training.settings
    policy = new_policy(kind, settings, torch.device("cpu"))
    kept = new_policy(kind, settings, torch.device("cpu"))
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    events = self_improve_events(
        settings.training_problem,
        policy,
        settings.sampler.build,
        validation=settings.validation_problem.generate(settings.validation.instances, generator=generator),
        settings=settings.training,
        select=kind.select,
    )
    epochs = settings.training.epochs
    paths["early"].parent.mkdir(parents=True, exist_ok=True)
    console.print(f"Training {kind.name} for {epochs} epochs; the policies go to {paths['early'].parent}.")
    with bars(console, epochs, 0, sampling=True) as show:
        for event in events:
            show(event)
            if isinstance(event, Epoch):
                console.print(line(event), highlight=False)
                name = {training.early: "early", epochs: "late"}.get(event.index)
                if name is not None:
                    kept.load_state_dict(event.checkpoint()["best_policy"])
                    save_policy(paths[name], kept, problem=kind.name, epoch=str(event.index))
