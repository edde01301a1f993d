"""The columns of tables: sets of instances at each scale, and where their references come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gumbeldore.kits.baselines import OWN
from gumbeldore.reproduction.steps import Expert, Instances, Label
from gumbeldore.reproduction.trainings import Scale

_TAILLARD = ((15, 15), (20, 15), (20, 20), (30, 15), (30, 20), (50, 15), (50, 20), (100, 20))


@dataclass(frozen=True)
class Column:
    """The first instances of a standard set, or a recipe's. An `expert` solves them first: its costs are the reference."""

    name: str
    given: Instances
    expert: Expert | None = None


def _nodes(problem: str, nodes: int, first: int, expert: Expert | None = None) -> Column:
    return Column(f"{problem}{nodes}", Instances(f"N = {nodes}", standard=f"{problem}{nodes}", first=first), expert)


def _shops(jobs: int, machines: int, count: int, seconds: float) -> Column:
    """Random job shops, for sizes that Taillard has none of."""
    recipe = {"jobs": jobs, "machines": machines, "count": count, "seed": 1}
    return Column(f"jssp{jobs}x{machines}", Instances(f"{jobs} x {machines}", recipe=recipe, first=count), Expert(seconds))


def _taillard(jobs: int, machines: int, first: int | None = None) -> Column:
    name = f"taillard-{jobs}x{machines}"
    return Column(name, Instances(f"{jobs} x {machines}", standard=name, first=first))


_SEARCHED = Expert(None, 200, OWN)
"""On 100 cities the tours of our own local search with this work are as good as with ten times as much."""

_COLUMNS: dict[str, dict[Scale, tuple[Column, ...]]] = {
    "tsp": {
        "cpu": (_nodes("tsp", 20, 500, _SEARCHED), _nodes("tsp", 50, 100, _SEARCHED), _nodes("tsp", 100, 32, _SEARCHED)),
        "paper": (
            _nodes("tsp", 100, 10_000, Expert(10.0)),
            _nodes("tsp", 200, 128),
            _nodes("tsp", 500, 128),
            _nodes("tsp", 1000, 128),
        ),
    },
    "cvrp": {
        "cpu": (
            _nodes("cvrp", 20, 300, Expert(None, 200)),
            _nodes("cvrp", 50, 40, Expert(None, 500)),
            _nodes("cvrp", 100, 16, Expert(None, 2000)),
        ),
        "paper": (
            _nodes("cvrp", 100, 10_000, Expert(20.0)),
            _nodes("cvrp", 200, 128, Expert(60.0)),
            _nodes("cvrp", 500, 128, Expert(240.0)),
            _nodes("cvrp", 1000, 128, Expert(600.0)),
        ),
    },
    "jssp": {
        "cpu": (_shops(6, 6, 48, 2.0), _shops(10, 10, 8, 4.0), _taillard(15, 15, 2)),
        "paper": tuple(_taillard(*size) for size in _TAILLARD),
    },
}
"""The optima of tsp200, tsp500 and tsp1000, and the best makespans of Taillard's shops, are known."""

_TINY = {
    "tsp": {"cities": 6, "count": 2, "seed": 1},
    "cvrp": {"customers": 5, "capacity": 20, "count": 2, "seed": 1},
    "jssp": {"jobs": 3, "machines": 2, "count": 2, "seed": 1},
}


def columns(problem: str, scale: Scale, most: Iterable[int | None] | None = None) -> tuple[list[Label], tuple[Instances, ...]]:
    """The sets of a problem, and the labels that are their references. `most`: at most so many of each, and only so many sets."""
    if scale == "smoke":
        return [], (tiny(problem),)
    labels, sets = [], []
    chosen = _COLUMNS[problem][scale]
    for column, count in zip(chosen, most or (None for _ in chosen), strict=False):
        given = column.given
        first = given.first if count is None else min(count, given.first or count)
        if column.expert is not None:
            labels.append(Label(f"{column.name}-reference", problem, given, column.expert))
            sets.append(Instances(given.name, labels=labels[-1].name, first=first))
        else:
            sets.append(Instances(given.name, given.standard, given.recipe, first=first))
    return labels, tuple(sets)


def tiny(problem: str) -> Instances:
    return Instances("tiny", recipe=_TINY[problem])
