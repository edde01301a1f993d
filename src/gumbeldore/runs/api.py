"""Training from Python: what `gumbeldore train` and `gumbeldore imitate` do.

run = gumbeldore.train("tsp", folder="runs/first", training={"epochs": 20})
for epoch in run:
    print(epoch.index, epoch.validation)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from gumbeldore.errors import require
from gumbeldore.kits.kit import Kit
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.runs.choosing import chosen, chosen_with_labels
from gumbeldore.runs.options import RunOptions
from gumbeldore.runs.own_instances import Own
from gumbeldore.runs.presets import Entry, entry_of
from gumbeldore.runs.records import merged
from gumbeldore.runs.run import TrainingRun
from gumbeldore.runs.settings import RunSettings, ValidationSettings
from gumbeldore.search.settings import SamplerSettings
from gumbeldore.training.settings import TrainingSettings

Changes = Mapping[str, Any]


def train(
    kit: str | Kit | Entry,
    /,
    folder: str | Path | None = None,
    *,
    preset: str | None = None,
    settings: Changes | str | Path | None = None,
    problem: Any | Changes | None = None,
    policy: Any | Changes | None = None,
    sampler: SamplerSettings | Changes | str | None = None,
    training: TrainingSettings | Changes | None = None,
    validation: ValidationSettings | Changes | None = None,
    instances: Own | Sequence[Own] = (),
    epochs: int | None = None,
    start: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    workers: int | Cluster | None = None,
    max_seconds: float | None = None,
    tensorboard: bool = False,
    progress: bool = True,
) -> TrainingRun:
    """A training by self-improvement. It begins when the run is iterated.

    `kit` is a kit, its name (`tsp`, `tsp-lehd`, ...) or where it stands (`file.py:KIT`). The settings are those of `preset`, changed by
    `settings` (a table or a file), then by the groups that are named as in the file: a table changes some of a group's settings,
    a record (`TrainingSettings(...)`) replaces all of them. `instances` are files, folders or sets of your own to train on, of any sizes. `start` names weights to begin with. `resume` goes on with the run in `folder`.
    """
    entry = entry_of(kit)
    place = Path(folder if folder is not None else f"runs/{entry.name}")
    begin = None if start is None else Path(start)
    own = [instances] if isinstance(instances, Own) else list(instances)
    choice = chosen(entry, place, preset=preset, changes=_table(settings), start=begin, resume=resume, instances=own)
    groups = {"problem": problem, "policy": policy, "sampler": sampler, "training": training, "validation": validation}
    options = RunOptions(resume, choice.start, device, workers, max_seconds, tensorboard, _console(progress))
    return TrainingRun(entry, _changed(choice.settings, groups, epochs), place, options, instances=choice.instances)


def imitate(
    kit: str | Kit | Entry,
    /,
    labels: str | Path | Sequence[str | Path] = (),
    folder: str | Path | None = None,
    *,
    preset: str | None = None,
    settings: Changes | str | Path | None = None,
    problem: Any | Changes | None = None,
    policy: Any | Changes | None = None,
    training: TrainingSettings | Changes | None = None,
    validation: ValidationSettings | Changes | None = None,
    epochs: int | None = None,
    start: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    workers: int | Cluster | None = None,
    max_seconds: float | None = None,
    tensorboard: bool = False,
    progress: bool = True,
) -> TrainingRun:
    """Supervised training on files of labels (`gumbeldore label` makes them); otherwise as `train`."""
    entry = entry_of(kit)
    place = Path(folder if folder is not None else f"runs/{entry.name}-imitation")
    files = [Path(labels)] if isinstance(labels, str | Path) else [Path(name) for name in labels]
    begin = None if start is None else Path(start)
    choice = chosen_with_labels(entry, place, files, preset=preset, changes=_table(settings), start=begin, resume=resume)
    require(bool(choice.labels), "`labels` must name at least one file of labelled instances, got none.")
    groups = {"problem": problem, "policy": policy, "training": training, "validation": validation}
    options = RunOptions(resume, choice.start, device, workers, max_seconds, tensorboard, _console(progress))
    return TrainingRun(entry, _changed(choice.settings, groups, epochs), place, options, choice.labels)


def _table(settings: Changes | str | Path | None) -> Changes | Path | None:
    return Path(settings) if isinstance(settings, str) else settings


def _changed(base: RunSettings, groups: Mapping[str, Any], epochs: int | None) -> RunSettings:
    """The settings with these groups changed or replaced, and so many epochs."""
    tables = {name: group for name, group in groups.items() if isinstance(group, Mapping | str)}
    records = {name: group for name, group in groups.items() if group is not None and name not in tables}
    for name, record in records.items():
        require(is_dataclass(record), f"`{name}` must be a table or a record of settings, got {record!r}.")
    if epochs is not None:
        base = merged(base, {"training": {"epochs": epochs}})
    return merged(replace(base, **records), tables)


def _console(progress: bool) -> Console:
    return Console(quiet=not progress)
