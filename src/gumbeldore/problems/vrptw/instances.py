"""Instances of vehicle routing with time windows: their arrays, random ones that anyone can repeat with numpy, and test sets.

`numpy.random.RandomState` is frozen: its numbers never change between versions of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gumbeldore.errors import require
from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet, check_generator
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.vrptw.problem import LARGEST_DEMAND, VRPTW, usual_capacity
from gumbeldore.problems.vrptw.verify import verify_vrptw
from gumbeldore.problems.vrptw.windows import drawn_windows

AXES = {
    "nodes": "instance node 2",
    "demands": "instance node",
    "capacity": "instance",
    "windows": "instance node 2",
    "service": "instance node",
    "parts": "instance",
}


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    customers, via_depot = [action // 2 for action in actions], [action % 2 for action in actions]
    given = {name: instance[name] for name in ("nodes", "demands", "windows", "service")}
    whole = {name: int(instance[name]) for name in ("capacity", "parts")}
    return verify_vrptw(**given, **whole, customers=customers, via_depot=via_depot)


def size(given: Arrays) -> dict[str, Any]:
    return {"customers": given["nodes"].shape[1] - 1, "capacity": max(LARGEST_DEMAND, int(given["capacity"].max()))}


KIND = InstanceSchema(
    "vrptw",
    VRPTW(),
    AXES,
    frozenset({"demands", "capacity", "parts"}),
    lambda given: VRPTW().instances(**given),
    verify,
    size,
)
"""A policy sees instances in their own units: distances may be cut down in these, so they are never scaled."""


@dataclass(frozen=True)
class VRPTWGenerator:
    """Depot and customers uniform in the unit square, demands uniform in 1 .. 9, windows and service times of Liu et al. (2024).

    In this order from one RandomState(seed): `uniform(size=(count, 1 + customers, 2))`, `randint(1, 10, (count, customers))`,
    `uniform(size=(3, count, customers))`; what the last ones mean is said in `drawn_windows`.
    """

    customers: int = 100
    capacity: int | None = None  # of the vehicle; none: 30 + customers / 5, and 30 for up to 20 customers
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, customers=self.customers, seed=self.seed)
        require(
            self.capacity is None or self.capacity >= LARGEST_DEMAND,
            f"`capacity` must be at least {LARGEST_DEMAND}, the largest demand, got {self.capacity}.",
        )

    def generate(self) -> InstanceSet:
        random, shape = np.random.RandomState(self.seed), (self.count, self.customers)
        nodes = random.uniform(size=(self.count, 1 + self.customers, 2))
        demands = np.zeros((self.count, 1 + self.customers), dtype=np.int64)
        demands[:, 1:] = random.randint(1, 1 + LARGEST_DEMAND, shape, dtype=np.int64)
        away = np.sqrt(np.square(nodes[:, 1:] - nodes[:, :1]).sum(2))
        windows, service = drawn_windows(torch.from_numpy(away), torch.from_numpy(random.uniform(size=(3, *shape))))
        capacity = usual_capacity(self.customers) if self.capacity is None else self.capacity
        arrays = {"nodes": nodes, "demands": demands, "capacity": np.full(self.count, capacity)}
        arrays |= {"windows": windows.numpy(), "service": service.numpy(), "parts": np.zeros(self.count, dtype=np.int64)}
        return InstanceSet(KIND, arrays)


STANDARD = {  # sizes and capacities of the literature; its files are not public numbers of a seed, so the seeds are ours
    **{f"vrptw{n}": VRPTWGenerator(n, None, 1000, 1234) for n in (20, 50, 100)},
    "vrptw200": VRPTWGenerator(200, None, 128, 777),
}
