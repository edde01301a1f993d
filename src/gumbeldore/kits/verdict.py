"""What a verifier says about a solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """Whether a solution is feasible; its objective (larger is better, -inf if infeasible); and the reason if it is not."""

    feasible: bool
    objective: float
    reason: str = ""

    @classmethod
    def infeasible(cls, reason: str) -> Verdict:
        return cls(False, float("-inf"), reason)


def permutation_fault(order: Sequence[int], count: int, one: str, many: str) -> str:
    """Why `order` is not a permutation of 0 .. count - 1, or an empty string if it is one."""
    seen: set[int] = set()
    for position, entry in enumerate(order):
        if not 0 <= entry < count:
            return f"{one} {entry} at position {position} does not exist: {many} are 0 .. {count - 1}"
        if entry in seen:
            return f"{one} {entry} is visited again at position {position}"
        seen.add(entry)
    if len(seen) < count:
        return f"{count - len(seen)} {many} are never visited, the first is {min(set(range(count)) - seen)}"
    return ""
