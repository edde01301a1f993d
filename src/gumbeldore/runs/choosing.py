"""Which settings a run begins with: a preset's, those of a file or of an earlier run; and the weights and labels that these name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gumbeldore.errors import SettingsError, require
from gumbeldore.io.instance_files import read_instances
from gumbeldore.io.policy_files import config_of, policy_file, read_weights
from gumbeldore.kits.instances import InstanceSet, largest
from gumbeldore.runs.folder import INSTANCES, INSTANCES_HASH, LABELS, LABELS_HASH, START, START_HASH, RunFolder
from gumbeldore.runs.own_instances import Own, OwnInstances
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.records import merged, read_settings
from gumbeldore.runs.settings import RunSettings
from gumbeldore.runs.weights import file_hash


@dataclass(frozen=True)
class Choice:
    """What a run begins with."""

    settings: RunSettings
    start: Path | None = None  # weights
    labels: Mapping[Path, InstanceSet] = field(default_factory=dict)
    instances: OwnInstances | None = None


def chosen(
    entry: Entry,
    folder: Path,
    *,
    preset: str | None = None,
    changes: Mapping[str, Any] | Path | None = None,
    start: Path | None = None,
    resume: bool = False,
    instances: Sequence[Own] = (),
) -> Choice:
    """What a training by self-improvement begins with. `changes`, a table or a file of settings, go on top of the preset."""
    record = _record(entry, folder, changes, resume)
    if LABELS in record.content:
        raise SettingsError(
            f"{folder} holds a supervised run. Go on with it by `gumbeldore imitate {entry.argument} --resume`."
        )
    start = _weights(start, record, resume)
    content = {name: value for name, value in record.content.items() if name not in (INSTANCES, INSTANCES_HASH)}
    own = _own_instances(entry, instances, record.content)
    if record.complete:
        return Choice(entry.recorded(content), start, instances=own)
    sizes = {"problem": largest(own.sets)} if own else {}
    return Choice(entry.settings(preset, {**sizes, **_sizes_of(start, entry), **content}), start, instances=own)


def _own_instances(entry: Entry, given: Sequence[Own], record: Mapping[str, Any]) -> OwnInstances | None:
    """The instances that are given, or those of the record of a run, as they were then."""
    named = given or [Path(name) for name in record.get(INSTANCES, [])]
    if not named:
        require(INSTANCES_HASH not in record, "This run was trained on arrays in memory: give them again as `instances`.")
        return None
    own = OwnInstances.read(entry.kit, named)
    same = record.get(INSTANCES_HASH) in (None, own.digest)
    require(same, "The instances have changed since the run that was trained on them. Start a new run, --from its weights.")
    return own


def chosen_with_labels(
    entry: Entry,
    folder: Path,
    labels: Sequence[Path] = (),
    *,
    preset: str | None = None,
    changes: Mapping[str, Any] | Path | None = None,
    start: Path | None = None,
    resume: bool = False,
) -> Choice:
    """What supervised training begins with; the problem has the size of the labels. No labels at all are left to the caller."""
    entry.kit.need("instance files", "instances")
    record = _record(entry, folder, changes, resume)
    files = list(labels) or _named_labels(record.content)
    content = {name: value for name, value in record.content.items() if name not in (LABELS, LABELS_HASH)}
    found = {path: read_instances(path, entry.instances) for path in files}
    start = _weights(start, record, resume)
    if record.complete:
        return Choice(entry.recorded(content), start, found)
    sizes = {"problem": largest(found.values())} if found else {}
    base = entry.settings(preset, {**sizes, **_sizes_of(start, entry)}, supervised=True)
    return Choice(merged(base, content), start, found)


@dataclass(frozen=True)
class _Record:
    """Settings from a table or a file."""

    content: dict[str, Any]
    complete: bool  # the record of a run
    start: Path | None  # the weights with which that run began


def _record(entry: Entry, folder: Path, changes: Mapping[str, Any] | Path | None, resume: bool) -> _Record:
    """What a table, a file or the run to resume says. A run that began with given weights is repeated with them."""
    if isinstance(changes, Path):
        content = read_settings(changes)
    else:
        content = RunFolder(folder).settings() if resume and not changes else dict(changes or {})
    name, start, digest = (content.pop(key, None) for key in ("problem_name", START, START_HASH))
    require(name in (None, entry.name), f"These settings are not for `{entry.name}`, but for `{name}`.")
    path = Path(start) if isinstance(start, str) and not resume else None
    if path is not None:
        same = not path.is_file() or file_hash(path) == digest
        require(same, f"{path}, from whose weights the run began, has changed since. Name other weights with --from.")
    return _Record(content, name is not None, path)


def _weights(start: Path | None, record: _Record, resume: bool) -> Path | None:
    """The file of weights to begin with, if there are to be some: a named one, or that of the run that is repeated."""
    if start is None:
        return None if resume else record.start
    return policy_file(start)


def _sizes_of(start: Path | None, entry: Entry) -> dict[str, Any]:
    """The size of the policy to start from, as changes of settings."""
    if start is None:
        return {}
    _, header = read_weights(start)
    known = vars(entry.architecture.size)
    config = config_of(header, start, entry.architecture.network)
    return {"policy": {name: config.get(name, usual) for name, usual in known.items()}}


def _named_labels(changes: Mapping[str, Any]) -> list[Path]:
    """The labels that a run names in its settings, as they were then."""
    names, digests = changes.get(LABELS, []), changes.get(LABELS_HASH, [])
    texts = isinstance(names, list) and isinstance(digests, list) and all(isinstance(text, str) for text in [*names, *digests])
    require(texts, f"`{LABELS}` and `{LABELS_HASH}` must be lists of texts, got {names!r} and {digests!r}.")
    files = [Path(name) for name in names]
    for path, digest in zip(files, digests, strict=False):
        same = not path.is_file() or file_hash(path) == digest
        require(
            same,
            f"The labels {path} have changed since the run that learnt from them ({LABELS_HASH}). Name others with --labels.",
        )
    return files
