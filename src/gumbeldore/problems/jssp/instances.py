"""Instances of the job shop: their arrays, random ones by generators that anyone can repeat with numpy, and the standard test sets.

`numpy.random.RandomState` is frozen: its numbers never change between versions of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet, check_generator
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.jssp.problem import JSSP
from gumbeldore.problems.jssp.taillard import taillard_instances
from gumbeldore.problems.jssp.verify import verify_jssp


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_jssp(instance["times"], instance["machines"], actions)


def unit(instance: Arrays) -> tuple[Arrays, float]:
    """Times like those that policies are trained on, 1 .. 99. Where the longest is about that, they stay as they are."""
    longest = float(instance["times"].max())
    if 50 <= longest <= 200 or longest == 0:
        return instance, 1.0
    return {**instance, "times": instance["times"] * (99 / longest)}, longest / 99


KIND = InstanceSchema(
    "jssp",
    JSSP(),
    {"times": "instance job machine", "machines": "instance job machine"},
    frozenset({"machines"}),
    lambda given: JSSP().instances(given["times"], given["machines"].long()),
    verify,
    lambda given: {"jobs": given["times"].shape[1], "machines": given["times"].shape[2]},
    unit,
)


@dataclass(frozen=True)
class JSSPGenerator:
    """Processing times uniform in 1 .. 99, machine orders uniform permutations.

    In this order from one RandomState(seed): `randint(1, 100, (count, jobs, machines))`, and
    `uniform(size=(count, jobs, machines)).argsort(2)`.
    """

    jobs: int = 15
    machines: int = 15
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, jobs=self.jobs, machines=self.machines, seed=self.seed)

    def generate(self) -> InstanceSet:
        random, shape = np.random.RandomState(self.seed), (self.count, self.jobs, self.machines)
        times = random.randint(1, 100, shape, dtype=np.int64)
        return InstanceSet(KIND, {"times": times, "machines": random.uniform(size=shape).argsort(2)})


@dataclass(frozen=True)
class TaillardGenerator:
    """Taillard's (1993) ten instances of a size, from his generator and seeds."""

    jobs: int
    machines: int

    def generate(self) -> InstanceSet:
        state = taillard_instances(self.jobs, self.machines)
        return InstanceSet(KIND, {"times": state.times.numpy(), "machines": state.machines.numpy()})


TAILLARD_SIZES = ((15, 15), (20, 15), (20, 20), (30, 15), (30, 20), (50, 15), (50, 20), (100, 20))
STANDARD = {f"taillard-{jobs}x{machines}": TaillardGenerator(jobs, machines) for jobs, machines in TAILLARD_SIZES}
