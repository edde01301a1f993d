"""When a search ends before its last round. A rule is asked after every round, prompt by prompt; write your own as a function of `Samples`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gumbeldore.errors import require
from gumbeldore.sequences.samples import Samples

Until = Callable[[Samples], bool]


@dataclass(frozen=True)
class BetterThan:
    """Until a candidate has a higher score than this."""

    score: float

    def __call__(self, samples: Samples) -> bool:
        return any(candidate.score > self.score for candidate in samples.best(1))


@dataclass(frozen=True)
class Found:
    """Until so many different candidates are found, if a score is given only those that reach it."""

    count: int
    score: float | None = None

    def __post_init__(self) -> None:
        require(self.count >= 1, f"`count` must be at least 1, got {self.count}.")

    def __call__(self, samples: Samples) -> bool:
        if self.score is None:
            return len(samples) >= self.count
        best = samples.best(self.count)
        return len(best) == self.count and best[-1].score >= self.score


@dataclass(frozen=True)
class Covered:
    """Until so much of the model's probability was sampled."""

    mass: float

    def __post_init__(self) -> None:
        require(0 < self.mass <= 1, f"`mass` must lie in (0, 1], got {self.mass}.")

    def __call__(self, samples: Samples) -> bool:
        return samples.remaining_mass <= 1 - self.mass


@dataclass(frozen=True)
class TimeLimit:
    """Until so many seconds have passed. A round that has begun is finished."""

    seconds: float

    def __post_init__(self) -> None:
        require(self.seconds > 0, f"`seconds` must be above 0, got {self.seconds}.")

    def __call__(self, samples: Samples) -> bool:
        return samples.seconds >= self.seconds


def reason(until: tuple[Until, ...], samples: Samples) -> Until | None:
    """The first rule that holds."""
    return next((rule for rule in until if rule(samples)), None)
