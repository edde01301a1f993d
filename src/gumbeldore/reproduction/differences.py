"""Whether an ordering that the paper claims holds here: differences of gaps, instance by instance, with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np
from jaxtyping import Float

from gumbeldore.evaluation.report import Reference, Report
from gumbeldore.evaluation.statistics import gaps, mean_of_runs, paired_difference
from gumbeldore.reproduction.results import Table, Value

UNIT = "first gap minus second in points, instance by instance (an interval below 0: the first is better; above 0: the second)"


@dataclass(frozen=True)
class Pair:
    """Two rows or curves. The paper has the first ahead, or at least not behind."""

    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.first} - {self.second}"


def difference(
    pair: Pair,
    column: str,
    first: Float[np.ndarray, "repeat instance"],
    second: Float[np.ndarray, "others instance"],
    reference: Reference,
) -> Value:
    """Of two methods' costs, in points. Repeats are averaged before."""
    found = paired_difference(*(100 * gaps(costs, reference.costs).mean(0) for costs in (first, second)))
    counts = {"instances": first.shape[1], "repeats": len(first)}
    return Value(str(pair), column, found.mean, found.low, found.high, **counts, reference=reference.source)


def by_set(title: str, report: Report, pairs: Iterable[Pair], paper: Sequence[Value] = ()) -> Table:
    """The differences of pairs of rows on every set, beside those of the paper's rows."""
    costs = {(cell.method, cell.named): cell.costs for cell in report.cells if not cell.failures}
    theirs = {(value.row, value.column): value.paper for value in paper}
    values = list[Value]()
    for pair in pairs:
        for named, reference in report.references.items():
            keys = (pair.first, named), (pair.second, named)
            if all(key in costs for key in keys):
                published = theirs.get(keys[0], nan) - theirs.get(keys[1], nan)
                found = difference(pair, named, costs[keys[0]], costs[keys[1]], reference)
                values.append(replace(found, paper=round(published, 6)))
    return Table(f"{title}: differences", tuple(values), unit=UNIT, drawn=False)


_OVER_SEEDS = "mean over seeds"


def by_training(title: str, reports: Mapping[str, Report], pairs: Iterable[Pair]) -> Table:
    """The differences of pairs of rows by the seed of both trainings, and their mean over seeds with Student's interval."""
    pairs, values = tuple(pairs), list[Value]()
    found = {seed: by_set(title, report, pairs).values for seed, report in reports.items()}
    for pair in pairs:
        of_pair = [
            replace(value, row=f"{pair}, seed {seed}") for seed in found for value in found[seed] if value.row == str(pair)
        ]
        values += of_pair
        for named in dict.fromkeys(value.column for value in of_pair):
            means = np.array([value.ours for value in of_pair if value.column == named])
            over = mean_of_runs(means)
            values.append(Value(f"{pair}, {_OVER_SEEDS}", named, over.mean, over.low, over.high, repeats=len(means)))
    return Table(f"{title}: differences", tuple(values), unit=f"{UNIT}; {_OVER_SEEDS}: Student's interval", drawn=False)
