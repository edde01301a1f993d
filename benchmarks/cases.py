"""What is timed: one record per case, read by both sides. Imports neither this package nor the public code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["sampling", "greedy", "training", "epoch"]

UNITS: dict[Kind, str] = {
    "sampling": "trajectories/s",
    "greedy": "instances/s",
    "training": "examples/s",
    "epoch": "epochs/s",
}
BEAM_WIDTH, ROUNDS = 32, 4
SIGMA = {"tsp": 0.3, "cvrp": 3.0, "jssp": 0.05}  # the paper's

ELSEWHERE_GFLOPS = 130.0
"""Rate of a plain matrix product on the machine of the figures `Case.elsewhere`."""


@dataclass(frozen=True)
class Size:
    """Of a network. The job shop has `layers` blocks before the final one."""

    d: int
    layers: int
    heads: int
    ff: int
    lehd: bool = False


SMALL = Size(64, 3, 8, 256)
TSP_PAPER, CVRP_PAPER, JSSP_PAPER = Size(128, 9, 8, 512), Size(192, 9, 12, 512), Size(64, 6, 8, 256)
TSP_LEHD, CVRP_LEHD = Size(128, 6, 8, 512, lehd=True), Size(192, 6, 12, 512, lehd=True)


@dataclass(frozen=True)
class Case:
    """One thing to time."""

    name: str
    kind: Kind
    problem: Literal["tsp", "cvrp", "jssp"]
    size: tuple[int, int]  # cities and nothing; customers and capacity; jobs and machines
    batch: int
    network: Size
    elsewhere: float | None = None  # what the public code reached on another machine of two quiet cores, in the same unit
    public: bool = True  # whether `public.py` can run it
    extrapolate: bool = False  # public code: time steps of constant cost instead of whole runs
    length: int = 0  # training on routes: nodes of the partial routes; both sides draw it, here it is fixed near its mean
    instances: int = 0  # epoch: instances to sample, and to validate on
    batches: int = 0  # epoch: gradient steps

    @property
    def steps(self) -> int:
        """Actions of a solution."""
        return self.size[0] * self.size[1] if self.problem == "jssp" else self.size[0]


def small(case: Case) -> Case:
    """The same at a tiny size: checks the benchmark, says nothing about speed."""
    size = {"tsp": (10, 0), "cvrp": (9, 30), "jssp": (4, 3)}[case.problem]
    return replace(
        case,
        size=size,
        batch=min(case.batch, 16),
        network=replace(case.network, d=16, layers=2, heads=2, ff=32),
        length=min(case.length, 6),
        instances=min(case.instances, 10),
        batches=min(case.batches, 3),
    )


CASES = [
    Case("tsp20-small", "sampling", "tsp", (20, 0), 8, SMALL, 326),
    Case("tsp50-small", "sampling", "tsp", (50, 0), 4, SMALL, 58),
    Case("tsp20-paper", "sampling", "tsp", (20, 0), 8, TSP_PAPER, 95),
    Case("tsp50-paper", "sampling", "tsp", (50, 0), 4, TSP_PAPER, 15.3),
    Case("tsp100-paper", "sampling", "tsp", (100, 0), 1, TSP_PAPER, 4.6),
    Case("cvrp20-small", "sampling", "cvrp", (20, 30), 4, SMALL),
    Case("cvrp50-small", "sampling", "cvrp", (50, 40), 4, SMALL),
    Case("cvrp20-paper", "sampling", "cvrp", (20, 30), 4, CVRP_PAPER, 57),
    Case("cvrp50-paper", "sampling", "cvrp", (50, 40), 4, CVRP_PAPER, 9.4),
    Case("tsp50-lehd", "sampling", "tsp", (50, 0), 4, TSP_LEHD, public=False),
    Case("cvrp50-lehd", "sampling", "cvrp", (50, 40), 4, CVRP_LEHD, public=False),
    Case("jssp6x6", "sampling", "jssp", (6, 6), 1, JSSP_PAPER, 31),
    Case("jssp6x6-batch16", "sampling", "jssp", (6, 6), 16, JSSP_PAPER, public=False),
    Case("jssp10x10", "sampling", "jssp", (10, 10), 1, JSSP_PAPER, 3.1),
    Case("jssp15x15", "sampling", "jssp", (15, 15), 1, JSSP_PAPER, 0.30, extrapolate=True),
    Case("greedy-tsp100", "greedy", "tsp", (100, 0), 16, TSP_PAPER, 4.3),
    Case("greedy-jssp15x15", "greedy", "jssp", (15, 15), 1, JSSP_PAPER, 0.28),
    Case("greedy-jssp50x20", "greedy", "jssp", (50, 20), 1, JSSP_PAPER, 1 / 258, extrapolate=True),
    Case("greedy-jssp100x20", "greedy", "jssp", (100, 20), 1, JSSP_PAPER, 1 / 2300, extrapolate=True),
    Case("train-tsp100", "training", "tsp", (100, 0), 256, TSP_PAPER, 117, length=52),
    Case("train-cvrp50", "training", "cvrp", (50, 40), 256, CVRP_PAPER, length=27),
    Case("train-jssp10x10", "training", "jssp", (10, 10), 128, JSSP_PAPER, 87),
    Case("train-jssp15x15", "training", "jssp", (15, 15), 128, JSSP_PAPER, 19),
    Case("epoch-tsp20-small", "epoch", "tsp", (20, 0), 256, SMALL, 1 / 37, public=False, instances=200, batches=50),
]


def chosen(only: str) -> list[Case]:
    """Cases whose name contains one of the words, separated by commas."""
    return [case for case in CASES if any(word in case.name for word in only.split(","))]


def named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)
