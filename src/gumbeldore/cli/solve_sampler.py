"""How `gumbeldore solve` searches: a preset, or a sampler of one's own choice."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from gumbeldore.errors import require
from gumbeldore.runs.settings import SamplerSettings
from gumbeldore.search.samplers import BeamSearch, Greedy, Sampler

METHODS = Literal[
    "greedy", "beam", "gumbeldore", "theory", "outcome", "without-replacement", "with-replacement", "step", "adaptive"
]


@dataclass(frozen=True)
class SolveSampler(SamplerSettings):
    """How solutions are sampled."""

    method: METHODS = "gumbeldore"  # type: ignore[assignment]
    """what samples; docs/explanation/method.md describes them"""

    def build(self, epoch: int = 1) -> Sampler:
        memory = self.memory_mb << 20
        if self.method == "greedy":
            return Greedy(memory=memory, transpositions=self.transpositions)
        if self.method == "beam":
            return BeamSearch(self.beam_width, memory, self.transpositions)
        return super().build(epoch)


@dataclass(frozen=True)
class OwnSampler(SolveSampler):
    """A sampler of your own choice instead of a preset."""

    method: METHODS | None = None  # type: ignore[assignment]
    """what samples, instead of the preset; docs/explanation/method.md describes them"""
    memory_mb: int = 1200  # what all searches together may use

    def __post_init__(self) -> None:
        if self.method is not None:
            super().__post_init__()

    def chosen(self) -> Sampler | None:
        """None if there is none; settings that would be for one are then a mistake."""
        if self.method is not None:
            return self.build(self.p_min_from_epoch)
        given = [f.name for f in fields(self) if f.name != "memory_mb" and getattr(self, f.name) != f.default]
        options = ", ".join(f"--sampler.{name.replace('_', '-')}" for name in given)
        require(not given, f"{options}: name the sampler that this is for, by --sampler.method {'|'.join(get_args(METHODS))}.")
        return None
