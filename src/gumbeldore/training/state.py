"""The state of a training run, and what can be done with it: sample, fit, validate, judge, save."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any, Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gumbeldore.errors import CheckpointError, GumbeldoreError
from gumbeldore.policy import Network
from gumbeldore.problem import Examples, Problem, S
from gumbeldore.search.samplers import Greedy, Sampler, draw_seeds
from gumbeldore.solutions import Solutions
from gumbeldore.training.backend import Backend
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.divergence import DivergenceError, reproducer, step
from gumbeldore.training.given import fresh, parts
from gumbeldore.training.greedy import WithGreedy, apart
from gumbeldore.training.loss import losses
from gumbeldore.training.relabelling import objectives, relabelled
from gumbeldore.training.settings import Stage, TrainingSettings
from gumbeldore.training.workers import can_be_cut, trained

Select = Callable[[Solutions, torch.Generator], Int[Tensor, " batch"]]
"""Which of its sampled sequences each instance contributes to the dataset."""


def select_best(solutions: Solutions, generator: torch.Generator) -> Int[Tensor, " batch"]:
    """The sequence with the largest objective (Algorithm 1, line 8)."""
    return solutions.objective.argmax(1)


@dataclass(frozen=True)
class Progress:
    """Where an epoch stands, for a progress bar."""

    epoch: int
    phase: str  # "sampling", "training" or "validating"
    done: int
    total: int
    value: float  # mean sampled objective, loss, or mean greedy objective so far


GRADIENT_NORM = 1.0
"""Gradients are clipped to this L2 norm, as in the paper."""


@dataclass
class Told:
    """What sampling found beside what is learnt from: sums over instances."""

    samples: float = 0.0  # the best sequence, without the greedy one
    greedy: float = 0.0
    instances: int = 0

    def add(self, samples: Float[Tensor, " batch"], greedy: Float[Tensor, " batch"]) -> None:
        self.samples += samples.sum().item()
        self.greedy += greedy.sum().item()
        self.instances += len(greedy)

    @property
    def means(self) -> tuple[float, float] | None:
        """Of the best samples, and of the greedy solutions of the same instances; None if these were not asked for."""
        return (self.samples / self.instances, self.greedy / self.instances) if self.instances else None


_STAGE = ("stage", "stage_began", "stage_seconds", "averaged_steps")
"""What a checkpoint knows of the curriculum and of the running mean."""


@dataclass
class Training(Generic[S]):
    """The state of a training run: everything that `checkpoint` saves.

    Instances, solutions and examples live on the CPU, whatever the device of the policy: those who work with them take them there.
    """

    problem: Problem[S]
    policy: Network
    settings: TrainingSettings
    stages: Sequence[Stage[S]]
    workers: Backend[S]
    dataset_is_given: bool = False  # supervised: the dataset is not part of the checkpoint
    best_policy: Network = field(init=False)
    best_validation: float = field(init=False, default=float("-inf"))
    best_epoch: int = field(init=False, default=0)
    epoch: int = field(init=False, default=0)
    stage: int = field(init=False, default=0)  # index into `stages`
    stage_began: int = field(init=False, default=0)  # after this epoch
    stage_seconds: float = field(init=False, default=0.0)
    averaged_steps: int = field(init=False, default=0)
    told: Told = field(init=False, default_factory=Told)  # of the last sampling
    averaged: Network = field(init=False)  # the policy itself, unless there is a running mean of the weights
    dataset: Dataset[S] = field(init=False, default_factory=Dataset)
    optimizer: torch.optim.Adam = field(init=False)
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.best_policy = copy.deepcopy(self.policy).requires_grad_(False)
        self.averaged = copy.deepcopy(self.best_policy) if self.settings.ema else self.policy
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=self.settings.learning_rate)
        self.generator = torch.Generator().manual_seed(self.settings.seed)

    @property
    def device(self) -> torch.device:
        return next(self.policy.parameters()).device

    @property
    def stalled(self) -> bool:
        """Whether there was no improvement for `patience` epochs of the last stage."""
        last, patience = self.stage == len(self.stages) - 1, self.settings.patience
        return last and patience is not None and self.epoch - max(self.best_epoch, self.stage_began) >= patience

    @property
    def reached(self) -> bool:
        """Whether the best policy is as good as the training's goal, if it has one, in the last stage."""
        last, goal = self.stage == len(self.stages) - 1, self.settings.goal
        return last and goal is not None and self.best_validation >= goal

    @property
    def stage_is_over(self) -> bool:
        """Whether the next stage of the curriculum is due."""
        if self.stage == len(self.stages) - 1:
            return False
        without = self.epoch - max(self.best_epoch, self.stage_began)
        return self.stages[self.stage].is_over(self.epoch - self.stage_began, without, self.stage_seconds)

    def next_stage(self) -> Iterator[Progress]:
        """Goes on with other instances: an empty dataset, unless that is a replay window, and the best policy so far judged by the new ones."""
        self.stage, self.stage_began, self.stage_seconds = self.stage + 1, self.epoch, 0.0
        if self.settings.replay_window is None:
            self.dataset.clear()
        return self.validate(self.best_policy)

    @property
    def learning_rate(self) -> float:
        """That of the current epoch."""
        own = self.stages[self.stage].learning_rate
        return self.settings.learning_rate_at(self.epoch) if own is None else own

    def sample(self, sampler: Sampler, select: Select) -> Iterator[Progress]:
        """Lines 5-8 of Algorithm 1: solves fresh instances and adds the selected solutions to the dataset."""
        self.told = Told()
        generating = self.best_policy if self.settings.generating == "best" else self.averaged
        states = fresh(self.stages[self.stage].problem, self.settings.instances, self.generator)
        seeds = draw_seeds(sum(state.row_count for state in states), self.generator)
        if self.settings.replay_window is not None:
            self.dataset.grow_older(self.settings.replay_window)
        total, done = 0.0, 0
        self.workers.load(generating)
        for part, seed, solutions in self._solved(states, seeds, sampler):
            if self.settings.include_greedy:
                self.told.add(*apart(solutions))
            chosen = select(solutions, self.generator)
            row = torch.arange(len(chosen), device=chosen.device)
            actions, objective = solutions.actions[row, chosen], solutions.objective[row, chosen]
            if self.settings.relabel:
                self._relabel(part, actions, seed)
            if self.settings.local_search:
                actions, objective = self._searched(part, actions, seed)
            self.dataset.add(part, actions)
            total, done = total + objective.sum().item(), done + part.row_count
            yield Progress(self.epoch, "sampling", done, len(seeds), total / done)

    def _solved(
        self, states: Sequence[S], seeds: Int[Tensor, " instance"], sampler: Sampler
    ) -> Iterator[tuple[S, Int[Tensor, " row"], Solutions]]:
        """Some instances at a time with their seeds and solutions, those of one size after the other."""
        asked = WithGreedy(sampler) if self.settings.include_greedy else sampler
        for state, own in zip(states, seeds.split([state.row_count for state in states]), strict=True):
            for rows, solutions in self.workers.sample(asked, state, own, self.settings.sampling_batch):
                yield state.rows(rows).compact(), own[rows], solutions

    def _relabel(self, state: S, actions: Int[Tensor, "row depth"], seeds: Int[Tensor, " row"]) -> None:
        """Adds the best ways to go on from some states that the policy came to, the same numbers of steps for all rows.

        Solutions lead through good states only. A policy that never sees what its own mistakes leave behind makes more of them.
        """
        shortest = int((actions >= 0).sum(1).min())
        drawn = (1 + torch.randperm(max(0, shortest - 2), generator=self.generator))[: self.settings.relabel]
        if len(drawn) == 0:
            return
        steps = sorted(drawn.tolist())
        better = torch.cat(relabelled(self.problem, state, actions, steps, effort=self.settings.local_search, seeds=seeds))
        rows = torch.arange(state.row_count).repeat(len(steps))
        self.dataset.add(state.rows(rows), better, torch.tensor(steps).repeat_interleave(state.row_count))

    def _searched(self, state: S, actions: Tensor, seeds: Int[Tensor, " row"]) -> tuple[Tensor, Float[Tensor, " row"]]:
        """Better solutions by the problem's local search, and their objectives."""
        better = self.problem.local_search(state, actions, effort=self.settings.local_search, seeds=seeds)
        return better, objectives(self.problem, state, better)

    def fit(self) -> Iterator[Progress]:
        """Lines 9-11 of Algorithm 1: next-token prediction on random partial solutions."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.policy.train()
        total = 0.0
        draw = partial(self.dataset.sample, self.problem, self.settings.batch_size, self.generator)
        examples = draw()
        for batch in range(1, self.settings.batches + 1):
            wait, current = self._gradient(examples), examples
            if batch < self.settings.batches:
                examples = draw()  # while the workers are busy
            loss = self._finite(wait, current, batch)
            self.optimizer.step()
            self._average()
            total += loss
            yield Progress(self.epoch, "training", batch, self.settings.batches, total / batch)

    def _finite(self, wait: Callable[[], float], examples: Examples[S], batch: int) -> float:
        """Waits for the loss and clips its gradient; an error with all that reproduces it where they are no numbers."""
        try:
            loss = wait()
            norm = nn.utils.clip_grad_norm_(self.policy.parameters(), GRADIENT_NORM).item()
            if math.isfinite(loss) and math.isfinite(norm):
                return loss
            found = f"loss {loss}, gradient norm {norm}."
        except GumbeldoreError:
            again = step(self.problem, self.policy, examples)
            if not again.failed:
                raise  # another failure: of a worker, say
            found = str(again)
        raise DivergenceError(
            f"Training diverged in epoch {self.epoch}, batch {batch}: {found} Resume with a lower `learning_rate`.",
            reproducer(self.policy, examples, self.epoch, batch),
        )

    def _gradient(self, examples: Examples[S]) -> Callable[[], float]:
        """Begins with the gradient of the mean loss; the result puts it into the policy's parameters and returns the loss."""
        if not can_be_cut(self.policy):
            self.optimizer.zero_grad(set_to_none=True)
            with self.settings.arithmetic.forward(self.device):
                wanted, shown = losses(self.problem, self.policy, examples.to(self.device))
            wanted.mean().backward()
            return shown.mean().item
        self.workers.load(self.policy)
        wait = self.workers.gradient(examples)

        def put() -> float:
            loss, gradient = wait()
            for parameter, part in zip(trained(self.policy), gradient.split(self._sizes), strict=True):
                parameter.grad = part.view_as(parameter)
            return loss

        return put

    def _average(self) -> None:
        """Moves the mean of the weights; it is young at first, so that it does not remember the start."""
        if not self.settings.ema:
            return
        self.averaged_steps += 1
        keep = min(self.settings.ema, self.averaged_steps / (self.averaged_steps + 10))
        with torch.no_grad():
            for mean, weight in zip(self.averaged.state_dict().values(), self.policy.state_dict().values(), strict=True):
                if mean.is_floating_point():
                    mean.lerp_(weight, 1 - keep)
                else:
                    mean.copy_(weight)

    @cached_property
    def _sizes(self) -> list[int]:
        return [parameter.numel() for parameter in trained(self.policy)]

    def validate(self, policy: Network) -> Iterator[Progress]:
        """Greedy objective of a policy on the validation instances of the current stage."""
        sizes = parts(self.stages[self.stage].validation)
        total, done, count = 0.0, 0, sum(instances.row_count for instances in sizes)
        self.workers.load(policy)
        for instances in sizes:
            seeds = torch.zeros_like(instances.instance)
            for rows, solutions in self.workers.sample(Greedy(), instances, seeds, 8 * self.settings.sampling_batch):
                total, done = total + solutions.best_objective.sum().item(), done + rows.stop - rows.start
                yield Progress(self.epoch, "validating", done, count, total / done)

    def judge(self, value: float) -> bool:
        """Lines 12-14 of Algorithm 1: a better policy becomes the best one and empties the dataset, unless that is a replay window or given."""
        if not value > self.best_validation:
            return False
        if self.settings.replay_window is None and not self.dataset_is_given:
            self.dataset.clear()
        self.best_policy.load_state_dict(self.averaged.state_dict())
        self.best_validation, self.best_epoch = value, self.epoch
        return True

    def checkpoint(self) -> dict[str, Any]:
        """Plain data and tensors from which `resume` continues bit for bit."""
        return {
            "settings": asdict(self.settings),
            "epoch": self.epoch,
            "stage": {name: getattr(self, name) for name in _STAGE},
            "policy": self.policy.state_dict(),
            "averaged": self.averaged.state_dict() if self.settings.ema else {},
            "best_policy": self.best_policy.state_dict(),
            "best_validation": self.best_validation,
            "best_epoch": self.best_epoch,
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "dataset": [] if self.dataset_is_given else self.dataset.to_plain(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Takes over a checkpoint. Settings may differ only in how long and how fast to train."""
        try:
            self.settings.check_resumes(saved["settings"])
            self._restore(saved)
        except CheckpointError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            missing = f": `{error.args[0]}` is missing" if isinstance(error, KeyError) else ""
            raise CheckpointError(
                f"The checkpoint does not fit this run{missing}. Was it made by another program or version?"
            ) from error

    def _restore(self, saved: Mapping[str, Any]) -> None:
        self.epoch, self.best_epoch = saved["epoch"], saved["best_epoch"]
        self.best_validation = float(saved["best_validation"])
        for name in _STAGE:
            setattr(self, name, saved.get("stage", {}).get(name, getattr(self, name)))
        self.policy.load_state_dict(self.policy.upgraded_weights(saved["policy"]))
        if self.settings.ema:
            self.averaged.load_state_dict(self.policy.upgraded_weights(saved["averaged"]))
        self.best_policy.load_state_dict(self.policy.upgraded_weights(saved["best_policy"]))
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        self.dataset = Dataset.from_plain(saved["dataset"], type(parts(self.stages[0].validation)[0]), "cpu")
