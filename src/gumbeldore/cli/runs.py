"""A training run in a folder: settings.json, metrics.jsonl, progress.json, checkpoint.pt, policy.safetensors, training.png."""

from __future__ import annotations

import copy
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from gumbeldore.cli.catalogue import Entry
from gumbeldore.cli.curves import plot_training
from gumbeldore.cli.run_settings import RunSettings, StageSettings
from gumbeldore.cli.settings import as_plain, merged, read_settings
from gumbeldore.errors import CheckpointError, FormatError, GumbeldoreError, require
from gumbeldore.files import write_atomically
from gumbeldore.networks.layers import slow_note
from gumbeldore.policy import Network
from gumbeldore.problems.instances import InstanceSet
from gumbeldore.problems.policy_files import load_policy, read_weights, save_policy
from gumbeldore.training.algorithm import Epoch, imitate_events, self_improve_events
from gumbeldore.training.checkpoint import MetricsFile, load_state, read_metrics, save_state
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.settings import Stage
from gumbeldore.training.state import Progress as Event
from gumbeldore.watching.board import board
from gumbeldore.watching.pulse import Heart

SETTINGS, METRICS, CHECKPOINT, POLICY, PLOT = (
    "settings.json",
    "metrics.jsonl",
    "checkpoint.pt",
    "policy.safetensors",
    "training.png",
)
LABELS, LABELS_HASH = "labels", "labels_sha256"  # in the settings.json of supervised runs
START, START_HASH = "started_from", "started_from_sha256"  # of runs that begin with given weights
PLOT_SECONDS = 60  # the curves are drawn anew at most this often, and at the end


def pick_device(name: str = "auto") -> torch.device:
    """The device to run on: CUDA or an Apple GPU where there is one, unless told otherwise."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps") if torch.backends.mps.is_available() else torch.device("cpu")


def pick_workers(count: int | None, device: str = "auto") -> int:
    """How many worker processes to start: as many as torch would use threads on a CPU, none elsewhere, unless told otherwise."""
    if count is None:
        return torch.get_num_threads() if pick_device(device).type == "cpu" else 0
    return count


def new_policy(entry: Entry, settings: RunSettings, device: torch.device) -> Network:
    """Freshly initialised weights, by the run's seed and without touching the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.training.seed)
        return entry.build(settings).to(device)


def train(
    entry: Entry,
    settings: RunSettings,
    folder: Path,
    *,
    resume: bool = False,
    start: Path | None = None,
    device: str = "auto",
    workers: int | None = None,
    tensorboard: bool = False,
    console: Console | None = None,
) -> Network:
    """Trains by self-improvement, with live progress, and returns the best policy. Ctrl-C loses the current epoch only.

    `workers` are processes to work in; None: one per core, on a CPU. `start` is a file of weights to begin with.
    """

    def events(policy: Network, validation: Any, saved: dict[str, Any] | None) -> Iterator[Event | Epoch]:
        return self_improve_events(
            settings.training_problem,
            policy,
            settings.sampler.build,
            validation=validation,
            settings=settings.training,
            stages=[_stage(settings, stage, pick_device(device)) for stage in settings.stages],
            select=entry.select,
            resume=saved,
            workers=pick_workers(workers, device),
        )

    return _run(entry, settings, folder, events, {}, resume, start, device, tensorboard, console or Console())


def imitate(
    entry: Entry,
    settings: RunSettings,
    labels: Mapping[Path, InstanceSet],
    folder: Path,
    *,
    resume: bool = False,
    start: Path | None = None,
    device: str = "auto",
    workers: int | None = None,
    tensorboard: bool = False,
    console: Console | None = None,
) -> Network:
    """Trains on expert solutions, with live progress, and returns the best policy. Ctrl-C loses the current epoch only.

    `workers` are processes to work in; None: one per core, on a CPU. `start` is a file of weights to begin with.
    """
    require(len(labels) >= 1, "`labels` must name at least one file of labelled instances, got none.")
    kinds, wanted = {instances.kind.name for instances in labels.values()}, entry.kit.name
    require(kinds == {wanted}, f"{entry.name} cannot learn from labels of {' and '.join(sorted(kinds))} instances.")
    dataset: Dataset[Any] = Dataset()
    for path, instances in labels.items():
        try:
            for state, actions in instances.dataset(pick_device(device)).groups:
                dataset.add(state, actions)
        except GumbeldoreError as error:
            raise FormatError(f"{path}: {error}") from error

    def events(policy: Network, validation: Any, saved: dict[str, Any] | None) -> Iterator[Event | Epoch]:
        return imitate_events(
            settings.training_problem,
            policy,
            dataset,
            validation=validation,
            settings=settings.training,
            resume=saved,
            workers=pick_workers(workers, device),
        )

    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in labels]
    about = {LABELS: [str(path.resolve()) for path in labels], LABELS_HASH: digests}
    return _run(entry, settings, folder, events, about, resume, start, device, tensorboard, console or Console())


Events = Callable[[Network, Any, dict[str, Any] | None], Iterator[Event | Epoch]]  # from policy, validation, checkpoint


