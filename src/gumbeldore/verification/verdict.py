"""What a verifier says about a solution."""

from __future__ import annotations

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
