"""Everything that defines a training run, as settings that a file or the command line can change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gumbeldore.errors import notice, require
from gumbeldore.kits.kit import built
from gumbeldore.problem import Problem
from gumbeldore.runs.records import merged
from gumbeldore.search.settings import SamplerSettings
from gumbeldore.training import TrainingSettings

VALIDATION_SEED = 4321
"""Of the instances on which runs are judged: the same ones for all."""


@dataclass(frozen=True)
class ValidationSettings:
    """The instances on which the greedy policy is judged after every epoch."""

    instances: int = 1000
    problem: dict[str, int] = field(default_factory=dict)  # settings of the problem in which they differ from it

    def __post_init__(self) -> None:
        require(self.instances >= 1, f"`validation.instances` must be at least 1, got {self.instances}.")


@dataclass(frozen=True)
class StageSettings:
    """A part of a curriculum, in a preset or a file of settings: `[[stages]]`. The next one begins with whatever comes first."""

    problem: dict[str, Any] = field(default_factory=dict)  # settings of the problem in which the stage differs from the run
    learning_rate: float | None = None
    epochs: int | None = None
    stalled: int | None = None  # epochs without improvement
    minutes: float | None = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "epochs", "stalled", "minutes"):
            value = getattr(self, name)
            require(value is None or 0 < value < math.inf, f"`stages.{name}` must be above 0, or left out, got {value}.")


@dataclass(frozen=True)
class RunSettings:
    """Everything that defines a training run."""

    problem: Any  # a problem, or a record that builds one
    policy: Any
    sampler: SamplerSettings = field(default_factory=SamplerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    validation: ValidationSettings = field(default_factory=ValidationSettings)
    stages: tuple[StageSettings, ...] = ()  # none: one stage, the problem as it is

    def __post_init__(self) -> None:
        _ = self.validation_problem  # raises where a setting is unknown or out of range
        for stage in self.stages:
            _ = self.at(stage)
        endless = [number for number, stage in enumerate(self.stages[:-1], 1) if _never_ends(stage)]
        require(not endless, f"`stages`: number {endless[:1]} never ends. Give it `epochs`, `stalled` or `minutes`.")

    def at(self, stage: StageSettings) -> RunSettings:
        """The settings of one stage."""
        problem = merged(self.problem, stage.problem, "stages.problem.")
        return replace(self, problem=problem, stages=())

    @classmethod
    def upgraded(cls, changes: Mapping[str, Any], usual: RunSettings) -> Mapping[str, Any]:
        """The weight of the auxiliary loss was a setting of the training; it is one of the network that has such a loss."""
        training, policy = changes.get("training"), changes.get("policy", {})
        if not isinstance(training, Mapping) or "successor_weight" not in training or not isinstance(policy, Mapping):
            return changes
        training = dict(training)
        weight = training.pop("successor_weight")
        name = next((name for name in ("successor_weight", "assignment_weight") if hasattr(usual.policy, name)), None)
        if name and policy.get("pointer", policy.get("assign", 1)):
            policy = {**policy, name: weight}
        notice(
            "`training.successor_weight`: an older version's setting, now the weight of an auxiliary loss among `policy`, if there is one."
        )
        return {**changes, "training": training, "policy": policy}

    @property
    def training_problem(self) -> Problem[Any]:
        return built(self.problem)

    @property
    def validation_settings(self) -> Any:
        """The settings of the problem on which the run is judged."""
        return merged(self.problem, self.validation.problem, "validation.problem.")

    @property
    def validation_problem(self) -> Problem[Any]:
        return built(self.validation_settings)


def _never_ends(stage: StageSettings) -> bool:
    return stage.epochs is None and stage.stalled is None and stage.minutes is None