def _run(
    entry: Entry,
    settings: RunSettings,
    folder: Path,
    events: Events,
    about: Mapping[str, Any],
    resume: bool,
    start: Path | None,
    device: str,
    tensorboard: bool,
    console: Console,
) -> Network:
    """Runs or continues a training in its folder; `about` goes into its settings.json."""
    where = pick_device(device)
    policy = new_policy(entry, settings, where)
    if start is not None:
        require(not resume, "--from starts a new run, --resume goes on with one: leave one of them out.")
        start_from(policy, start)
        about = {**about, START: str(start.resolve()), START_HASH: hashlib.sha256(start.read_bytes()).hexdigest()}
    saved = _open_folder(entry, settings, folder, about, resume)
    validation = _validation(settings, where)
    metrics = MetricsFile(folder / METRICS, keep_epochs=saved["epoch"] if saved else 0)
    parameters = sum(p.numel() for p in policy.parameters())
    console.print(
        f"Training {entry.summary} ({parameters:,} weights) on {where}; files in [bold]{folder}[/bold]. Ctrl-C stops."
    )
    if note := slow_note(policy):
        console.print(note)
    drawn = time.monotonic()
    try:
        done, epochs = saved["epoch"] if saved else 0, settings.training.epochs
        with (
            _bars(console, epochs, done) as show,
            Heart(folder, epochs, done) as beat,
            board(folder, done, tensorboard) as log,
        ):
            for event in events(policy, validation, saved):
                show(event)
                beat(event)
                log(event)
                if isinstance(event, Epoch):
                    _keep(entry, folder, policy, event, metrics)
                    console.print(_line(event), highlight=False)
                    if time.monotonic() - drawn > PLOT_SECONDS:
                        plot_training(folder / PLOT, read_metrics(folder / METRICS), entry.cost)
                        drawn = time.monotonic()
    except KeyboardInterrupt:
        console.print(f"\nStopped. The best policy so far is in {folder / POLICY}; go on with --resume.")
        if not (folder / POLICY).exists():
            raise
    plot_training(folder / PLOT, read_metrics(folder / METRICS), entry.cost)
    return load_policy(folder / POLICY, type(policy)).to(where)  # type: ignore[return-value]


def start_from(policy: Network, path: Path) -> None:
    """Gives a new policy the weights of a file, which must be of the same architecture; the sizes of problems may differ."""
    weights, header = read_weights(path)
    theirs, ours = (header.get("policy"), json.loads(header.get("config", "{}"))), (type(policy).__name__, policy.config)
    same = theirs[0] == ours[0] and {**ours[1], **theirs[1]} == ours[1]
    require(
        same, f"--from {path} holds {_named(*theirs)}, but this run trains {_named(*ours)}. Give it the same class and sizes."
    )
    try:
        policy.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(f"The weights in {path} do not fit {_named(*ours)}: {error}") from error


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


def _open_folder(
    entry: Entry, settings: RunSettings, folder: Path, about: Mapping[str, Any], resume: bool
) -> dict[str, Any] | None:
    plain = {"problem_name": entry.name, **as_plain(settings), **about}
    if resume:
        saved = load_state(folder / CHECKPOINT)
        theirs = read_settings(folder / SETTINGS)
        theirs |= as_plain(merged(settings, {key: theirs[key] for key in as_plain(settings) if key in theirs}))
        plain |= {key: theirs[key] for key in (START, START_HASH) if key in theirs}  # its weights are in the checkpoint
        free = {"training", LABELS}  # the training checks its own settings; labels may have moved, their content counts
        changed = sorted(key for key in {*plain, *theirs} - free if plain.get(key) != theirs.get(key))
        if changed:
            raise CheckpointError(
                f"{folder} holds a run with other settings ({', '.join(changed)}). Leave them out to resume with the run's own, or "
                f"choose another --folder."
            )
    elif (folder / CHECKPOINT).exists():
        raise CheckpointError(f"{folder} already holds a run. Continue it with --resume, or choose another --folder.")
    else:
        saved = None
    write_atomically(folder / SETTINGS, lambda path: path.write_text(json.dumps(plain, indent=2) + "\n"))
    return saved


def _keep(entry: Entry, folder: Path, policy: Network, epoch: Epoch, metrics: MetricsFile) -> None:
    """Saves an epoch. The checkpoint comes last: what it names is on disk already."""
    state = epoch.checkpoint()
    if epoch.improved or not (folder / POLICY).exists():
        best = copy.deepcopy(policy)  # the initial policy, if no epoch was better
        best.load_state_dict(state["best_policy"])
        save_policy(folder / POLICY, best, problem=entry.name, epoch=str(state["best_epoch"]))
    metrics.append(epoch.metrics())
    save_state(folder / CHECKPOINT, state)


def _line(epoch: Epoch) -> str:
    star = " [green]new best[/green]" if epoch.improved else ""
    seconds = sum(epoch.seconds.values())
    stage = f" (stage {epoch.stage})" if epoch.stage > 1 else ""
    sampled = "" if epoch.sampled is None else f"  sampled {-epoch.sampled:.4f}"
    return (
        f"epoch {epoch.index:4d}{stage}  loss {epoch.loss:.4f}{sampled}  greedy {-epoch.validation:.4f}  {seconds:.1f} s{star}"
    )


@contextmanager
def _bars(console: Console, epochs: int, done: int) -> Iterator[Callable[[Event | Epoch], None]]:
    """Two live bars: all epochs, and the phase of the current one."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        overall = progress.add_task("epochs", total=epochs, completed=done, note="")
        phase = progress.add_task("", total=None, note="")

        def show(event: Event | Epoch) -> None:
            if isinstance(event, Epoch):
                progress.update(overall, completed=event.index)
                return
            value = event.value if event.phase == "training" else -event.value
            label = {"sampling": "sampled", "training": "loss", "validating": "greedy"}[event.phase]
            _restart_when_new(progress, phase, event.phase)
            progress.update(
                phase, description=event.phase, completed=event.done, total=event.total, note=f"{label} {value:.4f}"
            )

        yield show


def _restart_when_new(progress: Progress, task: TaskID, phase: str) -> None:
    if progress.tasks[task].description != phase:
        progress.reset(task)
