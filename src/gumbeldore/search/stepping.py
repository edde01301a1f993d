"""Take a Step and Reconsider (Pirnay and Grimm, ECAI 2024): sample, follow the best sequence so far for some steps, sample again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from gumbeldore.errors import require
from gumbeldore.problem import S
from gumbeldore.search.augmentation import with_augmentations
from gumbeldore.search.auto import AutoNucleus
from gumbeldore.search.following import Following
from gumbeldore.search.memory import MemoryBudget
from gumbeldore.search.samplers import MEMORY, TrieSampler, check_positive, evaluation_mode
from gumbeldore.search.task import Task
from gumbeldore.solutions import Solutions


@dataclass(frozen=True)
class StepAndReconsider(TrieSampler):
    """Rounds of sampling without replacement below a node that moves `step` actions at a time along the best sequence so far.

    Every round samples `beam_width` sequences that no round has seen. If one of them is better, it is followed from there. The first
    round is a deterministic beam search unless that is switched off. The authors use a constant nucleus and no `sigma`.
    """

    by_horizon: ClassVar[bool] = True

    beam_width: int = 32
    step: int = 10
    nucleus: float | Literal["auto"] = 1.0
    sigma: float | Literal["auto"] = 0.0  # with advantages between rounds, as in `Gumbeldore`; 0: without
    first_round_deterministic: bool = True
    memory: int = MEMORY
    transpositions: bool = True  # evaluate equal states once, where the problem has keys
    augmentations: int = 1  # forms of an instance among which the first action chooses, where the problem has such

    def __post_init__(self) -> None:
        for name in ("beam_width", "step", "memory", "augmentations"):
            check_positive(name, getattr(self, name))
        p = self.nucleus
        require(p == "auto" or 0 < p <= 1, f'`nucleus` must lie in (0, 1], or be "auto", got {p!r}. 1 switches it off.')
        require(
            p != "auto" or self.first_round_deterministic,
            '`nucleus="auto"` needs `first_round_deterministic=True`: the first round decides it.',
        )
        sigma = self.sigma
        require(sigma == "auto" or 0 <= sigma < float("inf"), f'`sigma` must be at least 0, or "auto", got {sigma!r}.')

    def rounds_of(self, task: Task[Any]) -> Iterator[Solutions]:
        task = with_augmentations(task, self.augmentations)
        with evaluation_mode(task.policy):
            following = self._following(task)
        while not following.results or bool(following.incumbent.active.any()):
            with evaluation_mode(task.policy), torch.inference_mode():
                if self.first_round_deterministic and not following.results:
                    following.beam(self.beam_width, task.augmentations)
                else:
                    following.sample(
                        self.beam_width, len(following.results), following.incumbent.active if following.results else None
                    )
                following.incumbent.advance(following.search, self.step)
                solutions = following.solutions
            yield task.own(solutions)  # outside: the caller's code runs with its own gradient mode

    def _following(self, task: Task[S]) -> Following[S]:
        search = self.budget(task.problem.horizon(task.state)).search(task, transpositions=self.transpositions)
        auto = self.nucleus == "auto"
        nucleus = AutoNucleus.start(task.state.row_count, task.state.device) if auto else float(self.nucleus)
        return Following(search, task.seeds, nucleus, self.sigma)

    def budget(self, horizon: int) -> MemoryBudget:
        return MemoryBudget(self.beam_width * max(1, -(-horizon // self.step)), self.beam_width, self.memory)
