"""Instances of the TSP: their arrays, random ones by generators that anyone can repeat with numpy, and the standard test sets.

`numpy.random.RandomState` is frozen: its numbers never change between versions of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gumbeldore.io.plane import unit_square
from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet, check_generator
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.tsp.problem import TSP
from gumbeldore.problems.tsp.verify import verify_tsp


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_tsp(instance["coordinates"], [0, *actions])


def unit(instance: Arrays) -> tuple[Arrays, float]:
    points, scale = unit_square(instance["coordinates"].astype(np.float64))
    return {"coordinates": points}, scale


KIND = InstanceSchema(
    "tsp",
    TSP(),
    {"coordinates": "instance city 2"},
    frozenset(),
    lambda given: TSP().instances(given["coordinates"].float()),
    verify,
    lambda given: {"cities": given["coordinates"].shape[1]},
    unit,
)


@dataclass(frozen=True)
class TSPGenerator:
    """Cities uniform in the unit square: `RandomState(seed).uniform(size=(count, cities, 2))`."""

    cities: int = 100
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, cities=self.cities, seed=self.seed)

    def generate(self) -> InstanceSet:
        coordinates = np.random.RandomState(self.seed).uniform(size=(self.count, self.cities, 2))
        return InstanceSet(KIND, {"coordinates": coordinates})


STANDARD = {  # the test sets of the paper, from Kool et al. (2019) and Drakulic et al. (2023)
    **{f"tsp{cities}": TSPGenerator(cities, 10_000, 1234) for cities in (20, 50, 100)},
    **{f"tsp{cities}": TSPGenerator(cities, 128, 777) for cities in (200, 500, 1000)},
}
