"""The problems that the command line knows, with their networks and presets. Library users do not need this file.

A new entry is one `Entry` here and its presets as TOML files in `presets/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from gumbeldore.errors import SettingsError, require
from gumbeldore.policies import TSPPolicy
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.problems import TSP
from gumbeldore.replacement import WithReplacement
from gumbeldore.samplers import Gumbeldore, Sampler, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.settings import merged, read_settings
from gumbeldore.training import TrainingSettings


@dataclass(frozen=True)
class TransformerSize:
    """Size of a transformer policy; the defaults are the paper's for the TSP."""

    d: int = 128  # width
    layers: int = 9
    heads: int = 8
    ff: int = 512  # width of the feed-forward part


@dataclass(frozen=True)
class SamplerSettings:
    """How solutions are sampled."""

    method: Literal["gumbeldore", "theory", "without-replacement", "with-replacement"] = "gumbeldore"
    beam_width: int = 32
    rounds: int = 4
    sigma: float = 0.3  # step size of the advantage update
    p_min: float = 1.0  # nucleus of the first round, growing to 1 in the last; 1: off
    p_min_from_epoch: int = 1  # until then 1 (no nucleus)
    memory_mb: int = 2048  # what a search may use

    def __post_init__(self) -> None:
        self.build(self.p_min_from_epoch)  # raises where a value is out of range

    def build(self, epoch: int = 1) -> Sampler:
        """The sampler of an epoch (from 1)."""
        p = self.p_min if epoch >= self.p_min_from_epoch else 1.0
        memory = self.memory_mb << 20
        rounds: dict[str, Any] = {"beam_width": self.beam_width, "rounds": self.rounds, "nucleus": (p, 1.0), "memory": memory}
        makers: dict[str, Callable[[], Sampler]] = {
            "gumbeldore": lambda: Gumbeldore(**rounds, sigma=self.sigma),
            "theory": lambda: TheoryGumbeldore(**rounds, sigma=self.sigma),
            "without-replacement": lambda: StochasticBeamSearch(**rounds),
            "with-replacement": lambda: WithReplacement(self.beam_width * self.rounds, memory=memory),
        }
        return makers[self.method]()


@dataclass(frozen=True)
class ValidationSettings:
    """The instances on which the greedy policy is judged after every epoch."""

    instances: int = 1000
    seed: int = 4321

    def __post_init__(self) -> None:
        require(self.instances >= 1, f"`validation.instances` must be at least 1, got {self.instances}.")


@dataclass(frozen=True)
class RunSettings:
    """Everything that defines a training run."""

    problem: Any
    policy: Any
    sampler: SamplerSettings = field(default_factory=SamplerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    validation: ValidationSettings = field(default_factory=ValidationSettings)


@dataclass(frozen=True)
class Entry:
    """A problem with one network architecture."""

    name: str
    summary: str
    problem: Problem[Any]
    size: Any
    build: Callable[[Any], Network]
    cost: str = "cost"  # what the objective is the negative of

    def presets(self) -> dict[str, Path]:
        """Preset files by name."""
        folder = Path(str(resources.files("gumbeldore"))) / "presets" / self.name
        return {path.stem: path for path in sorted(folder.glob("*.toml"))}

    def settings(self, preset: str | None = None, changes: Mapping[str, Any] | None = None) -> RunSettings:
        """The settings of a preset ('small' by default), with `changes` on top."""
        settings = RunSettings(problem=self.problem, policy=self.size)
        files, preset = self.presets(), preset or "small"
        if preset not in files:
            raise SettingsError(f"Unknown preset `{preset}` for {self.name}. Known: {', '.join(files)}.")
        return merged(merged(settings, read_settings(files[preset])), changes or {})


def transformer(policy: Callable[..., Network]) -> Callable[[TransformerSize], Network]:
    return lambda size: policy(size.d, size.layers, size.heads, size.ff)


CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry("tsp", "travelling salesman, BQ network", TSP(), TransformerSize(), transformer(TSPPolicy), "tour length"),
    )
}


def entry(name: str) -> Entry:
    if name not in CATALOGUE:
        raise SettingsError(f"Unknown problem `{name}`. Known: {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]
