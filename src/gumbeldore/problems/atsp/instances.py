"""Instances of the ATSP: their arrays, random ones by a recipe that anyone can repeat with numpy, and the standard test sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gumbeldore.kits.instances import InstanceSchema, InstanceSet, check_generator
from gumbeldore.problems.atsp.problem import ATSP
from gumbeldore.problems.tours import DISTANCES, verify_by_matrix

KIND = InstanceSchema(
    "atsp",
    ATSP(),
    {DISTANCES: "instance city city"},
    frozenset(),
    lambda given: ATSP().instances(given[DISTANCES]),
    verify_by_matrix,
    lambda given: {"cities": given[DISTANCES].shape[1]},
)


@dataclass(frozen=True)
class ATSPGenerator:
    """Distances uniform in 0 .. 1, `RandomState(seed).uniform(size=(count, cities, cities))`, with 0 on the diagonal, then the shortest ways by them: the
    `tmat` class of MatNet (Kwon et al. 2021) and of rl4co, in floats as there."""

    cities: int = 100
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, cities=self.cities, seed=self.seed)

    def generate(self) -> InstanceSet:
        distances = np.random.RandomState(self.seed).uniform(size=(self.count, self.cities, self.cities))
        distances[:, range(self.cities), range(self.cities)] = 0
        for over in range(self.cities):
            np.minimum(distances, distances[:, :, over, None] + distances[:, over, None, :], out=distances)
        return InstanceSet(KIND, {DISTANCES: distances})


STANDARD = {f"atsp{cities}": ATSPGenerator(cities, count, 1234) for cities, count in ((20, 1000), (50, 500), (100, 128))}
