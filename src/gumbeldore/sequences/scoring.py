"""The score of sequences: asked for in batches, once for each sequence, within a budget; what it fails on is said or skipped."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from gumbeldore.errors import GumbeldoreError, require

Tokens = tuple[int, ...]
Score = Callable[[list[Tokens]], Sequence[float | None]]
"""Scores of a batch of sequences, larger is better. NaN or None: it has none."""


class ScoreError(GumbeldoreError):
    """A score raised an exception, or returned what is no number."""


class Candidate(NamedTuple):
    """A sequence and its score."""

    score: float
    tokens: Tokens


@dataclass
class Scorer:
    """Remembers all scores. With `partial`, the prefixes of a sequence beyond the first `fixed` tokens are candidates, too.

    A failure of the score is an error, or skipped if asked: such a sequence is no candidate, and counts as the worst one in what is learnt.
    """

    score: Score
    max_scores: int | None = None  # sequences and prefixes that the score is asked about
    batch: int | None = None  # most of them in one call; None: all that are new
    skip_failures: bool = False
    partial: bool = False
    fixed: int = 0
    known: dict[Tokens, float] = field(default_factory=dict)  # NaN: it has none
    lowest: float = math.inf

    def __post_init__(self) -> None:
        for name in ("max_scores", "batch"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"`{name}` must be at least 1, or None for no limit, got {value}.")

    @property
    def made(self) -> int:
        """How many sequences and prefixes the score was asked about."""
        return len(self.known)

    @property
    def exhausted(self) -> bool:
        return self.max_scores is not None and self.made >= self.max_scores

    def __call__(self, sequences: list[Tokens]) -> list[float]:
        """Their scores; NaN where there is none, or the budget is used up."""
        whole = dict.fromkeys(s for s in sequences if s not in self.known)
        if self.partial:
            prefixes = (s[:size] for s in sequences for size in range(self.fixed + 1, len(s)))
            wanted = list(whole | dict.fromkeys(p for p in prefixes if p not in self.known))
        else:
            wanted = list(whole)
        if self.max_scores is not None:
            wanted = wanted[: self.max_scores - self.made]
        size = self.batch or max(1, len(wanted))
        for start in range(0, len(wanted), size):
            self._ask(wanted[start : start + size], whole)
        return [self.known.get(sequence, math.nan) for sequence in sequences]

    def learnt(self, score: float) -> float:
        """What a search learns from: the lowest score so far for a sequence that has none."""
        if math.isfinite(score):
            return score
        return self.lowest if math.isfinite(self.lowest) else 0.0

    def best(self, count: int, among: int | None = None) -> list[Candidate]:
        """The best candidates ever seen (or of the first so many), best first; of equally good ones the first."""
        seen = islice(self.known.items(), among)
        scored = (Candidate(score, tokens) for tokens, score in seen if not math.isnan(score))
        return heapq.nlargest(count, scored, key=lambda candidate: candidate.score)

    def _ask(self, sequences: list[Tokens], whole: dict[Tokens, None]) -> None:
        for sequence, value in zip(sequences, self._values(sequences), strict=True):
            missing = value is None or math.isnan(value)
            if not self.skip_failures and ((missing and sequence in whole) or (not missing and math.isinf(float(value or 0)))):
                raise ScoreError(
                    f"`score` must return a finite number, got {value} for {_shown(sequence)}. To skip: skip_failures=True."
                )
            number = math.nan if missing or value is None or math.isinf(value) else float(value)
            self.known[sequence] = number
            if number < self.lowest:
                self.lowest = number

    def _values(self, sequences: list[Tokens]) -> list[float | None]:
        try:
            values = list(self.score(list(sequences)))
        except Exception as error:
            if not self.skip_failures:
                raise ScoreError(
                    f"`score` failed on one of {len(sequences)} sequences, the first is {_shown(sequences[0])}: "
                    f"{type(error).__name__}: {error}. To skip: skip_failures=True."
                ) from error
            values = [None] if len(sequences) == 1 else [self._values([sequence])[0] for sequence in sequences]
        if len(values) != len(sequences):
            raise ScoreError(f"`score` must return one number per sequence ({len(sequences)}), got {len(values)}.")
        return values


def _shown(tokens: Tokens) -> str:
    """A sequence in an error message, which has one line."""
    return str(tokens if len(tokens) <= 12 else (*tokens[:12], "..."))
