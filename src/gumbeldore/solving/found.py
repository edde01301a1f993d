"""What a search has found for one instance so far, and who found it."""

from __future__ import annotations

from dataclasses import dataclass

START = "start"
POLICY = "policy"
LOCAL = "local search"
POLICY_LOCAL = "policy, local search"
PARTS_ANEW = "reconstruction"
PARTS_LOCAL = "reconstruction, local search"
FINDERS = (START, POLICY, LOCAL, POLICY_LOCAL, PARTS_ANEW, PARTS_LOCAL)
"""Who may find a solution; outside solvers beside them go by their own names."""

KEPT = 16
"""So many of the best solutions of an instance are kept: an outside solver may start from several."""

Candidate = tuple[list[int], float]
"""Actions and what they cost by the rule of the instance; smaller is better."""


@dataclass(frozen=True)
class Improvement:
    """A solution that was better than all before."""

    by: str
    cost: float
    seconds: float  # since the search of this instance began


@dataclass(frozen=True)
class Share:
    """What one of several that work on an instance has spent and reached."""

    by: str
    cost: float | None = None  # of the best solution that it found itself
    seconds: float = 0.0
    turns: int = 0
    gain: float = 0.0  # by how much it made the best solution better, altogether


@dataclass(frozen=True)
class Found:
    """The best of a search, and what it took."""

    best: list[Candidate]  # a few different ones, the best first
    sequences: int = 0  # of the policy
    mass: float = 1.0  # the policy's probability of all that was not sampled
    evaluations: int = 0  # of the policy
    shared: int = 0  # evaluations saved because the state was known by another way
    seconds: float = 0.0  # since the search began, divided by the instances that were searched together
    improvements: tuple[Improvement, ...] = ()  # the last one is the best solution
    shares: tuple[Share, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def actions(self) -> list[int]:
        return self.best[0][0]

    @property
    def cost(self) -> float:
        return self.best[0][1]

    @property
    def by(self) -> str:
        """Who found the best solution."""
        return self.improvements[-1].by if self.improvements else POLICY


def merged(old: list[Candidate], new: list[Candidate]) -> list[Candidate]:
    """The best different ones of both; of equally good ones those that were found first."""
    distinct: dict[tuple[int, ...], Candidate] = {}
    for actions, cost in [*old, *new]:
        distinct.setdefault(tuple(actions), (actions, cost))
    return sorted(distinct.values(), key=lambda pair: pair[1])[:KEPT]
