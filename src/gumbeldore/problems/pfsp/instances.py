"""Instances of permutation flow shops: their arrays, random ones that anyone can repeat with numpy, and the standard test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet, check_generator
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.pfsp.problem import PFSP
from gumbeldore.problems.pfsp.taillard import SIZES, of_size
from gumbeldore.problems.pfsp.verify import verify_pfsp


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_pfsp(instance["times"], actions)


KIND = InstanceSchema(
    "pfsp",
    PFSP(),
    {"times": "instance job machine"},
    frozenset(),
    lambda given: PFSP().instances(given["times"]),
    verify,
    lambda given: {"jobs": given["times"].shape[1], "machines": given["times"].shape[2]},
)


@dataclass(frozen=True)
class PFSPGenerator:
    """Times uniform in 1 .. 99: `RandomState(seed).randint(1, 100, (count, jobs, machines))`."""

    jobs: int = 20
    machines: int = 5
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, jobs=self.jobs, machines=self.machines, seed=self.seed)

    def generate(self) -> InstanceSet:
        shape = self.count, self.jobs, self.machines
        return InstanceSet(KIND, {"times": np.random.RandomState(self.seed).randint(1, 100, shape, dtype=np.int64)})


@dataclass(frozen=True)
class TaillardGenerator:
    """Taillard's (1993) ten instances of a size, from his generator and seeds."""

    jobs: int
    machines: int

    def generate(self) -> InstanceSet:
        return InstanceSet(KIND, {"times": np.stack([each.times() for each in of_size(self.jobs, self.machines)])})


STANDARD = {f"taillard-{jobs}x{machines}": TaillardGenerator(jobs, machines) for jobs, machines in SIZES}
