"""Taillard's flow shop benchmark ta001 .. ta120, generated from its seeds.

Generator and seeds (`taillard.csv`) are those of E. Taillard, "Benchmarks for basic scheduling problems", European Journal of Operational Research
64 (1993). The best known makespans are the upper bounds collected in github.com/Guillaume-Helbecque/P3D-DFS; all are optimal but those of
some instances with 20 machines.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.problems.lehmer import lehmer, uniform_integers

SOURCE = "table of best known values (P3D-DFS"
SIZES = (
    (20, 5),
    (20, 10),
    (20, 20),
    (50, 5),
    (50, 10),
    (50, 20),
    (100, 5),
    (100, 10),
    (100, 20),
    (200, 10),
    (200, 20),
    (500, 20),
)


@dataclass(frozen=True)
class Benchmark:
    """One of Taillard's instances: its size, its seed, and its best known makespan."""

    name: str
    jobs: int
    machines: int
    seed: int
    best: int

    def times(self) -> NDArray[np.int64]:
        drawn = uniform_integers(lehmer([self.seed], self.jobs * self.machines), 99) + 1
        return drawn.view(self.machines, self.jobs).t().contiguous().numpy()


@cache
def benchmarks() -> tuple[Benchmark, ...]:
    """ta001 .. ta120 in order."""
    text = files("gumbeldore.problems.pfsp").joinpath("taillard.csv").read_text(encoding="utf-8")
    return tuple(
        Benchmark(row.pop("name"), **{key: int(value) for key, value in row.items()})
        for row in csv.DictReader(text.splitlines())
    )


def of_size(jobs: int, machines: int) -> list[Benchmark]:
    return [benchmark for benchmark in benchmarks() if (benchmark.jobs, benchmark.machines) == (jobs, machines)]


def best_makespans(jobs: int, machines: int) -> NDArray[np.float64]:
    """The best known makespans of Taillard's ten instances of a size, in order."""
    return np.array([benchmark.best for benchmark in of_size(jobs, machines)], dtype=np.float64)


def recognised(times: NDArray[Any]) -> Benchmark | None:
    """The benchmark that these times are, by their content."""
    return next((benchmark for benchmark in of_size(*times.shape) if np.array_equal(benchmark.times(), times)), None)
