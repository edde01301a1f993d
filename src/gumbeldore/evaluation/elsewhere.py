"""Solutions that something else found, in the same table: another program, an earlier version, a published result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gumbeldore.errors import require
from gumbeldore.evaluation.methods import MOST, Answer, Failure, Method
from gumbeldore.kits.instances import Arrays, InstanceSet
from gumbeldore.kits.kit import Instance, Kit


@dataclass(frozen=True)
class SolutionsMethod(Method):
    """The labels of sets as answers. What they cost is computed anew, by the same code as that of all others; how long they took is not known."""

    name: str
    answers: dict[str, tuple[int, ...]]  # actions by the instance's fingerprint

    @classmethod
    def of(cls, name: str, sets: Iterable[InstanceSet]) -> Self:
        """Those of all these sets."""
        return cls(name, {key: actions for each in sets for key, actions in _labels(name, each)})

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {"solutions": hashlib.sha256(repr(sorted(self.answers.items())).encode()).hexdigest()}

    @property
    def random(self) -> bool:
        return False

    def together(self, kit: Kit, given: Instance) -> int:
        return MOST

    def item(self, kit: Kit, instances: tuple[Instance, ...], seeds: Sequence[int]) -> list[str]:
        return [fingerprint(given.arrays) for given in instances]

    def solve(self, item: list[str]) -> list[Answer | Failure]:
        missing = Failure(f"`{self.name}` has no solution of this instance")
        return [Answer(self.answers[key], 0.0) if key in self.answers else missing for key in item]


def _labels(name: str, solved: InstanceSet) -> Iterator[tuple[str, tuple[int, ...]]]:
    labels = solved.labels
    require(labels is not None, f"`solutions`: a file of `{name}` holds instances without solutions.")
    assert labels is not None
    for index, row in enumerate(labels.actions.tolist()):
        yield fingerprint(solved.instance(index)), tuple(action for action in row if action >= 0)


def fingerprint(arrays: Arrays) -> str:
    """A hash of an instance, whatever types its numbers have."""
    content = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        content.update(f"{name}{np.shape(array)}".encode())
        content.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return content.hexdigest()
