"""Everything that defines a training run, as settings that a file or the command line can change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gumbeldore.errors import notice, require
from gumbeldore.problem import Problem
from gumbeldore.runs.records import merged
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.advantage import outcome
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import Gumbeldore, Sampler, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.stepping import StepAndReconsider
from gumbeldore.training import TrainingSettings
from gumbeldore.training.settings import check_seed


@dataclass(frozen=True)
class SamplerSettings:
    """RunOptions solutions are sampled."""

    method: Literal["gumbeldore", "theory", "outcome", "without-replacement", "with-replacement", "step", "adaptive"] = (
        "gumbeldore"
    )
    beam_width: int = 32
    rounds: int = 4
    sigma: float | Literal["auto"] = 0.3  # step size of the advantage update; auto finds it
    p_min: float | Literal["auto"] = 1.0  # nucleus of the first round, growing to 1 in the last; 1: off; auto finds it
    p_min_from_epoch: int = 1  # until then 1 (no nucleus)
    first_round_deterministic: bool = False  # the first round is a plain beam search: it exploits, the others explore
    step: int = 10  # of the method step: so many actions are taken before it samples again
    augmentations: int = 1  # symmetric forms of an instance that are searched together, where the problem has them
    memory_mb: int = 2048  # what a search may use
    transpositions: bool = True  # evaluate equal states once per search

    def __post_init__(self) -> None:
        self.build(self.p_min_from_epoch)  # raises where a value is out of range

    def build(self, epoch: int = 1) -> Sampler:
        """The sampler of an epoch (from 1)."""
        p = self.p_min if epoch >= self.p_min_from_epoch else 1.0
        memory, first = self.memory_mb << 20, self.first_round_deterministic or p == "auto"
        shared: dict[str, Any] = {"memory": memory, "transpositions": self.transpositions}
        beams = {
            "beam_width": self.beam_width,
            "first_round_deterministic": first,
            "augmentations": self.augmentations,
            **shared,
        }
        rounds: dict[str, Any] = {"rounds": self.rounds, "nucleus": p if p == "auto" else (p, 1.0), **beams}
        makers: dict[str, Callable[[], Sampler]] = {
            "gumbeldore": lambda: Gumbeldore(**rounds, sigma=self.sigma),
            "theory": lambda: TheoryGumbeldore(**rounds, sigma=self.sigma),
            "outcome": lambda: Gumbeldore(**rounds, sigma=self.sigma, advantage=outcome),  # for games
            "without-replacement": lambda: StochasticBeamSearch(**rounds),
            "with-replacement": lambda: WithReplacement(self.beam_width * self.rounds, memory=memory),
            "step": lambda: StepAndReconsider(step=self.step, nucleus=p, sigma=self.sigma, **beams),
            "adaptive": lambda: Adaptive(self.beam_width * self.rounds, **shared),
        }
        return makers[self.method]()


@dataclass(frozen=True)
class ValidationSettings:
    """The instances on which the greedy policy is judged after every epoch."""

    instances: int = 1000
    seed: int = 4321
    problem: dict[str, int] = field(default_factory=dict)  # settings of the problem in which they differ from it

    def __post_init__(self) -> None:
        require(self.instances >= 1, f"`validation.instances` must be at least 1, got {self.instances}.")
        check_seed(self.seed, "validation.seed")


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
            require(value is None or value > 0, f"`stages.{name}` must be above 0, or left out, got {value}.")


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
        if hasattr(usual.policy, "successor_weight") and policy.get("pointer", 1):
            policy = {**policy, "successor_weight": weight}
        notice(
            "`training.successor_weight`: an older version's setting, now `policy.successor_weight` of networks that have such a loss."
        )
        return {**changes, "training": training, "policy": policy}

    @property
    def training_problem(self) -> Problem[Any]:
        return built(self.problem)

    @property
    def validation_problem(self) -> Problem[Any]:
        return built(merged(self.problem, self.validation.problem, "validation.problem."))


def _never_ends(stage: StageSettings) -> bool:
    return stage.epochs is None and stage.stalled is None and stage.minutes is None


def built(problem: Any) -> Problem[Any]:
    """The problem that a record of settings describes; most problems are their own record."""
    return problem if isinstance(problem, Problem) else problem.build()
