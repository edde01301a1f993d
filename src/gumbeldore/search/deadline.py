"""When a search must have ended: an argument of a sampler's `stream`, which the evaluator asks before it calls the policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from gumbeldore.errors import GumbeldoreError


class TimeIsUpError(GumbeldoreError):
    """A search has come to its deadline. `stream` ends then, and the round that is under way is lost."""


@dataclass
class Deadline:
    """A time of the clock. It may be moved while a search is under way: after a first answer, say."""

    at: float = float("inf")  # as `time.monotonic` counts
    told: Callable[[int], None] | None = field(default=None, repr=False)  # before every call: the rows that it has
    calls: int = 0  # of the policy so far
    rows: int = 0  # that were given to it

    @property
    def over(self) -> bool:
        return monotonic() >= self.at

    def call(self, rows: int) -> None:
        """Called before so many rows are given to the policy."""
        if self.over:
            raise TimeIsUpError("The time for this search is up.")
        self.calls, self.rows = self.calls + 1, self.rows + rows
        if self.told is not None:
            self.told(rows)
