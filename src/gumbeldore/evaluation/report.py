"""What the answers of all methods say: rows of a table with intervals, and curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np
from jaxtyping import Float

from gumbeldore.errors import require
from gumbeldore.evaluation.sets import NamedSet
from gumbeldore.evaluation.statistics import Estimate, bootstrap_mean, gaps, paired_difference, standard_error
from gumbeldore.kits.measure import Measure

_UNKNOWN = Estimate(nan, nan, nan)
BEST_FOUND = "the best {} found by any of these methods"
ALL_SETS = "all sets"


@dataclass(frozen=True)
class Result:
    """A verified answer."""

    cost: float
    seconds: float
    curve: Float[np.ndarray, "round 2"]  # evaluations of the policy, and the best cost so far

    @property
    def evaluations(self) -> float:
        return float(self.curve[-1, 0]) if len(self.curve) else 0.0


@dataclass(frozen=True)
class Cell:
    """All answers of a method to a set: one list per seed. Where some are missing, `failures` says why."""

    named: str
    method: str
    results: list[list[Result]]
    failures: list[str]

    @property
    def costs(self) -> Float[np.ndarray, "repeat instance"]:
        return np.array([[result.cost for result in row] for row in self.results])


@dataclass(frozen=True)
class Reference:
    """What gaps are gaps to."""

    source: str
    costs: Float[np.ndarray, " instance"]


@dataclass(frozen=True)
class Row:
    """A method on a set. Gaps and differences are fractions of the reference."""

    named: str  # the set
    method: str
    instances: int
    repeats: int
    cost: float  # mean; where the problem maximises, the value
    gap: Estimate  # to the reference, over instances
    gap_error: float  # standard error over repeats, NaN if there is one
    difference: Estimate  # of the gap to that of the method compared with, instance by instance
    seconds: float  # of processor time per instance
    evaluations: float  # of the policy, per instance
    failure: str = ""  # why there are no figures


@dataclass(frozen=True)
class Curve:
    """The mean gap of a method after each round, against mean evaluations of the policy per instance."""

    named: str
    method: str
    evaluations: Float[np.ndarray, " round"]
    gap: Float[np.ndarray, " round"]


@dataclass(frozen=True)
class Report:
    """The whole table."""

    against: str  # the method that differences are to
    rows: list[Row]
    curves: list[Curve]
    references: dict[str, Reference]  # by set
    sets: tuple[NamedSet, ...]
    cells: list[Cell]
    summary: list[Row]  # over the instances of all sets, if there are several; without costs, which cannot be compared
    measure: Measure  # what costs are

    @property
    def tables(self) -> dict[str, list[Row]]:
        """All rows by set, those over all sets last."""
        names = [*self.references, ALL_SETS] if self.summary else list(self.references)
        return {name: [row for row in [*self.rows, *self.summary] if row.named == name] for name in names}

    def source(self, named: str) -> str:
        """What gaps in a table are gaps to."""
        return "the references of each set" if named == ALL_SETS else self.references[named].source

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if row.failure]


def report(measure: Measure | str, sets: Sequence[NamedSet], cells: Sequence[Cell], against: str | None = None) -> Report:
    """Rows in the order of sets and methods."""
    measure = Measure(measure) if isinstance(measure, str) else measure
    names = list(dict.fromkeys(cell.method for cell in cells))
    against = names[0] if against is None else against
    require(against in names, f"`against` must be one of the methods ({', '.join(names)}), got {against!r}.")
    rows, curves, references = list[Row](), list[Curve](), dict[str, Reference]()
    for named in sets:
        mine = [cell for cell in cells if cell.named == named.name]
        reference = references[named.name] = _reference(named, mine, measure)
        compared = next(cell for cell in mine if cell.method == against)
        rows += [_row(cell, reference, compared, measure) for cell in mine]
        curves += [_curve(cell, reference) for cell in mine if not cell.failures and len(cell.results[0][0].curve)]
    summary = _summary(cells, references, against) if len(sets) > 1 else []
    return Report(against, rows, curves, references, tuple(sets), list(cells), summary, measure)


def _reference(named: NamedSet, cells: Sequence[Cell], measure: Measure) -> Reference:
    """The best known costs, if there is one for every instance; otherwise the best that was found here."""
    if (known := named.known) is not None:
        return Reference(named.known_from or "best known values", known)
    complete = [cell.costs.min(0) for cell in cells if not cell.failures]
    return Reference(BEST_FOUND.format(measure.kind), np.min(complete, axis=0) if complete else np.full(len(named), nan))


def _summary(cells: Sequence[Cell], references: dict[str, Reference], against: str) -> list[Row]:
    """A row per method over all instances, as if they were one set."""
    by_method: dict[str, list[Cell]] = {}
    for cell in cells:
        by_method.setdefault(cell.method, []).append(cell)
    pooled = {method: _pooled(mine) for method, mine in by_method.items()}
    reference = Reference("", np.concatenate([reference.costs for reference in references.values()]))
    return [replace(_row(cell, reference, pooled[against], Measure()), cost=nan) for cell in pooled.values()]


def _pooled(cells: Sequence[Cell]) -> Cell:
    """The answers of one method to all sets, in their order."""
    repeats = zip(*(cell.results for cell in cells), strict=True)
    results = [[result for part in parts for result in part] for parts in repeats]
    return Cell(ALL_SETS, cells[0].method, results, [failure for cell in cells for failure in cell.failures])


def _row(cell: Cell, reference: Reference, compared: Cell, measure: Measure) -> Row:
    repeats, count = len(cell.results), len(reference.costs)
    if cell.failures:
        failure = f"no answer to {len(cell.failures)} of {repeats * count}: {cell.failures[0]}"
        return Row(cell.named, cell.method, count, repeats, nan, _UNKNOWN, nan, _UNKNOWN, nan, nan, failure)
    own = gaps(cell.costs, reference.costs)
    difference = _UNKNOWN
    if not compared.failures:
        difference = paired_difference(own.mean(0), gaps(compared.costs, reference.costs).mean(0))
    results = [result for row in cell.results for result in row]
    return Row(
        cell.named,
        cell.method,
        count,
        repeats,
        measure.shown(-float(cell.costs.mean())),
        bootstrap_mean(own.mean(0)),
        standard_error(own.mean(1)),
        difference,
        float(np.mean([result.seconds for result in results])),
        float(np.mean([result.evaluations for result in results])),
    )


def _curve(cell: Cell, reference: Reference) -> Curve:
    """Where a search ended early because nothing was left, its last point stands for the rounds to come."""
    rounds = max(len(result.curve) for row in cell.results for result in row)
    points = np.array(
        [[np.pad(r.curve, ((0, rounds - len(r.curve)), (0, 0)), mode="edge") for r in row] for row in cell.results]
    )  # repeat, instance, round, 2
    by_round = [gaps(points[:, :, index, 1], reference.costs).mean() for index in range(rounds)]
    return Curve(cell.named, cell.method, points[..., 0].mean((0, 1)), np.array(by_round))
