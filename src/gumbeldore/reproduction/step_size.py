"""The choice of sigma: some epochs without updates between rounds, then a grid of step sizes on a small set."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gumbeldore.reproduction.columns import tiny
from gumbeldore.reproduction.differences import UNIT, Pair, by_set
from gumbeldore.reproduction.paper import published
from gumbeldore.reproduction.results import Results, Table, Value, beside
from gumbeldore.reproduction.steps import Evaluate, Instances, Method, Plan, Step
from gumbeldore.reproduction.trainings import Scale, without_replacement


@dataclass(frozen=True)
class Search:
    """What is tried."""

    width: int
    rounds: int
    sigmas: tuple[float, ...]
    instances: int
    repeats: int


_SEARCHES: dict[Scale, Search] = {
    "smoke": Search(2, 2, (0, 1), 2, 2),
    "cpu": Search(32, 4, (0, 0.05, 0.3, 1, 3, 5), 24, 2),
    "paper": Search(32, 4, (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 1.5, 2, 3, 4, 5), 100, 5),
}
_SETS = {
    "cpu": {"tsp": {"cities": 20}, "cvrp": {"customers": 20, "capacity": 30}, "jssp": {"jobs": 6, "machines": 6}},
    "paper": {"tsp": {"cities": 100}, "cvrp": {"customers": 100, "capacity": 50}, "jssp": {"jobs": 15, "machines": 15}},
}
_PROBLEMS = ("tsp", "cvrp", "jssp")
_WITHOUT = "0"
"""The sigma without updates."""


def plan(scale: Scale) -> Plan:
    search, steps = _SEARCHES[scale], list[Step]()
    for problem in _PROBLEMS:
        trained, _ = without_replacement(problem, scale)
        size = f"{search.width}x{search.rounds}"
        methods = tuple(Method(f"{sigma:g}", trained.name, f"gd:{size},sigma={sigma:g}") for sigma in search.sigmas)
        steps += [trained, Evaluate(problem, problem, (_small_set(problem, scale),), methods, search.repeats)]
    less = {
        "smoke": "tiny networks on tiny instances: the figures mean nothing.",
        "cpu": "small networks and sizes (N = 20, 6 x 6; see Tables 1 and 2 at cpu scale, whose trainings without updates these are, stopped early).",
        "paper": "the paper's networks; the paper names neither its grid nor its validation set.",
    }
    caption = (
        f"Scale {scale}: {less[scale]} {trained.epochs} epochs without replacement (sigma 0), then GD {search.width} x {search.rounds} with each sigma on "
        f"{search.instances} instances, {search.repeats} repeats; gaps to the best cost found with any sigma."
    )
    return Plan(tuple(steps), caption)


def _small_set(problem: str, scale: Scale) -> Instances:
    if scale == "smoke":
        return tiny(problem)
    return Instances("validation", recipe={**_SETS[scale][problem], "count": _SEARCHES[scale].instances, "seed": 99})


def tables(plan: Plan, results: Results) -> list[Table]:
    """Gaps by sigma, how much smaller than without updates, and the best sigma beside the paper's choice."""
    values, best, changes = list[Value](), list[Value](), list[Value]()
    for problem, report in results.reports.items():
        rows = report.rows
        for row in rows:
            interval = (100 * row.gap.mean, 100 * row.gap.low, 100 * row.gap.high, 100 * row.gap_error)
            source = report.references[row.named].source
            counts = {"instances": row.instances, "repeats": row.repeats}
            values.append(Value(problem.upper(), row.method, *interval, **counts, reference=source))
        pairs = [Pair(row.method, _WITHOUT) for row in rows if row.method != _WITHOUT]
        against = by_set(problem, report, pairs).values
        changes += [replace(value, row=problem.upper(), column=pair.first) for pair, value in zip(pairs, against, strict=True)]
        best.append(Value(problem.upper(), "sigma", float(min(rows, key=lambda row: row.gap.mean).method)))
    return [
        Table("by sigma", tuple(values), across="sigma"),
        Table("by sigma: differences to sigma 0", tuple(changes), unit=UNIT, drawn=False),
        Table("choice", beside(best, published("sigma", "choice")), unit="the sigma with the smallest gap"),
    ]
