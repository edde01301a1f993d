"""Instances of the orienteering problem: their arrays, random ones that anyone can repeat with numpy, and the standard test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gumbeldore.errors import require
from gumbeldore.io.plane import unit_square
from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet, check_generator
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problems.op.prizes import KINDS, drawn_prizes, usual_budget
from gumbeldore.problems.op.problem import OP, OPState
from gumbeldore.problems.op.verify import verify_op

DISTANCES = "distances"
"""The array of an instance with distances of its own."""


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_op(instance["nodes"], instance["prizes"], instance["budget"], actions, instance.get(DISTANCES))


def state(given: dict[str, torch.Tensor]) -> OPState:
    return OP().instances(given["nodes"].double(), given["prizes"], given["budget"], given.get(DISTANCES))


def size(given: Arrays) -> dict[str, Any]:
    return {"customers": given["nodes"].shape[1] - 1}


def unit(instance: Arrays) -> tuple[Arrays, float]:
    """Nodes in the unit square; prizes as they are. Distances of its own, and their budget, stay in their unit."""
    nodes, scale = unit_square(instance["nodes"].astype(np.float64))
    if DISTANCES in instance:
        return {**instance, "nodes": nodes}, 1.0
    return {**instance, "nodes": nodes, "budget": np.asarray(instance["budget"] / scale)}, 1.0


KIND = InstanceSchema(
    "op",
    OP(),
    {"nodes": "instance node 2", "prizes": "instance node", "budget": "instance"},
    frozenset(),
    state,
    verify,
    size,
    unit,
    {DISTANCES: "instance node node"},
)


@dataclass(frozen=True)
class OPGenerator:
    """Depot and customers uniform in the unit square; prizes and budget as in `OP`.

    In this order from one RandomState(seed), as in the public code of Kool et al. (2019): `uniform(size=(count, 2))` for depots,
    `uniform(size=(count, customers, 2))`, and for uniform prizes `randint(0, 100, (count, customers))`, of which prizes are (1 + it) / 100.
    """

    customers: int = 100
    prizes: str = "distance"  # or uniform, constant
    budget: float | None = None  # the longest tour; without it 2, 3, 4 for 20, 50, 100 customers
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, customers=self.customers, seed=self.seed)
        require(self.prizes in KINDS, f"`prizes` must be one of {', '.join(KINDS)}, got {self.prizes!r}.")
        require(
            self.budget is None or 0 < self.budget < float("inf"), f"`budget` must be positive and finite, got {self.budget}."
        )

    def generate(self) -> InstanceSet:
        random, shape = np.random.RandomState(self.seed), (self.count, self.customers)
        depots = random.uniform(size=(self.count, 1, 2))
        nodes = np.concatenate([depots, random.uniform(size=(*shape, 2))], 1)
        drawn = (random.randint(0, 100, shape) + 0.5) / 100 if self.prizes == "uniform" else np.zeros(shape)
        away = np.linalg.norm(nodes[:, 1:] - depots, axis=-1)
        prizes = drawn_prizes(self.prizes, torch.from_numpy(away), torch.from_numpy(drawn)).numpy()
        budget = usual_budget(self.customers) if self.budget is None else self.budget
        return InstanceSet(
            KIND, {"nodes": nodes, "prizes": np.pad(prizes, ((0, 0), (1, 0))), "budget": np.full(self.count, float(budget))}
        )


STANDARD = {  # the seed of the test sets of Kool et al. (2019)
    f"op{customers}{'' if prizes == 'distance' else f'-{prizes}'}": OPGenerator(customers, prizes, None, 10_000, 1234)
    for prizes in ("distance", "uniform", "constant")
    for customers in (20, 50, 100)
}
