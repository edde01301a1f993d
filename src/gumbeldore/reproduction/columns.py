"""The columns of tables: sets of instances at each scale, and where their references come from."""

from __future__ import annotations

from dataclasses import dataclass

from gumbeldore.reproduction.steps import Instances, Label
from gumbeldore.reproduction.trainings import Scale

TAILLARD = ((15, 15), (20, 15), (20, 20), (30, 15), (30, 20), (50, 15), (50, 20), (100, 20))


@dataclass(frozen=True)
class Column:
    """The first instances of a standard set. With `seconds` an expert solves them first: its costs are the reference."""

    nodes: int
    first: int
    seconds: float = 0.0


ROUTING: dict[str, dict[Scale, tuple[Column, ...]]] = {
    "tsp": {
        "cpu": (Column(50, 100, 1.0), Column(100, 100, 2.0), Column(200, 32), Column(500, 8)),
        "paper": (Column(100, 10_000, 10.0), Column(200, 128), Column(500, 128), Column(1000, 128)),
    },
    "cvrp": {
        "cpu": (Column(50, 100, 2.0), Column(100, 100, 5.0), Column(200, 16, 20.0)),
        "paper": (Column(100, 10_000, 20.0), Column(200, 128, 60.0), Column(500, 128, 240.0), Column(1000, 128, 600.0)),
    },
}
"""The optima of tsp200, tsp500 and tsp1000 are known."""

TINY = {
    "tsp": {"cities": 6, "count": 2, "seed": 1},
    "cvrp": {"customers": 5, "capacity": 20, "count": 2, "seed": 1},
    "jssp": {"jobs": 3, "machines": 2, "count": 2, "seed": 1},
}


def routing(problem: str, scale: Scale, first: int | None = None) -> tuple[list[Label], tuple[Instances, ...]]:
    """The sets of a routing problem, and the labels that are their references. `first`: at most so many of each."""
    if scale == "smoke":
        return [], (tiny(problem),)
    labels, sets = [], []
    for column in ROUTING[problem][scale]:
        count = min(first or column.first, column.first)
        given = Instances(f"N = {column.nodes}", standard=f"{problem}{column.nodes}", first=column.first)
        if column.seconds:
            labels.append(Label(f"{problem}{column.nodes}-reference", problem, given, column.seconds))
            given = Instances(given.name, labels=labels[-1].name, first=count)
        sets.append(Instances(given.name, given.standard, labels=given.labels, first=count))
    return labels, tuple(sets)


def tiny(problem: str) -> Instances:
    return Instances("tiny", recipe=TINY[problem])


def taillard(scale: Scale, largest: int | None = None) -> tuple[Instances, ...]:
    """Taillard's job shops, up to `largest` jobs; at cpu scale the first three of each size up to 30 jobs."""
    if scale == "smoke":
        return (tiny("jssp"),)
    most, first = (30, 3) if scale == "cpu" else (100, None)
    sizes = [size for size in TAILLARD if size[0] <= min(most, largest or most)]
    return tuple(
        Instances(f"{jobs} x {machines}", standard=f"taillard-{jobs}x{machines}", first=first) for jobs, machines in sizes
    )
