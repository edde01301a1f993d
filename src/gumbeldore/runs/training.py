"""A training run as it happens: by self-improvement or on labels, in a folder, stopped and resumed at will."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from rich.markup import escape

from gumbeldore.errors import DiskFullError, FormatError, GumbeldoreError, require
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.networks.layers import slow_note
from gumbeldore.parallel.devices import pick_device, pick_workers
from gumbeldore.parallel.ranks import joined, ranks
from gumbeldore.policy import Network
from gumbeldore.runs.board import board
from gumbeldore.runs.environment import environment
from gumbeldore.runs.folder import INSTANCES, INSTANCES_HASH, LABELS, LABELS_HASH, START, START_HASH, RunFolder
from gumbeldore.runs.heartbeat import Heartbeat
from gumbeldore.runs.news import News
from gumbeldore.runs.options import RunOptions
from gumbeldore.runs.own_instances import OwnInstances
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.recorder import Recorder
from gumbeldore.runs.records import as_plain
from gumbeldore.runs.settings import VALIDATION_SEED, RunSettings, StageSettings
from gumbeldore.runs.weights import file_hash, new_policy, start_from
from gumbeldore.training.algorithm import Epoch, imitate_events, self_improve_events
from gumbeldore.training.bars import bars
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.divergence import DivergenceError
from gumbeldore.training.settings import Stage
from gumbeldore.training.state import Progress

__all__ = ["Session", "pick_device", "pick_workers"]


@dataclass
class Session:
    """One time of work on a run: from its start, or its last checkpoint, until it is finished or stopped."""

    entry: Entry
    settings: RunSettings
    folder: RunFolder
    options: RunOptions
    labels: Mapping[Path, InstanceSet] | None = None  # to imitate; None: self-improvement
    instances: OwnInstances | None = None  # to solve, instead of generated ones
    about: dict[str, Any] = field(default_factory=dict)  # what settings.json says beside the settings

    def events(self) -> Generator[Progress | Epoch, None, None]:
        """What happens, shown and recorded. Checks first, writes later; leaving it early stops the run after its last epoch."""
        if self.labels is not None:
            _ = self.dataset  # raises where labels are wrong
        with joined():
            policy = new_policy(self.entry, self.settings, self.options.place)
            if ranks().first:
                yield from self._first(policy)
            else:
                yield from self._accompanying(policy)

    def _first(self, policy: Network) -> Iterator[Progress | Epoch]:
        """What the rank does that writes the files."""
        options, run, settings = self.options, self.folder, self.settings
        self._begin_with(policy)
        plain = {"problem_name": self.entry.name, **as_plain(settings), **self._sources(), **self.about}
        if options.resume and not run.checkpoints.exist:
            run.load()  # says so, before anything is made
        with run.reserved():
            saved = self._opened(plain)
            recorder = Recorder(run, policy, plain, self.entry.measure, options.console, saved["epoch"] if saved else 0)
            self._introduce(policy)
            try:
                ranks().told((saved, policy.state_dict()))
                stream = self._trained(policy, saved)
                words = yield from self._followed(ranks().synchronised(stream, Epoch), recorder, saved)
                recorder.finish()
            except DivergenceError as error:
                raise recorder.save_divergence(error, self.entry.argument) from error
            except (KeyboardInterrupt, GeneratorExit):
                _give_up(recorder)
                raise
            options.console.print(f"{words} {recorder.results}", highlight=False, soft_wrap=True)

    def _accompanying(self, policy: Network) -> Iterator[Progress | Epoch]:
        """What the other ranks of a data-parallel training do: the same as the first one, without files."""
        saved, weights = ranks().told((None, policy.state_dict()))
        policy.load_state_dict(weights)
        yield from ranks().synchronised(self._trained(policy, saved), Epoch)

    def _begin_with(self, policy: Network) -> None:
        """Gives a new run the weights of a file, if it is to begin with some."""
        start = self.options.start
        if start is not None:
            require(not self.options.resume, "--from starts a new run, --resume goes on with one: leave one of them out.")
            start_from(policy, start)
            self.about |= {START: str(start.resolve()), START_HASH: file_hash(start)}

    def _sources(self) -> dict[str, Any]:
        """What is learnt from, if that is given, for settings.json."""
        if self.instances is not None:
            return {INSTANCES: [str(path.resolve()) for path in self.instances.files], INSTANCES_HASH: self.instances.digest}
        if self.labels is None:
            return {}
        return {LABELS: [str(path.resolve()) for path in self.labels], LABELS_HASH: [file_hash(path) for path in self.labels]}

    def _opened(self, plain: dict[str, Any]) -> dict[str, Any] | None:
        """The checkpoint to go on from, if the run is to be resumed and may be so; a new run needs a folder without one."""
        run = self.folder
        if not self.options.resume:
            run.check_free()
            return None
        saved, note = run.load()
        if note:
            self.options.console.print(f"[yellow]Note:[/yellow] {escape(note)}", highlight=False, soft_wrap=True)
        run.check_resumable(saved, plain, self.settings, self.entry.recorded({}))
        theirs = run.settings()
        plain |= {key: theirs[key] for key in (START, START_HASH) if key in theirs}  # its weights are in the checkpoint
        return saved

    @cached_property
    def dataset(self) -> Dataset[Any]:
        """The labels to imitate."""
        kinds, wanted = {instances.kind.name for instances in (self.labels or {}).values()}, self.entry.kit.name
        require(kinds == {wanted}, f"{self.entry.name} cannot learn from labels of {' and '.join(sorted(kinds))} instances.")
        return _dataset(self.labels or {}, self.options.place)

    def _introduce(self, policy: Network) -> None:
        count = sum(p.numel() for p in policy.parameters())
        self.options.console.print(
            f"Training {self.entry.summary} ({count:,} weights) on {self.options.place}; "
            f"files in [bold]{escape(str(self.folder.path))}[/bold]. Ctrl-C stops."
        )
        if note := slow_note(policy):
            self.options.console.print(note)

    def _trained(self, policy: Network, saved: dict[str, Any] | None) -> Iterator[Progress | Epoch]:
        """Algorithm 1, or supervised training."""
        settings, options = self.settings, self.options
        validation = _validation_instances(settings, options.place)
        common: dict[str, Any] = {
            "validation": validation,
            "settings": settings.training,
            "resume": saved,
            "workers": options.pool,
        }
        if self.labels is not None:
            return imitate_events(settings.training_problem, policy, self.dataset, **common)
        stages = [_stage(settings, stage, options.place) for stage in settings.stages]
        if self.instances is not None:
            require(not stages, "`stages` are about generated instances: leave them out to train on `instances`.")
            judged = [state.to(options.place) for state in self.instances.validation(settings.validation.instances)]
            common["validation"], stages = judged[0], [Stage(self.instances.source, judged)]
        sampler, select = settings.sampler.build, self.entry.select
        return self_improve_events(settings.training_problem, policy, sampler, stages=stages, select=select, **common)

    def _followed(
        self, events: Iterator[Progress | Epoch], recorder: Recorder, saved: dict[str, Any] | None
    ) -> Generator[Progress | Epoch, None, str]:
        """Shows and records what happens, and returns how it ended. Files are written from the first event on: then a checkpoint fits."""
        settings, options = self.settings, self.options
        began, done, epochs = time.monotonic(), recorder.saved_epoch, settings.training.epochs
        seeds = {"training": settings.training.seed, "validation": VALIDATION_SEED}
        last = done
        if done >= epochs:
            events = iter(())  # without starting workers
        with (
            bars(options.console, epochs, done, sampling=self.labels is None, shown=self.entry.measure.shown) as show,
            Heartbeat(recorder.folder.path, epochs, done, measure=self.entry.measure) as beat,
            board(recorder.folder.path, done, options.tensorboard) as log,
        ):
            news = News(settings, options.console, self.entry.measure, sampling=self.labels is None)
            for number, event in enumerate(events):
                if number == 0:
                    recorder.begin(saved, environment(seeds, options.place, options.pool))
                show(event)
                beat(event)
                log(event)
                news(event)
                if isinstance(event, Epoch):
                    last = event.index
                    recorder.keep(event)
                    recorder.draw()
                yield event
                if isinstance(event, Epoch) and last < epochs and options.max_seconds is not None:
                    expected = time.monotonic() - began + sum(event.seconds.values())
                    if expected > options.max_seconds:
                        return "Stopped, because another epoch would not end within --max-time; --resume goes on."
        if saved and last == done:
            recorder.take_over(saved)
            return f"This run is finished after {done} epochs; with more --training.epochs, or more patience, it would go on."
        return "Finished."


def _validation_instances(settings: RunSettings, device: torch.device) -> Any:
    """The instances on which a run, or a stage of it, is judged."""
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    return settings.validation_problem.generate(settings.validation.instances, generator=generator, device=device)


def _dataset(labels: Mapping[Path, InstanceSet], device: torch.device) -> Dataset[Any]:
    """All labels; an error names the file."""
    dataset: Dataset[Any] = Dataset()
    for path, instances in labels.items():
        try:
            for group in instances.dataset(device).groups:
                dataset.add(group.state, group.actions)
        except GumbeldoreError as error:
            raise FormatError(f"{path}: {error}") from error
    return dataset


def _stage(settings: RunSettings, stage: StageSettings, device: torch.device) -> Stage[Any]:
    own = settings.at(stage)
    ends = {name: getattr(stage, name) for name in ("learning_rate", "epochs", "stalled", "minutes")}
    return Stage(own.training_problem, _validation_instances(own, device), **ends)


def _give_up(recorder: Recorder) -> None:
    """Stopped: says what there is, and what is lost."""
    try:
        recorder.finish(retries=0)
    except DiskFullError as error:
        recorder.tell(str(error))
    if recorder.saved_epoch:
        recorder.console.print(
            f"\nEpoch {recorder.saved_epoch} is saved; --resume goes on. {recorder.results}", highlight=False
        )
    else:
        recorder.console.print("\nNo epoch was finished, so there is nothing to resume.")
