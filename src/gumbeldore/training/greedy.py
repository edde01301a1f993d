"""The greedy solution among what is sampled: nothing worse than what the policy does by itself is ever learnt from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S
from gumbeldore.search.samplers import Greedy, Sampler
from gumbeldore.solutions import Solutions


@dataclass(frozen=True)
class WithGreedy:
    """A sampler, and after its sequences the greedy one."""

    sampler: Sampler

    def __call__(self, problem: Problem[S], policy: Policy[S], state: S, *, seeds: Int[Tensor, " batch"]) -> Solutions:
        sampled = self.sampler(problem, policy, state, seeds=seeds)
        greedy = Greedy(memory=self.sampler.memory)(problem, policy, state, seeds=seeds)
        depth = max(sampled.actions.shape[2], greedy.actions.shape[2])
        both = [
            torch.nn.functional.pad(each.actions, (0, depth - each.actions.shape[2]), value=-1) for each in (sampled, greedy)
        ]
        joined: dict[str, Any] = {
            name: torch.cat([getattr(sampled, name), getattr(greedy, name)], 1) for name in ("objective", "log_prob", "filled")
        }
        return replace(sampled, actions=torch.cat(both, 1), **joined)


def apart(solutions: Solutions) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """The best of the sampled sequences, and the greedy one, of what `WithGreedy` found."""
    return solutions.objective[:, :-1].amax(1), solutions.objective[:, -1]
