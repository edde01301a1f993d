"""What a kit takes as a solver: a function of an instance, a limit and a seed.

Nothing a solver says is trusted: whoever uses an answer checks it with the problem's verifier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gumbeldore.errors import GumbeldoreError, require
from gumbeldore.kits.instances import Arrays


class SolverError(GumbeldoreError):
    """A solver is not installed, or has found no solution."""


@dataclass(frozen=True)
class Limit:
    """How long a solver may search an instance: by the clock, or by work, which gives the same answer on any machine.

    seconds: By the clock; None: by work.
    work: Iterations of HGS and PyVRP, CP-SAT's deterministic time, attempts per item of our own search.
    """

    seconds: float | None = 2.0
    work: float | None = None

    def __post_init__(self) -> None:
        require((self.seconds is None) != (self.work is None), "A limit is either `seconds` or `work`: give one of them.")
        for name, value in vars(self).items():
            require(value is None or 0 < value < float("inf"), f"`{name}` must be a positive number, got {value}.")

    def units(self, items: int) -> int | None:
        """The work in all, where it is given per item."""
        return None if self.work is None else max(1, int(self.work * items))

    def __str__(self) -> str:
        return f"{self.seconds:g} seconds" if self.seconds is not None else f"work {self.work:g}"


SHORT, MINUTE = Limit(2.0), Limit(60.0)


@dataclass(frozen=True)
class Solved:
    """What a solver says about one instance.

    actions: Of the problem's `step`.
    cost: Minus the objective; the solution must be at least as good.
    optimal: Whether that is proved.
    """

    actions: list[int]
    cost: float
    optimal: bool


Solver = Callable[[Arrays, Limit, int], Solved]
"""One instance, how long, seed: a solution and what it costs. A worker process must be able to import it."""
