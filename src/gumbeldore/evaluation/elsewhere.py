"""Solutions that something else found, in the same table: another program, an earlier version, a published result."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.evaluation.methods import MOST, Answer, Failure, Method
from gumbeldore.problems.instances import Arrays, InstanceSet
from gumbeldore.problems.kit import Given, Kit


@dataclass(frozen=True)
class SolutionsMethod(Method):
    """The labels of a set as answers. What they cost is computed anew, by the same code as that of all others; how long they took is not known."""

    name: str
    solved: InstanceSet

    def __post_init__(self) -> None:
        require(self.solved.labels is not None, f"`solutions`: the file of `{self.name}` holds instances without solutions.")

    @cached_property
    def _actions(self) -> dict[str, tuple[int, ...]]:
        assert self.solved.labels is not None
        rows = enumerate(self.solved.labels.actions.tolist())
        return {fingerprint(self.solved.instance(i)): tuple(action for action in row if action >= 0) for i, row in rows}

    @cached_property
    def identity(self) -> dict[str, Any]:
        content = hashlib.sha256(repr(sorted(self._actions.items())).encode())
        return {"solutions": content.hexdigest()}

    @property
    def random(self) -> bool:
        return False

    def together(self, kit: Kit, given: Given) -> int:
        return MOST

    def item(self, kit: Kit, instances: tuple[Given, ...], seeds: Sequence[int]) -> list[str]:
        return [fingerprint(given.arrays) for given in instances]

    def solve(self, item: list[str]) -> list[Answer | Failure]:
        missing = Failure(f"`{self.name}` has no solution of this instance")
        return [Answer(self._actions[key], 0.0) if key in self._actions else missing for key in item]


def fingerprint(arrays: Arrays) -> str:
    """A hash of an instance, whatever types its numbers have."""
    content = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        content.update(f"{name}{np.shape(array)}".encode())
        content.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return content.hexdigest()
