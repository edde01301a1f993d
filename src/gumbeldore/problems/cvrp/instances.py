"""Instances of the CVRP: their arrays, random ones by generators that anyone can repeat with numpy, and the standard test sets.

`numpy.random.RandomState` is frozen: its numbers never change between versions of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.io.plane import unit_square
from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet, check_generator
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.cvrp.problem import CVRP, LARGEST_DEMAND
from gumbeldore.problems.cvrp.verify import verify_cvrp


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    customers, via_depot = [action // 2 for action in actions], [action % 2 for action in actions]
    return verify_cvrp(instance["nodes"], instance["demands"], int(instance["capacity"]), customers, via_depot)


def size(given: Arrays) -> dict[str, Any]:
    low, high = (max(LARGEST_DEMAND, int(bound)) for bound in (given["capacity"].min(), given["capacity"].max()))
    return {"customers": given["nodes"].shape[1] - 1, "capacity": low if low == high else (low, high)}


def unit(instance: Arrays) -> tuple[Arrays, float]:
    nodes, scale = unit_square(instance["nodes"].astype(np.float64))
    return {**instance, "nodes": nodes}, scale


KIND = InstanceSchema(
    "cvrp",
    CVRP(),
    {"nodes": "instance node 2", "demands": "instance node", "capacity": "instance"},
    frozenset({"demands", "capacity"}),
    lambda given: CVRP().instances(given["nodes"].float(), given["demands"], given["capacity"]),
    verify,
    size,
    unit,
)


@dataclass(frozen=True)
class CVRPGenerator:
    """Depot and customers uniform in the unit square, demands uniform in 1 .. 9, and a capacity or a range of them.

    In this order from one RandomState(seed): `uniform(size=(count, 1 + customers, 2))`, `randint(1, 10, (count, customers))`,
    `randint(low, high + 1, count)`.
    """

    customers: int = 100
    capacity: int | tuple[int, int] = 50  # of the vehicle: one number, or the smallest and the largest
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, customers=self.customers, seed=self.seed)
        low, high = self._range
        require(9 <= low <= high, f"`capacity` must be at least 9, the largest demand, and low <= high, got {self.capacity}.")

    @property
    def _range(self) -> tuple[int, int]:
        return (self.capacity, self.capacity) if isinstance(self.capacity, int) else self.capacity

    def generate(self) -> InstanceSet:
        random, (low, high) = np.random.RandomState(self.seed), self._range
        nodes = random.uniform(size=(self.count, 1 + self.customers, 2))
        demands = np.zeros((self.count, 1 + self.customers), dtype=np.int64)
        demands[:, 1:] = random.randint(1, 10, (self.count, self.customers), dtype=np.int64)
        capacity = random.randint(low, high + 1, self.count, dtype=np.int64)
        return InstanceSet(KIND, {"nodes": nodes, "demands": demands, "capacity": capacity})


STANDARD = {  # the paper's sizes and capacities; there is no public recipe, so the seeds are ours
    **{f"cvrp{n}": CVRPGenerator(n, capacity, 10_000, 1234) for n, capacity in {20: 30, 50: 40, 100: 50}.items()},
    **{f"cvrp{n}": CVRPGenerator(n, capacity, 128, 777) for n, capacity in {200: 80, 500: 100, 1000: 250}.items()},
}
