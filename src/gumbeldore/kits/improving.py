"""Local search as a kit offers it: one instance by the distances of its file, for as long as somebody likes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol, runtime_checkable

from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.verdict import Verdict

WHOLE = (0.0, 1.0)
"""From the beginning of a search to its end."""


@runtime_checkable
class LocalSearch(Protocol):
    """A search of one instance that knows no policy. It has a solution from its beginning on.

    The same `work` from the same beginnings gives the same solutions. One that `anneals`, or brings up several solutions together, finds the most towards
    the end of its time, so nothing can be said before by what it has gained.
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


Improve = Callable[[list[int], int, int], list[int]]
"""A solution, a seed and a number of rounds: a solution that is no worse."""

FIRST, QUANTUM = 8, 0.05
"""A first call has one round for so many actions; a call should take at most so many seconds."""


class Repeated:
    """A local search made of calls that each begin with the best solution so far."""

    anneals = optimal = False

    def __init__(self, improve: Improve, cost: Callable[[Sequence[int]], float], begin: Sequence[int], seed: int) -> None:
        self.improve, self.cost, self.seed = improve, cost, seed
        self.actions = list(begin)
        self.calls, self.rounds = 0, max(1, len(self.actions) // FIRST)

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] = WHOLE) -> None:
        end = float("inf") if seconds is None else monotonic() + seconds
        left = work if work is not None else (1 << 62)
        while left > 0 and (begun := monotonic()) < end:
            rounds = min(self.rounds, left)
            self._call(rounds)
            left -= rounds
            if seconds is not None:
                took = monotonic() - begun
                self.rounds = max(1, min(2 * self.rounds, int(self.rounds * min(QUANTUM, seconds) / max(took, 1e-6))))

    def _call(self, rounds: int) -> None:
        self.calls += 1
        found = self.improve(self.actions, (self.seed + 7919 * self.calls) % (1 << 31), rounds)
        if self.cost(found) < self.cost(self.actions):
            self.actions = found

    def offer(self, actions: Sequence[int]) -> None:
        self.actions = list(actions)


def verified_cost(arrays: Arrays, verify: Callable[[Arrays, Sequence[int]], Verdict]) -> Callable[[Sequence[int]], float]:
    """The cost of feasible actions where a file has no rule of its own."""
    return lambda actions: -verify(arrays, actions).objective
