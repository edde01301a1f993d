"""What is solved: instances of the size that a policy was trained on, and larger ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from contest.checkpoints import STAGES
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.problems import CVRP, JSSP, TSP, Gomoku
from gumbeldore.search.advantage import AdvantageFn, global_advantage, outcome
from gumbeldore.search.samplers import Greedy

SEED = 1414
EFFORT = 100
"""Attempts per item of the local search that makes the reference."""


@dataclass(frozen=True)
class Case:
    """Instances of one size, and a policy at one stage of its training."""

    training: str  # of the policy
    stage: str
    size: str
    problem: Problem[Any]
    inside: bool  # of the size of the training
    sigma: float  # the paper's
    advantage: AdvantageFn = global_advantage

    @property
    def name(self) -> str:
        return f"{self.training}-{self.size}-{self.stage}"

    @property
    def relative(self) -> bool:
        """Costs are compared as fractions of the reference; the outcomes of games are not."""
        return not isinstance(self.problem, Gomoku)

    def instances(self, count: int) -> Any:
        return self.problem.generate(count, generator=torch.Generator().manual_seed(SEED))

    def seeds(self, count: int) -> Tensor:
        return torch.randint(2**62, (count,), generator=torch.Generator().manual_seed(SEED + 1))

    def reference(self, policy: Network, state: Any, seeds: Tensor) -> Float[Tensor, " instance"]:
        """Good costs to measure gaps from: greedy solutions after a long local search; a won game."""
        if not self.relative:
            return torch.full((state.row_count,), -1.0)
        greedy = Greedy()(self.problem, policy, state, seeds=seeds)
        actions = self.problem.local_search(state, greedy.best_actions, effort=EFFORT, seeds=seeds)
        for index in range(actions.shape[1]):
            state = self.problem.step(state, actions[:, index])
        return -self.problem.objective(state)


def _sizes() -> list[Case]:
    return [
        Case("tsp", "", "20", TSP(20), True, 0.3),
        Case("tsp", "", "50", TSP(50), False, 0.3),
        Case("cvrp", "", "20", CVRP(20, 30), True, 3.0),
        Case("cvrp", "", "50", CVRP(50, 40), False, 3.0),
        Case("jssp", "", "6x6", JSSP(6, 6), True, 0.05),
        Case("jssp", "", "10x10", JSSP(10, 10), False, 0.05),
        Case("gomoku", "", "10", Gomoku(10), True, 5.0, outcome),  # its network has the size of the board
    ]


CASES = [replace(case, stage=stage) for case in _sizes() for stage in STAGES]

TINY = {
    "tsp": ("8", TSP(8)),
    "cvrp": ("6", CVRP(6, 12)),
    "jssp": ("4x3", JSSP(4, 3)),
    "gomoku": ("5", Gomoku(5)),
}
"""Sizes that check the script only."""


def quick_cases() -> list[Case]:
    """One tiny size of every problem, at both stages."""
    return [replace(case, size=TINY[case.training][0], problem=TINY[case.training][1]) for case in CASES if case.inside]
