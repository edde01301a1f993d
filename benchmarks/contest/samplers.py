"""Who takes part: families of samplers, each by one or more of its members that spend more and more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contest.cases import Case
from gumbeldore import Adaptive
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch
from gumbeldore.search.stepping import StepAndReconsider

WIDTH, ROUNDS = 16, 8
"""Of the samplers in rounds. Their first rounds are smaller searches, so that one run gives a curve."""

VARIANTS = 8
MOST = 1000
"""No search goes on after a round in which all instances have so many evaluations."""


@dataclass(frozen=True)
class Entrant:
    """A sampler, and the family that it belongs to."""

    family: str
    name: str
    sampler: Sampler


@dataclass(frozen=True)
class Family:
    """Samplers that differ in what they may spend."""

    name: str
    members: Callable[[Case, int], dict[str, Sampler]]  # from the case and the number of actions of a solution

    def entrants(self, case: Case, horizon: int) -> list[Entrant]:
        return [Entrant(self.name, f"{self.name} {name}".strip(), s) for name, s in self.members(case, horizon).items()]


def _one(make: Callable[[Case, int], Sampler]) -> Callable[[Case, int], dict[str, Sampler]]:
    return lambda case, horizon: {"": make(case, horizon)}


def _stepping(**settings: Any) -> Callable[[Case, int], dict[str, Sampler]]:
    """Five steps to the end, as few or many sequences below each."""
    return lambda case, horizon: {
        str(width): StepAndReconsider(width, -(-horizon // 5), **settings) for width in (VARIANTS, 4 * VARIANTS)
    }


BUDGETS = (100, 300, 1000)
"""Policy evaluations at which families are compared."""

ADAPTIVE = "adaptive"
DEFAULT = "GD, paper"
AUTO = "GD, auto"

FAMILIES = (
    Family("greedy", _one(lambda case, horizon: Greedy())),
    Family("beam search", lambda case, horizon: {str(width): BeamSearch(width) for width in (2, 4, 8, 16, 32, 64)}),
    Family("with replacement", lambda case, horizon: {str(count): WithReplacement(count) for count in (4, 16, 64)}),
    Family("WOR", _one(lambda case, horizon: StochasticBeamSearch(WIDTH, ROUNDS))),
    Family(DEFAULT, _one(lambda case, horizon: Gumbeldore(WIDTH, ROUNDS, sigma=case.sigma, advantage=case.advantage))),
    Family(AUTO, _one(lambda case, horizon: Gumbeldore(WIDTH, ROUNDS, sigma="auto", nucleus="auto"))),
    Family(
        "GD, auto, augmentations",
        _one(lambda case, horizon: Gumbeldore(WIDTH, ROUNDS, sigma="auto", nucleus="auto", augmentations=VARIANTS)),
    ),
    Family(
        "beam, augmentations",
        lambda case, horizon: {str(width): BeamSearch(width, augmentations=VARIANTS) for width in (1, 2, 4, 8)},
    ),
    Family("stepping, p = 0.8", _stepping(nucleus=0.8)),
    Family("stepping, auto", _stepping(nucleus="auto")),
    Family("stepping, auto, advantages", _stepping(nucleus="auto", sigma="auto")),
    Family("stepping, auto, augmentations", _stepping(nucleus="auto", augmentations=VARIANTS)),
    Family("stepping, auto, both", _stepping(nucleus="auto", sigma="auto", augmentations=VARIANTS)),
    Family(ADAPTIVE, lambda case, horizon: {str(budget): Adaptive(evaluations=budget) for budget in BUDGETS}),
)

NUCLEI, SCALES = (0.5, 0.7, 0.85, 0.95, 1.0), (0.0, 0.3, 1.0, 3.0, 10.0)
"""The grid: constant nuclei, and multiples of the paper's sigma."""

GRID = "grid"


def _grid(case: Case, horizon: int) -> dict[str, Sampler]:
    return {
        f"sigma={scale * case.sigma:g} p={p:g}": Gumbeldore(
            WIDTH, ROUNDS, sigma=scale * case.sigma, nucleus=(p, p), advantage=case.advantage
        )
        for scale in SCALES
        for p in NUCLEI
    }


GRID_FAMILY = Family(GRID, _grid)
