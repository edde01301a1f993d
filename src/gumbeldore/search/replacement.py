"""Sampling with replacement ('WR'): independent sequences, the baseline of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.problem import Problem, S, check_horizon, dead_ends, final_objective, precise, step_some
from gumbeldore.search import gumbel
from gumbeldore.search.augmentation import with_augmentations
from gumbeldore.search.evaluator import Evaluator
from gumbeldore.search.samplers import MEMORY, Sampler, check_positive, evaluation_mode
from gumbeldore.search.task import Task
from gumbeldore.solutions import Diagnostics, Solutions


@dataclass(frozen=True)
class WithReplacement(Sampler):
    """`samples` independent sequences per instance. Sequences that share a prefix share its policy evaluation."""

    samples: int = 128
    nucleus: float = 1.0
    memory: int = MEMORY
    augmentations: int = 1  # forms of an instance among which the first action chooses, where the problem has such

    def __post_init__(self) -> None:
        check_positive("samples", self.samples)
        check_positive("memory", self.memory)
        check_positive("augmentations", self.augmentations)
        require(0 < self.nucleus <= 1, f"`nucleus` must lie in (0, 1], got {self.nucleus}. 1 switches the truncation off.")

    def rounds_of(self, task: Task[Any]) -> Iterator[Solutions]:
        task = with_augmentations(task, self.augmentations)
        with evaluation_mode(task.policy):
            evaluator = Evaluator(task.problem, task.policy, task.state, self.memory // 2, task.deadline)
            solutions = self._sample(task.problem, evaluator, task.state, task.seeds)
        yield task.own(solutions)

    def _sample(self, problem: Problem[S], evaluator: Evaluator[S], state: S, seeds: Int[Tensor, " batch"]) -> Solutions:
        batch, horizon = state.row_count, problem.horizon(state)
        row = state.instance[:, None].expand(batch, self.samples)  # the distinct prefix that each sample stands at
        log_prob = torch.zeros(batch, self.samples, dtype=precise(state.device), device=state.device)
        taken: list[Tensor] = []
        while True:
            ended = problem.done(state)
            dead = dead_ends(problem, state, ended)
            open_rows = ~(ended | dead)
            if not bool(open_rows.any()):
                break
            check_horizon(problem, len(taken), horizon)
            wanted = open_rows.nonzero().squeeze(1)
            prior = evaluator(state, wanted, state.instance[wanted])
            full = prior.new_full((state.row_count, prior.shape[1]), -torch.inf).index_copy_(0, wanted, prior)
            conditional = gumbel.nucleus(gumbel.normalise(full.to(log_prob.dtype)), self.nucleus)
            moving = open_rows[row]
            action = self._draw(conditional[row], seeds, len(taken)).where(moving, 0)
            log_prob = log_prob + full.to(log_prob.dtype)[row, action].where(moving, 0)
            taken.append(action.where(moving, -1))
            evaluator.cached += moving.sum(1) - torch.bincount(state.instance[wanted], minlength=batch)
            key, row = torch.unique(row * prior.shape[1] + action, return_inverse=True)
            state, moving = state.rows(key // prior.shape[1]), open_rows[key // prior.shape[1]]
            state = step_some(problem, state, key % prior.shape[1], moving)
        value = final_objective(problem, state, dead, torch.ones_like(dead))
        actions = torch.stack(taken, 2) if taken else row.new_empty(batch, self.samples, 0)
        return self._solutions(actions, value[row], log_prob, self._distinct_mass(row, log_prob), evaluator)

    def _draw(self, conditional: Float[Tensor, "batch sample action"], seeds: Int[Tensor, " batch"], depth: int) -> Tensor:
        noise = gumbel.gumbels(seeds, (depth,), tuple(conditional.shape[1:]))
        return (conditional + noise).argmax(-1)

    def _distinct_mass(
        self, row: Int[Tensor, "batch sample"], log_prob: Float[Tensor, "batch sample"]
    ) -> Float[Tensor, " batch"]:
        """The probability of the distinct sequences that were drawn."""
        count = int(row.max()) + 1
        mass = log_prob.new_zeros(count).index_put_((row,), log_prob.exp())
        instance = row.new_zeros(count).index_put_((row,), torch.arange(len(row), device=row.device)[:, None].expand_as(row))
        return log_prob.new_zeros(len(row)).index_add_(0, instance, mass)

    def _solutions(
        self, actions: Tensor, objective: Tensor, log_prob: Tensor, mass: Tensor, evaluator: Evaluator[S]
    ) -> Solutions:
        mean = objective.mean(1, keepdim=True)
        variance = (objective - mean).square().sum(1, keepdim=True) / max(1, self.samples - 1)
        diagnostics = Diagnostics(
            remaining_mass=(1 - mass).clamp(min=0),
            mean=mean,
            standard_error=(variance / self.samples).sqrt(),
            effective_sample_size=torch.full_like(objective[:, :1], self.samples),
            duplicates_avoided=torch.zeros_like(mass),
            evaluations=evaluator.made,
            evaluations_repeated=evaluator.repeated,
            evaluations_cached=evaluator.cached,
            evaluations_shared=evaluator.shared,
            evaluations_forced=evaluator.forced,
        )
        return Solutions(actions, objective, log_prob, torch.ones_like(objective, dtype=torch.bool), diagnostics)

    def instance_bytes(self, actions: int, horizon: int) -> int:
        return 8 * self.samples * (horizon + 6 * actions)
