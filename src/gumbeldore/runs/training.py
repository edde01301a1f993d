"""A training run in a folder: by self-improvement or on labels, stopped and resumed at will."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape

from gumbeldore.errors import DiskFullError, FormatError, GumbeldoreError, require
from gumbeldore.io.policy_files import POLICY, load_policy, read_weights
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.networks.layers import slow_note
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.parallel.ranks import joined, ranks
from gumbeldore.policy import Network
from gumbeldore.runs.bars import bars, line
from gumbeldore.runs.board import board
from gumbeldore.runs.environment import environment
from gumbeldore.runs.folder import LABELS, LABELS_HASH, START, START_HASH, RunFolder
from gumbeldore.runs.heartbeat import Heartbeat
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.recorder import Recorder
from gumbeldore.runs.records import as_plain
from gumbeldore.runs.settings import RunSettings, StageSettings
from gumbeldore.training.algorithm import Epoch, imitate_events, self_improve_events
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.divergence import DivergenceError
from gumbeldore.training.settings import Stage
from gumbeldore.training.state import Progress as Event

DEVICES = ("cpu", "cuda", "mps", "xpu")


def pick_device(name: str = "auto") -> torch.device:
    """The device to run on: CUDA or an Apple GPU where there is one, unless told otherwise."""
    if name != "auto":
        return _existing_device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps") if torch.backends.mps.is_available() else torch.device("cpu")


def _existing_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        there = device.type in DEVICES and torch.empty(1, device=device).numel() == 1
    except (RuntimeError, AssertionError, NotImplementedError):  # how torch says that it does not know it or has none
        there = False
    require(there, f"`device` must be auto, {', '.join(DEVICES)} or one like cuda:0, and be there, got {name!r}.")
    return device


def pick_workers(count: int | None, device: str = "auto") -> int:
    """RunOptions many worker processes to start: as many as torch would use threads on a CPU, none elsewhere, unless told otherwise."""
    if count is None:
        return torch.get_num_threads() if pick_device(device).type == "cpu" else 0
    return count


def new_policy(entry: Entry, settings: RunSettings, device: torch.device) -> Network:
    """Freshly initialised weights, by the run's seed and without touching the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.training.seed)
        return entry.build(settings).to(device)


@dataclass(frozen=True)
class RunOptions:
    """What is no setting of a run: how it begins, where it runs now, and how long."""

    resume: bool = False
    start: Path | None = None  # a file of weights to begin with
    device: str = "auto"
    workers: int | Cluster | None = None  # processes to work in, or a cluster; None: one per core, on a CPU
    max_seconds: float | None = None  # no epoch begins that would probably end later
    tensorboard: bool = False
    console: Console = field(default_factory=Console)

    @cached_property
    def place(self) -> torch.device:
        return pick_device(self.device)

    @cached_property
    def crew(self) -> int | Cluster:
        """Decided once: while workers work, this process has fewer threads."""
        return self.workers if isinstance(self.workers, Cluster) else pick_workers(self.workers, self.device)


def train(entry: Entry, settings: RunSettings, folder: Path, **options: Any) -> Network:
    """Trains by self-improvement, with live progress, and returns the best policy. Ctrl-C loses the current epoch only.

    The options are the fields of `RunOptions`.
    """
    how = RunOptions(**options)

    def events(policy: Network, validation: Any, saved: dict[str, Any] | None) -> Iterator[Event | Epoch]:
        return self_improve_events(
            settings.training_problem,
            policy,
            settings.sampler.build,
            validation=validation,
            settings=settings.training,
            stages=[_stage(settings, stage, how.place) for stage in settings.stages],
            select=entry.select,
            resume=saved,
            workers=how.crew,
        )

    with joined():
        return _run(entry, settings, folder, events, {}, how)


def imitate(entry: Entry, settings: RunSettings, labels: Mapping[Path, InstanceSet], folder: Path, **options: Any) -> Network:
    """Trains on expert solutions, with live progress, and returns the best policy. Ctrl-C loses the current epoch only.

    The options are the fields of `RunOptions`.
    """
    how = RunOptions(**options)
    require(len(labels) >= 1, "`labels` must name at least one file of labelled instances, got none.")
    kinds, wanted = {instances.kind.name for instances in labels.values()}, entry.kit.name
    require(kinds == {wanted}, f"{entry.name} cannot learn from labels of {' and '.join(sorted(kinds))} instances.")
    dataset = _dataset(labels, how.place)

    def events(policy: Network, validation: Any, saved: dict[str, Any] | None) -> Iterator[Event | Epoch]:
        return imitate_events(
            settings.training_problem,
            policy,
            dataset,
            validation=validation,
            settings=settings.training,
            resume=saved,
            workers=how.crew,
        )

    about = {LABELS: [str(path.resolve()) for path in labels], LABELS_HASH: [file_hash(path) for path in labels]}
    with joined():
        return _run(entry, settings, folder, events, about, how)


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


Events = Callable[[Network, Any, dict[str, Any] | None], Iterator[Event | Epoch]]  # from policy, validation, checkpoint


