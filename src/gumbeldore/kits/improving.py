"""Local search as a kit offers it: one instance by the distances of its file, for as long as somebody likes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

WHOLE = (0.0, 1.0)
"""From the beginning of a search to its end."""


@runtime_checkable
class LocalSearch(Protocol):
    """A search of one instance that knows no policy. It has a solution from its beginning on.

    The same `work` from the same beginnings gives the same solutions. One that `anneals` finds the most towards the end of its time, so
    nothing can be said before by what it has gained.
    """

    anneals: bool

    @property
    def optimal(self) -> bool:
        """Whether it knows that there is nothing better."""
        ...

    @property
    def actions(self) -> list[int]:
        """The best solution so far, as actions of the problem."""
        ...

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] = WHOLE) -> None:
        """Goes on for so many units of work, or about so many seconds.

        `progress` says where in the whole of a search this begins and ends, for one that accepts worse solutions less and less.
        """
        ...

    def offer(self, actions: Sequence[int]) -> None:
        """A solution that somebody else has found, to go on from."""
        ...
