"""What one search is given: the instances, who is asked about them, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from jaxtyping import Int
from torch import Tensor

from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S
from gumbeldore.search.deadline import Deadline
from gumbeldore.solutions import Solutions


@dataclass(frozen=True)
class Task(Generic[S]):
    """Instances that are searched together."""

    problem: Problem[S]
    policy: Policy[S]
    state: S  # one initial row per instance
    seeds: Int[Tensor, " batch"]
    augmentations: int = 1  # if there are several, the first action chooses one of them
    deadline: Deadline | None = None

    @property
    def augmented(self) -> bool:
        return self.augmentations > 1

    def own(self, solutions: Solutions) -> Solutions:
        """Solutions of the search as solutions of the instances themselves."""
        return solutions
