"""What the cells say: gaps at equal numbers of evaluations, with paired differences, and whether the claims hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from contest.cases import Case
from contest.cells import Cell
from contest.samplers import ADAPTIVE, AUTO, BUDGETS, DEFAULT, GRID
from gumbeldore.evaluation.statistics import Estimate, bootstrap_mean, paired_difference

TOLERANCE = 1.05
"""A point counts for a budget if it spent at most so many times as much."""


@dataclass(frozen=True)
class Point:
    """A sampler after a round."""

    name: str
    evaluations: float
    seconds: float
    gaps: Float[np.ndarray, " instance"]  # in percent of the reference, or in points of a game


@dataclass(frozen=True)
class Contest:
    """All cells of a case."""

    case: Case
    cells: tuple[Cell, ...]
    reference: Float[np.ndarray, " instance"]

    @cached_property
    def best(self) -> Float[np.ndarray, " instance"]:
        """The reference, or what is better than that."""
        return np.minimum(self.reference, np.min([cell.cost.min(0) for cell in self.cells], 0))

    @property
    def families(self) -> list[str]:
        return list(dict.fromkeys(cell.family for cell in self.cells))

    def points(self, family: str) -> list[Point]:
        """All members of a family after all their rounds, by evaluations."""
        return self._points[family]

    @cached_property
    def _points(self) -> dict[str, list[Point]]:
        scale = np.abs(self.best) if self.case.relative else 1.0
        found: dict[str, list[Point]] = {family: [] for family in self.families}
        for cell in self.cells:
            for spent, cost, seconds in zip(cell.evaluations, cell.cost, cell.seconds, strict=True):
                gaps = 100 * (cost - self.best) / scale
                found[cell.family].append(Point(cell.name, float(spent.mean()), float(seconds), gaps))
        return {family: sorted(points, key=lambda point: point.evaluations) for family, points in found.items()}

    def within(self, family: str, budget: float) -> Point | None:
        """The best point of a family that kept within a budget, chosen in its favour; None if it has none."""
        points = [point for point in self._points.get(family, []) if point.evaluations <= TOLERANCE * budget]
        return min(points, key=lambda point: float(point.gaps.mean()), default=None)


@dataclass(frozen=True)
class Entry:
    """A family at a budget."""

    case: str
    family: str
    budget: int
    name: str
    evaluations: float
    seconds: float
    gap: Estimate
    difference: Estimate | None  # to `adaptive` at the same budget; above 0: worse


def entries(contest: Contest, budgets: Sequence[int] = BUDGETS) -> Iterable[Entry]:
    for family in contest.families:
        for budget in budgets:
            point, against = contest.within(family, budget), contest.within(ADAPTIVE, budget)
            if point is not None:
                difference = paired_difference(point.gaps, against.gaps) if against else None
                gap = bootstrap_mean(point.gaps)
                yield Entry(contest.case.name, family, budget, point.name, point.evaluations, point.seconds, gap, difference)


@dataclass(frozen=True)
class Claim:
    """A statement about two families at a budget: the first one's gap minus the second one's should be below `most`."""

    case: str
    what: str
    budget: int
    difference: Estimate
    most: float

    @property
    def verdict(self) -> str:
        """By the interval: yes if all of it is below, no if none of it is."""
        if self.difference.high <= self.most:
            return "yes"
        return "no" if self.difference.low > self.most else ("likely" if self.difference.mean <= self.most else "unlikely")


CLAIMS = (
    (ADAPTIVE, "beam search", 0.0),
    (ADAPTIVE, DEFAULT, 0.0),
    (ADAPTIVE, "stepping, auto, augmentations", 0.0),
    (ADAPTIVE, GRID, 0.2),
    (AUTO, GRID, 0.2),
    (AUTO, DEFAULT, 0.0),
    ("stepping, p = 0.8", DEFAULT, 0.0),
    ("stepping, auto", AUTO, 0.0),
)
"""Who should be better than whom, but for so many percent."""


def claims(contest: Contest, budgets: Sequence[int] = BUDGETS) -> Iterable[Claim]:
    """All claims of which both sides are there."""
    for one, other, most in CLAIMS:
        for budget in budgets:
            left, right = contest.within(one, budget), contest.within(other, budget)
            if left is not None and right is not None:
                difference = paired_difference(left.gaps, right.gaps)
                yield Claim(contest.case.name, f"{one} against {other}", budget, difference, most)


def as_json(contests: Sequence[Contest]) -> dict[str, Any]:
    """Everything as plain numbers."""
    curves = [
        {
            "case": contest.case.name,
            "family": family,
            "points": [[round(p.evaluations, 1), round(float(p.gaps.mean()), 4), round(p.seconds, 4)] for p in points],
        }
        for contest in contests
        for family in contest.families
        if family != GRID and (points := contest.points(family))
    ]
    return {
        "format": "gumbeldore-quality-1",
        "instances": {contest.case.name: len(contest.reference) for contest in contests},
        "entries": [asdict(entry) for contest in contests for entry in entries(contest)],
        "claims": [{**asdict(claim), "verdict": claim.verdict} for contest in contests for claim in claims(contest)],
        "curves": curves,
    }
