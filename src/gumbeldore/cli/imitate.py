"""`gumbeldore imitate`: supervised training on expert solutions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.cli.run_options import early_options, options_of, run_settings, saved_changes, sizes_of
from gumbeldore.errors import SettingsError, require
from gumbeldore.io.instance_files import read_instances
from gumbeldore.kits.instances import largest
from gumbeldore.runs.folder import LABELS, LABELS_HASH
from gumbeldore.runs.presets import SUPERVISED
from gumbeldore.runs.records import merged
from gumbeldore.runs.training import file_hash, imitate


def command(arguments: list[str]) -> None:
    """gumbeldore imitate PROBLEM"""
    entry, arguments = take_entry("imitate", arguments)
    entry.kit.need("instance files", "instances")
    early, rest = early_options(arguments, f"runs/{entry.name}-imitation", labels=True)
    early.preset = early.preset or f"{SUPERVISED}-small"
    changes, is_record = saved_changes(entry, early)
    files = early.labels or named_labels(changes)
    changes = {name: value for name, value in changes.items() if name not in (LABELS, LABELS_HASH)}
    if not files and not {"--help", "-h"} & set(rest):
        what = f"Name labels to learn from: gumbeldore imitate {entry.name} --labels FILE.npz. `gumbeldore label` makes them."
        raise SettingsError(f"{early.folder} holds no supervised run to resume." if early.resume else what)
    labels = {path: read_instances(path, entry.instances) for path in files}
    sizes = {"problem": largest(labels.values())} if labels else {}
    base = entry.recorded({}) if is_record else entry.settings(early.preset, {**sizes, **sizes_of(early, entry)})
    settings = run_settings(
        "imitate",
        entry,
        early,
        rest,
        merged(base, changes),
        f"Train {entry.summary} on expert solutions: --labels FILE.npz [FILE.npz ...], made by `gumbeldore label`.\n\nThe size of the "
        f"problem is that of the labels; validation instances are generated. What concerns sampling (training.instances, ...) is not used.",
    )
    imitate(entry, settings, labels, early.folder, **options_of(early))


def named_labels(changes: Mapping[str, Any]) -> list[Path]:
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
