"""Instances of flexible job shops: their arrays, random ones that anyone can repeat with numpy, and sets of the usual sizes.

`numpy.random.RandomState` is frozen: its numbers never change between versions of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet, check_generator
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.fjsp.distributions import Distribution, random_shops
from gumbeldore.problems.fjsp.problem import FJSP
from gumbeldore.problems.fjsp.verify import verify_fjsp


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_fjsp(instance["times"], actions)


KIND = InstanceSchema(
    "fjsp",
    FJSP(),
    {"times": "instance job operation machine"},
    frozenset(),
    lambda given: FJSP().instances(given["times"]),
    verify,
    lambda given: {"jobs": given["times"].shape[1], "machines": given["times"].shape[3]},
)


@dataclass(frozen=True)
class FJSPGenerator:
    """Flexible job shops of a distribution of the literature, sd1 or sd2.

    What is drawn in which order is said in `random_shops`; its numbers are those of one RandomState(seed).uniform.
    """

    jobs: int = 10
    machines: int = 5
    times: Distribution = "sd1"
    count: int = 100  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, jobs=self.jobs, machines=self.machines, seed=self.seed)

    def generate(self) -> InstanceSet:
        random = np.random.RandomState(self.seed)
        times = random_shops(
            self.times, self.count, self.jobs, self.machines, lambda size: torch.from_numpy(random.uniform(size=size))
        )
        return InstanceSet(KIND, {"times": times.numpy()})


_SIZES = ((10, 5), (20, 5), (15, 10), (20, 10))
STANDARD = {
    f"{name}-{jobs}x{machines}": FJSPGenerator(jobs, machines, name) for name in ("sd1", "sd2") for jobs, machines in _SIZES
}
"""100 instances of each of the literature's sizes. They are not the files that its tables are about, which nobody can draw again."""
