"""Training: Algorithm 1 (self-improvement) and the next-token step it shares with supervised training.

    for epoch in self_improve(problem, policy, Gumbeldore(sigma=0.3), validation=validation, settings=settings):
        print(epoch.index, epoch.validation)   # log, plot, save, stop: whatever you like

The iterators hold the random state, the optimiser, the best policy and the growing dataset; `Epoch.checkpoint()` returns all
of it, and `resume=` continues from it bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gumbeldore.parallel.cluster import Cluster
from gumbeldore.parallel.ranks import ranks
from gumbeldore.policy import Network
from gumbeldore.problem import Examples, Problem, S
from gumbeldore.search.samplers import Greedy, Sampler
from gumbeldore.training.backend import Backend, started
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.loss import action_losses
from gumbeldore.training.settings import Stage, TrainingSettings
from gumbeldore.training.state import Progress, Select, Training, select_best


@dataclass(frozen=True)
class Epoch:
    """What happened in one epoch. Objectives are means over instances; larger is better."""

    index: int  # from 1
    stage: int  # of the curriculum, from 1
    loss: float
    sampled: (
        float | None
    )  # what was selected, and improved by local search, of this epoch's instances; None in supervised training
    validation: float  # greedy, by the current policy
    best_validation: float
    improved: bool
    dataset_size: int
    learning_rate: float
    seconds: dict[str, float]
    checkpoint: Callable[[], dict[str, Any]] = field(repr=False)  # call it before asking for the next epoch
    samples: float | None = (
        None  # the best samples without the greedy solution, where that is included; of the sampled instances
    )
    greedy: float | None = None  # the greedy solutions of the same instances

    def metrics(self) -> dict[str, Any]:
        """A line of metrics.jsonl."""
        names = ("loss", "sampled", "validation", "best_validation", "improved", "dataset_size", "learning_rate")
        line = {"epoch": self.index, "stage": self.stage, **{name: getattr(self, name) for name in names}}
        if self.greedy is not None:
            line |= {"samples": self.samples, "greedy": self.greedy}
        return {**line, **{f"seconds_{phase}": round(value, 3) for phase, value in self.seconds.items()}}


def self_improve(
    problem: Problem[S],
    policy: Network,
    sampler: Sampler | Callable[[int], Sampler],
    *,
    validation: S,
    settings: TrainingSettings,
    stages: Sequence[Stage[S]] = (),
    select: Select = select_best,
    resume: Mapping[str, Any] | None = None,
    workers: int | Cluster = 0,
    progress: bool = False,
) -> Iterator[Epoch]:
    """Algorithm 1. `sampler` may be a function of the epoch (from 1), which is how a nucleus sets in late.

    `workers` processes sample, validate and compute gradients, with the same results for any number of them; 0 is this process,
    with all its threads. Processes are spawned, so a script starts them below `if __name__ == "__main__":`. A `Cluster` samples on many
    machines. Under `torchrun` all ranks call this and share the work (`gumbeldore.parallel.ranks`).

    `stages` are a curriculum: instances of one stage after the other, instead of those of `problem` and `validation`. The weights go
    on; the dataset begins anew unless it is a replay window, and the best policy so far has to be beaten on the instances of the new stage.

    `progress` shows bars, in a terminal or a notebook: all epochs, and the phase of the current one.
    """
    events = self_improve_events(
        problem,
        policy,
        sampler,
        validation=validation,
        settings=settings,
        stages=stages,
        select=select,
        resume=resume,
        workers=workers,
    )
    return _only_epochs(events, settings, resume, sampling=True, progress=progress)


def self_improve_events(
    problem: Problem[S],
    policy: Network,
    sampler: Sampler | Callable[[int], Sampler],
    *,
    validation: S,
    settings: TrainingSettings,
    stages: Sequence[Stage[S]] = (),
    select: Select = select_best,
    resume: Mapping[str, Any] | None = None,
    workers: int | Cluster = 0,
) -> Iterator[Progress | Epoch]:
    """Like `self_improve`, with `Progress` events inside the epochs."""
    with _working(problem, policy, settings, workers) as pool:
        training = Training(problem, policy, settings, stages or [Stage(problem, validation)], pool)
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
    workers: int | Cluster = 0,
    progress: bool = False,
) -> Iterator[Epoch]:
    """Supervised training on expert solutions: the same step, on a fixed dataset."""
    events = imitate_events(problem, policy, dataset, validation=validation, settings=settings, resume=resume, workers=workers)
    return _only_epochs(events, settings, resume, sampling=False, progress=progress)


def _only_epochs(
    events: Iterator[Progress | Epoch],
    settings: TrainingSettings,
    resume: Mapping[str, Any] | None,
    *,
    sampling: bool,
    progress: bool,
) -> Iterator[Epoch]:
    """The epochs among the events, with bars if they are wanted."""
    from gumbeldore.training.bars import bars  # which knows epochs

    done = 0 if resume is None else int(resume["epoch"])
    with bars(None, settings.epochs, done, sampling=sampling) if progress else nullcontext(lambda event: None) as show:
        for event in events:
            show(event)
            if isinstance(event, Epoch):
                yield event


def imitate_events(
    problem: Problem[S],
    policy: Network,
    dataset: Dataset[S],
    *,
    validation: S,
    settings: TrainingSettings,
    resume: Mapping[str, Any] | None = None,
    workers: int | Cluster = 0,
) -> Iterator[Progress | Epoch]:
    """Like `imitate`, with `Progress` events inside the epochs."""
    with _working(problem, policy, settings, workers) as pool:
        training = Training(problem, policy, settings, [Stage(problem, validation)], pool, dataset_is_given=True)
        if resume is not None:
            training.restore(resume)
        training.dataset = Dataset(
            [replace(group, actions=policy.as_built(group.state, group.actions)) for group in dataset.groups]
        )
        yield from _epochs(training, None)


@contextmanager
def _working(problem: Problem[S], policy: Network, settings: TrainingSettings, workers: int | Cluster) -> Iterator[Backend[S]]:
    """Those who do the work, until the end."""
    backend = started(problem, policy, workers, parts=settings.parts, precision=settings.arithmetic)
    with closing(backend), settings.arithmetic.products():
        yield backend


def next_action_loss(problem: Problem[S], policy: Network, examples: Examples[S]) -> Float[Tensor, ""]:
    """Mean negative log-probability of the target actions (Algorithm 1, line 11)."""
    return action_losses(problem, policy, examples).mean()


def greedy_objective(problem: Problem[S], policy: Network, state: S) -> Float[Tensor, " batch"]:
    """The objective of the greedy solution of every instance."""
    return Greedy()(problem, policy, state, seeds=torch.zeros_like(state.instance)).best_objective


def _epochs(training: Training[S], fill: Callable[[], Iterator[Progress]] | None) -> Iterator[Progress | Epoch]:
    """The epochs of Algorithm 1; without `fill`, those of supervised training."""
    if training.epoch == 0:  # line 2: the initial policy is the first best one
        training.best_validation = yield from _last_value(training.validate(training.best_policy))
    while training.epoch < training.settings.epochs and not training.stalled and not training.reached:
        if training.stage_is_over:
            training.best_validation = yield from _last_value(training.next_stage())
        training.epoch += 1
        clock, sampled = _Clock(), None
        if fill is not None:
            sampled = yield from _last_value(fill())
            clock.lap("sampling")
        size = len(training.dataset)
        loss = yield from _last_value(training.fit())
        clock.lap("training")
        validation = yield from _last_value(training.validate(training.averaged))
        clock.lap("validating")
        training.stage_seconds += ranks().told(sum(clock.seconds.values()))
        improved = training.judge(validation)
        yield Epoch(
            index=training.epoch,
            stage=training.stage + 1,
            loss=loss,
            sampled=sampled,
            validation=validation,
            best_validation=training.best_validation,
            improved=improved,
            dataset_size=size,
            learning_rate=training.learning_rate,
            seconds=clock.seconds,
            checkpoint=training.checkpoint,
            **dict(zip(("samples", "greedy"), training.told.means or (), strict=False)),
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