def _run(
    entry: Entry, settings: RunSettings, folder: Path, events: Events, about: Mapping[str, Any], how: RunOptions
) -> Network:
    """Runs or continues a training in its folder; `about` goes into its settings.json. Checks first, writes later."""
    policy = new_policy(entry, settings, how.place)
    if not ranks().first:
        return _accompany(policy, settings, events, how)
    if how.start is not None:
        require(not how.resume, "--from starts a new run, --resume goes on with one: leave one of them out.")
        start_from(policy, how.start)
        about = {**about, START: str(how.start.resolve()), START_HASH: file_hash(how.start)}
    plain, run = {"problem_name": entry.name, **as_plain(settings), **about}, RunFolder(folder)
    if how.resume and not run.checkpoints.exist:
        run.load()  # says so, before anything is made
    with run.reserved():
        saved = _opened(run, plain, settings, entry.recorded({}), how)
        recorder = Recorder(run, policy, plain, entry.cost, how.console, saved["epoch"] if saved else 0)
        count = sum(p.numel() for p in policy.parameters())
        what = f"Training {entry.summary} ({count:,} weights) on {how.place}; files in [bold]{escape(str(folder))}[/bold]. Ctrl-C stops."
        how.console.print(what)
        if note := slow_note(policy):
            how.console.print(note)
        try:
            ranks().told((saved, policy.state_dict()))
            stream = events(policy, _validation(settings, how.place), saved)
            words = _follow(ranks().synchronised(stream, Epoch), recorder, saved, settings, how)
            recorder.finish()
        except DivergenceError as error:
            raise recorder.save_divergence(error, entry.name) from error
        except KeyboardInterrupt:
            _give_up(recorder)
            raise
        how.console.print(f"{words} {recorder.results}", highlight=False, soft_wrap=True)
        return load_policy(run / POLICY, type(policy)).to(how.place)  # type: ignore[return-value]


def _accompany(policy: Network, settings: RunSettings, events: Events, how: RunOptions) -> Network:
    """What the other ranks of a data-parallel training do: the same as the first one, without files."""
    saved, weights = ranks().told((None, policy.state_dict()))
    policy.load_state_dict(weights)
    for _ in ranks().synchronised(events(policy, _validation(settings, how.place), saved), Epoch):
        pass
    return policy


def _opened(
    run: RunFolder, plain: dict[str, Any], settings: RunSettings, usual: RunSettings, how: RunOptions
) -> dict[str, Any] | None:
    """The checkpoint to go on from, if the run is to be resumed and may be so; a new run needs a folder without one."""
    if not how.resume:
        run.check_free()
        return None
    saved, note = run.load()
    if note:
        how.console.print(f"[yellow]Note:[/yellow] {escape(note)}", highlight=False, soft_wrap=True)
    run.check_resumable(saved, plain, settings, usual)
    theirs = run.settings()
    plain |= {key: theirs[key] for key in (START, START_HASH) if key in theirs}  # its weights are in the checkpoint
    return saved


def _follow(
    events: Iterator[Event | Epoch], recorder: Recorder, saved: dict[str, Any] | None, settings: RunSettings, how: RunOptions
) -> str:
    """Shows and records what happens, and returns how it ended. Files are written from the first event on: then a checkpoint fits."""
    began, done, epochs = time.monotonic(), recorder.saved_epoch, settings.training.epochs
    seeds = {"training": settings.training.seed, "validation": settings.validation.seed}
    last = done
    if done >= epochs:
        events = iter(())  # without starting workers
    with (
        bars(how.console, epochs, done, sampling=LABELS not in recorder.about) as show,
        Heartbeat(recorder.folder.path, epochs, done) as beat,
        board(recorder.folder.path, done, how.tensorboard) as log,
    ):
        for number, event in enumerate(events):
            if number == 0:
                recorder.begin(saved, environment(seeds, how.place, how.crew))
            show(event)
            beat(event)
            log(event)
            if not isinstance(event, Epoch):
                continue
            last = event.index
            recorder.keep(event)
            how.console.print(line(event), highlight=False)
            recorder.draw()
            expected = time.monotonic() - began + sum(event.seconds.values())
            if how.max_seconds is not None and expected > how.max_seconds and last < epochs:
                return "Stopped, because another epoch would not end within --max-time; --resume goes on."
    if saved and last == done:
        recorder.take_over(saved)
        return f"This run is finished after {done} epochs; with more --training.epochs, or more patience, it would go on."
    return "Finished."


def _give_up(recorder: Recorder) -> None:
    """Ctrl-C: says what there is, and what is lost."""
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


def start_from(policy: Network, path: Path) -> None:
    """Gives a new policy the weights of a file, which must be of the same architecture; the sizes of problems may differ.

    Parts that can be added to given weights (`Network.addable`) stay as they are in the new policy where the file has none.
    """
    _, header = read_weights(path)
    theirs, ours = (header.get("policy"), json.loads(header.get("config", "{}"))), (type(policy).__name__, policy.config)
    require(
        theirs[0] == ours[0] and _grown(type(policy), theirs[1], ours[1]) == ours[1],
        f"--from {path} holds {_named(*theirs)}, but this run trains {_named(*ours)}. Give it the same class and sizes.",
    )
    policy.load_state_dict({**policy.state_dict(), **load_policy(path, type(policy)).state_dict()})


def _grown(network: type[Network], config: dict[str, int], wanted: dict[str, int]) -> dict[str, int] | None:
    """All sizes of a policy whose file may be older than some of them, with what is wanted and can be added; None if it cannot be built."""
    try:
        whole = network(**config).config
    except (TypeError, ValueError, ArithmeticError, RuntimeError):
        return None
    return whole | {name: wanted[name] for name in network.addable if not whole[name]}


def file_hash(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _named(name: str | None, config: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in config.items())})"


def _validation(settings: RunSettings, device: torch.device) -> Any:
    """The instances on which a run, or a stage of it, is judged."""
    generator = torch.Generator().manual_seed(settings.validation.seed)
    return settings.validation_problem.generate(settings.validation.instances, generator=generator, device=device)


def _stage(settings: RunSettings, stage: StageSettings, device: torch.device) -> Stage[Any]:
    own = settings.at(stage)
    ends = {name: getattr(stage, name) for name in ("learning_rate", "epochs", "stalled", "minutes")}
    return Stage(own.training_problem, _validation(own, device), **ends)
