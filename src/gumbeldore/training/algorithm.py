"""Training: Algorithm 1 (self-improvement) and the next-token step it shares with supervised training.

    for epoch in self_improve(problem, policy, Gumbeldore(sigma=0.3), validation=validation, settings=settings):
        print(epoch.index, epoch.validation)   # log, plot, save, stop: whatever you like

The iterators hold the random state, the optimiser, the best policy and the growing dataset; `Epoch.checkpoint()` returns all
of it, and `resume=` continues from it bit for bit.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any, Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gumbeldore.errors import CheckpointError, ContractError, require
from gumbeldore.policy import Network
from gumbeldore.problem import Examples, Problem, S
from gumbeldore.search.samplers import Greedy, Sampler, check_positive, draw_seeds
from gumbeldore.solutions import Solutions
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.workers import Workers, action_losses, can_be_cut, losses, trained

Select = Callable[[Solutions, torch.Generator], Int[Tensor, " batch"]]
"""Which of its sampled sequences each instance contributes to the dataset."""


def select_best(solutions: Solutions, generator: torch.Generator) -> Int[Tensor, " batch"]:
    """The sequence with the largest objective (Algorithm 1, line 8)."""
    return solutions.objective.argmax(1)


@dataclass(frozen=True)
class TrainingSettings:
    """How long and on what to train; the defaults are the paper's for the routing problems."""

    epochs: int = 2000
    instances: int = 1000  # fresh instances to solve per epoch
    batches: int = 1000  # gradient steps per epoch
    batch_size: int = 1024  # examples per gradient step
    learning_rate: float = 2e-4  # Adam
    final_learning_rate: float | None = None  # reached by a cosine over all epochs; None: no decay, as in the paper
    gradient_norm: float = 1.0  # gradients are clipped to this L2 norm
    successor_weight: float = (
        0.0  # of predicting, for every item, the one that follows it in the solution; 0: off, as in the paper
    )
    generate_with_best: bool = True  # False: the current policy generates, whether or not it is the best so far
    dataset_grows: bool = True  # until the validation improves; False: fresh data in every epoch
    patience: int | None = None  # stop after this many epochs without improvement
    sampling_batch: int = 16  # instances sampled together, by one worker; changes speed, not results
    part_size: int = 128  # examples of a gradient step that one worker takes at a time
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "instances", "batches", "batch_size", "sampling_batch", "part_size"):
            check_positive(name, getattr(self, name))
        for name in ("learning_rate", "gradient_norm", "final_learning_rate"):
            value = getattr(self, name)
            require(value is None or 0 < value < float("inf"), f"`{name}` must be a positive number, got {value}.")
        weight = self.successor_weight
        require(0 <= weight < float("inf"), f"`successor_weight` must be a number from 0 on (0: off), got {weight}.")
        require(self.patience is None or self.patience >= 1, f"`patience` must be at least 1 or None, got {self.patience}.")

    @property
    def parts(self) -> int:
        """Into how many parts a gradient step is cut; as many workers can share it."""
        return -(-self.batch_size // self.part_size)

    def learning_rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch (from 1)."""
        if self.final_learning_rate is None or self.epochs == 1:
            return self.learning_rate
        progress = (epoch - 1) / (self.epochs - 1)
        share = 0.5 * (1 + torch.cos(torch.tensor(progress * torch.pi, dtype=torch.float64)).item())
        return self.final_learning_rate + share * (self.learning_rate - self.final_learning_rate)


@dataclass(frozen=True)
class Progress:
    """Where an epoch stands, for a progress bar."""

    epoch: int
    phase: str  # "sampling", "training" or "validating"
    done: int
    total: int
    value: float  # mean sampled objective, loss, or mean greedy objective so far


@dataclass(frozen=True)
class Epoch:
    """What happened in one epoch. Objectives are means over instances; larger is better."""

    index: int  # from 1
    loss: float
    sampled: float | None  # best sampled solution of this epoch's instances; None in supervised training
    validation: float  # greedy, by the current policy
    best_validation: float
    improved: bool
    dataset_size: int
    learning_rate: float
    seconds: dict[str, float]
    checkpoint: Callable[[], dict[str, Any]] = field(repr=False)  # call it before asking for the next epoch

    def metrics(self) -> dict[str, Any]:
        """A line of metrics.jsonl."""
        names = ("loss", "sampled", "validation", "best_validation", "improved", "dataset_size", "learning_rate")
        line = {"epoch": self.index, **{name: getattr(self, name) for name in names}}
        return {**line, **{f"seconds_{phase}": round(value, 3) for phase, value in self.seconds.items()}}


@dataclass
class Training(Generic[S]):
    """The state of a training run: everything that `checkpoint` saves."""

    problem: Problem[S]
    policy: Network
    settings: TrainingSettings
    validation: S
    workers: Workers[S]
    dataset_is_given: bool = False  # supervised: the dataset is not part of the checkpoint
    best_policy: Network = field(init=False)
    best_validation: float = field(init=False, default=float("-inf"))
    best_epoch: int = field(init=False, default=0)
    epoch: int = field(init=False, default=0)
    dataset: Dataset[S] = field(init=False, default_factory=Dataset)
    optimizer: torch.optim.Adam = field(init=False)
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.best_policy = copy.deepcopy(self.policy).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=self.settings.learning_rate)
        self.generator = torch.Generator().manual_seed(self.settings.seed)

    @property
    def device(self) -> torch.device:
        return next(self.policy.parameters()).device

    @property
    def stalled(self) -> bool:
        """Whether there was no improvement for `patience` epochs."""
        return self.settings.patience is not None and self.epoch - self.best_epoch >= self.settings.patience

    def sample(self, sampler: Sampler, select: Select) -> Iterator[Progress]:
        """Lines 5-8 of Algorithm 1: solves fresh instances and adds the selected solutions to the dataset."""
        generating = self.best_policy if self.settings.generate_with_best else self.policy
        state = self.problem.generate(self.settings.instances, generator=self.generator, device=self.device)
        seeds = draw_seeds(state.row_count, self.generator)
        if not self.settings.dataset_grows:
            self.dataset.clear()
        total = 0.0
        self.workers.load(generating)
        for rows, solutions in self.workers.sample(sampler, state, seeds, self.settings.sampling_batch):
            chosen = select(solutions, self.generator)
            row = torch.arange(len(chosen), device=chosen.device)
            self.dataset.add(state.rows(rows), solutions.actions[row, chosen])
            total += solutions.objective[row, chosen].sum().item()
            yield Progress(self.epoch, "sampling", rows.stop, state.row_count, total / rows.stop)

    def fit(self) -> Iterator[Progress]:
        """Lines 9-11 of Algorithm 1: next-token prediction on random partial solutions."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate_at(self.epoch)
        self.policy.train()
        total = 0.0
        draw = partial(self.dataset.sample, self.problem, self.settings.batch_size, self.generator)
        examples = draw()
        for step in range(1, self.settings.batches + 1):
            wait = self._gradient(examples)
            if step < self.settings.batches:
                examples = draw()  # while the workers are busy
            loss = wait()
            if not math.isfinite(loss):
                raise ContractError(f"The loss became {loss} in epoch {self.epoch}. Lower `learning_rate` and resume.")
            nn.utils.clip_grad_norm_(self.policy.parameters(), self.settings.gradient_norm)
            self.optimizer.step()
            total += loss
            yield Progress(self.epoch, "training", step, self.settings.batches, total / step)

    def _gradient(self, examples: Examples[S]) -> Callable[[], float]:
        """Begins with the gradient of the mean loss; the result puts it into the policy's parameters and returns the loss."""
        if not (can_be_cut(self.policy) and self.device.type == "cpu"):
            self.optimizer.zero_grad(set_to_none=True)
            weight = self.settings.successor_weight
            actions, successors = losses(self.problem, self.policy, examples, weight)
            (actions + weight * successors).mean().backward()
            return actions.mean().item
        self.workers.load(self.policy)
        wait = self.workers.gradient(examples, self.settings.successor_weight)

        def put() -> float:
            loss, gradient = wait()
            for parameter, part in zip(trained(self.policy), gradient.split(self._sizes), strict=True):
                parameter.grad = part.view_as(parameter)
            return loss

        return put

    @cached_property
    def _sizes(self) -> list[int]:
        return [parameter.numel() for parameter in trained(self.policy)]

    def validate(self) -> Iterator[Progress]:
        """Greedy objective of the current policy on the validation instances."""
        total, count = 0.0, self.validation.row_count
        self.workers.load(self.policy)
        seeds = torch.zeros_like(self.validation.instance)
        for rows, solutions in self.workers.sample(Greedy(), self.validation, seeds, 8 * self.settings.sampling_batch):
            total += solutions.best_objective.sum().item()
            yield Progress(self.epoch, "validating", rows.stop, count, total / rows.stop)

    def judge(self, value: float) -> bool:
        """Lines 12-14 of Algorithm 1: a better policy becomes the best one and empties the dataset."""
        if not value > self.best_validation:
            return False
        self.best_policy.load_state_dict(self.policy.state_dict())
        self.best_validation, self.best_epoch = value, self.epoch
        return True

    def checkpoint(self) -> dict[str, Any]:
        """Plain data and tensors from which `resume` continues bit for bit."""
        return {
            "settings": asdict(self.settings),
            "epoch": self.epoch,
            "policy": self.policy.state_dict(),
            "best_policy": self.best_policy.state_dict(),
            "best_validation": self.best_validation,
            "best_epoch": self.best_epoch,
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "dataset": [] if self.dataset_is_given else self.dataset.to_plain(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Takes over a checkpoint. Settings may differ only in how long to train."""
        theirs = {
            **asdict(TrainingSettings()),
            **saved["settings"],
            "epochs": self.settings.epochs,
            "patience": self.settings.patience,
        }
        if theirs != asdict(self.settings):
            changed = sorted(k for k, v in asdict(self.settings).items() if theirs.get(k) != v)
            raise CheckpointError(
                f"This run was started with other settings ({', '.join(changed)}). Resume with the same ones; only `epochs` "
                f"and `patience` may change. To go on from its weights with new settings, start a new run from them."
            )
        self.epoch, self.best_epoch = saved["epoch"], saved["best_epoch"]
        self.best_validation = saved["best_validation"]
        self.policy.load_state_dict(saved["policy"])
        self.best_policy.load_state_dict(saved["best_policy"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        self.dataset = Dataset.from_plain(saved["dataset"], type(self.validation), self.device)


def self_improve(
    problem: Problem[S],
    policy: Network,
    sampler: Sampler | Callable[[int], Sampler],
    *,
    validation: S,
    settings: TrainingSettings,
    select: Select = select_best,
    resume: Mapping[str, Any] | None = None,
    workers: int = 0,
) -> Iterator[Epoch]:
    """Algorithm 1. `sampler` may be a function of the epoch (from 1), which is how a nucleus sets in late.

    `workers` processes sample, validate and compute gradients, with the same results for any number of them; 0 is this process,
    with all its threads. Processes are spawned, so a script starts them below `if __name__ == "__main__":`.
    """
    events = self_improve_events(
        problem, policy, sampler, validation=validation, settings=settings, select=select, resume=resume, workers=workers
    )
    return (event for event in events if isinstance(event, Epoch))


def self_improve_events(
    problem: Problem[S],
    policy: Network,
    sampler: Sampler | Callable[[int], Sampler],
    *,
    validation: S,
    settings: TrainingSettings,
    select: Select = select_best,
    resume: Mapping[str, Any] | None = None,
    workers: int = 0,
) -> Iterator[Progress | Epoch]:
    """Like `self_improve`, with `Progress` events inside the epochs."""
    with Workers(problem, policy, workers, parts=settings.parts) as crew:
        training = Training(problem, policy, settings, validation, crew)
        if resume is not None:
            training.restore(resume)

        def fill() -> Iterator[Progress]:
            return training.sample(sampler if isinstance(sampler, Sampler) else sampler(training.epoch), select)

        yield from _epochs(training, fill)


def imitate(
    problem: Problem[S],
    policy: Network,
    dataset: Dataset[S],
    *,
    validation: S,
    settings: TrainingSettings,
    resume: Mapping[str, Any] | None = None,
    workers: int = 0,
) -> Iterator[Epoch]:
    """Supervised training on expert solutions: the same step, on a fixed dataset."""
    events = imitate_events(problem, policy, dataset, validation=validation, settings=settings, resume=resume, workers=workers)
    return (event for event in events if isinstance(event, Epoch))


def imitate_events(
    problem: Problem[S],
    policy: Network,
    dataset: Dataset[S],
    *,
    validation: S,
    settings: TrainingSettings,
    resume: Mapping[str, Any] | None = None,
    workers: int = 0,
) -> Iterator[Progress | Epoch]:
    """Like `imitate`, with `Progress` events inside the epochs."""
    with Workers(problem, policy, workers, parts=settings.parts) as crew:
        training = Training(problem, policy, settings, validation, crew, dataset_is_given=True)
        if resume is not None:
            training.restore(resume)
        training.dataset = dataset
        yield from _epochs(training, None)


def next_action_loss(problem: Problem[S], policy: Network, examples: Examples[S]) -> Float[Tensor, ""]:
    """Mean negative log-probability of the target actions (Algorithm 1, line 11)."""
    return action_losses(problem, policy, examples).mean()


def greedy_objective(problem: Problem[S], policy: Network, state: S) -> Float[Tensor, " batch"]:
    """The objective of the greedy solution of every instance."""
    return Greedy()(problem, policy, state, seeds=torch.zeros_like(state.instance)).best_objective


def _epochs(training: Training[S], fill: Callable[[], Iterator[Progress]] | None) -> Iterator[Progress | Epoch]:
    """The epochs of Algorithm 1; without `fill`, those of supervised training."""
    if training.epoch == 0:  # line 2: the initial policy is the first best one
        training.best_validation = yield from _last_value(training.validate())
    while training.epoch < training.settings.epochs and not training.stalled:
        training.epoch += 1
        clock, sampled = _Clock(), None
        if fill is not None:
            sampled = yield from _last_value(fill())
            clock.lap("sampling")
        size = len(training.dataset)
        loss = yield from _last_value(training.fit())
        clock.lap("training")
        validation = yield from _last_value(training.validate())
        clock.lap("validating")
        improved = training.judge(validation)
        if improved and fill is not None:
            training.dataset.clear()
        yield Epoch(
            index=training.epoch,
            loss=loss,
            sampled=sampled,
            validation=validation,
            best_validation=training.best_validation,
            improved=improved,
            dataset_size=size,
            learning_rate=training.settings.learning_rate_at(training.epoch),
            seconds=clock.seconds,
            checkpoint=training.checkpoint,
        )


def _last_value(events: Iterator[Progress]) -> Generator[Progress, None, float]:
    """Passes all events on and returns the value of the last one."""
    value = float("nan")
    for event in events:
        value = event.value
        yield event
    return value


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase], self._last = now - self._last, now
