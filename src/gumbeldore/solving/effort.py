"""How hard to search, and who shares the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gumbeldore.errors import SettingsError, require
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.presets import PRESETS, preset
from gumbeldore.search.samplers import Sampler
from gumbeldore.search.settings import SamplerSettings
from gumbeldore.solving.jobs import Job

MEMORY = 1200 << 20
"""Bytes that all searches together may use by default; a process without any takes some 400 MB."""

PartName = Literal["policy", "local-search", "reconstruction"]
PARTS: tuple[PartName, ...] = ("policy", "local-search", "reconstruction")


@dataclass(frozen=True)
class Span:
    """How long a preset searches where no limit is given, per instance."""

    seconds: float  # at most
    least: float  # then a search with several parts ends if nothing better was found for four fifths of the time


SPANS = {"fast": Span(1.0, 0.3), "balanced": Span(10.0, 1.0), "best": Span(60.0, 10.0)}


@dataclass(frozen=True)
class Limits:
    """When a search stops, if it has not ended before; per instance."""

    seconds: float | None = None  # of the clock; without a plain start a policy's first solution may take longer
    sequences: int | None = None  # of the policy, in whole rounds
    greedy: bool = False  # take a greedy solution first, as is always done if time is limited
    repeat: bool = False  # where the sampler ends before the limits, start again with other random numbers
    patience: float | None = None  # end sooner, but not before, if four fifths of the time have brought nothing

    def __post_init__(self) -> None:
        require(
            self.seconds is None or 0 < self.seconds < float("inf"),
            f"`time_limit` must be above 0 seconds, got {self.seconds}.",
        )
        require(self.sequences is None or self.sequences >= 1, f"`sequences` must be at least 1, got {self.sequences}.")
        require(
            not self.repeat or self.seconds is not None or self.sequences is not None,
            "A search without limits would never end.",
        )


@dataclass(frozen=True)
class Effort:
    """How hard to search, with what."""

    sampler: Sampler | str = "balanced"  # of the policy: a preset (fast, balanced, best), a sampler, or its name (`gd:32x4`)
    time_limit: float | None = None  # seconds per instance; None: a preset's own, none for other samplers or `sequences`
    sequences: int | None = None  # of the policy, per instance
    parts: Sequence[PartName] | None = None  # None: all that there are; with a sampler or `sequences` the policy alone
    nearest: int | None = None  # a policy's routes go on only to so many nearest nodes; 0: to all; None: by the size
    polish: float | None = None  # seconds for an outside solver that starts from the best solutions, afterwards
    seed: int | Sequence[int] = 0  # one, or one for each instance
    memory: int = MEMORY

    def __post_init__(self) -> None:
        if isinstance(self.sampler, str) and self.sampler not in PRESETS:
            object.__setattr__(self, "sampler", SamplerSettings.of(self.sampler, self.memory >> 20).build())
        require(
            self.nearest is None or self.nearest >= 0, f"`nearest` must be at least 0 (no restriction), got {self.nearest}."
        )
        for seed in [self.seed] if isinstance(self.seed, int) else self.seed:
            require(0 <= seed < 2**63, f"`seed` must lie in 0 .. 2^63 - 1, got {seed}.")
        for part in self.parts or ():
            require(part in PARTS, f"`parts` must be some of {', '.join(PARTS)}, got {part!r}.")
        require(self.parts is None or len(self.parts) > 0, "`parts` must name at least one part, got none.")
        _ = self.limits, self.chosen  # raises where a value is out of range

    @property
    def chosen(self) -> Sampler:
        """The sampler; one that plans for a number of sequences is told how many are asked for."""
        sampler: Any = preset(self.sampler) if isinstance(self.sampler, str) else self.sampler
        if self.sequences is None or not isinstance(sampler, Adaptive):
            return sampler
        return replace(sampler, sequences=self.sequences, evaluations=None, effort=None)

    @property
    def limits(self) -> Limits:
        asked = self.time_limit is not None or self.sequences is not None
        span = SPANS.get(self.sampler) if isinstance(self.sampler, str) and not asked else None
        seconds = span.seconds if span else self.time_limit
        repeat = asked and (self.time_limit is not None or not isinstance(self.chosen, Adaptive))
        return Limits(seconds, self.sequences, isinstance(self.sampler, str), repeat, span.least if span else None)

    def parts_for(self, job: Job, policy: bool = True) -> tuple[PartName, ...]:
        """Who works on this instance, if there is a `policy` for it, or none."""
        there = [part for part in PARTS if _available(part, job) and (policy or part == "local-search")]
        if self.parts is None:
            alone = self.sequences is not None or not isinstance(self.sampler, str)
            return ("policy",) if alone and "policy" in there else tuple(there)
        for part in self.parts:
            if part not in there:
                raise SettingsError(f"`parts` must be some of {', '.join(there)} for {job.name or job.kit.name}, got {part!r}.")
        return tuple(part for part in PARTS if part in self.parts)


def _available(part: PartName, job: Job) -> bool:
    if part == "local-search":
        return job.kit.local_search is not None and job.start is None
    if part == "reconstruction":
        return job.kit.local_search is not None and job.for_policies and job.start is None
    return job.for_policies
