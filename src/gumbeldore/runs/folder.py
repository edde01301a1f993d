"""The folder of a run: what it holds, who may write there, and what the run may be resumed with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gumbeldore.errors import CheckpointError, SettingsError
from gumbeldore.files import LOCK, check_writable, locked, remove_parts, write_atomically
from gumbeldore.io.policy_files import POLICY
from gumbeldore.runs.pulse import FILE as PROGRESS
from gumbeldore.runs.records import as_plain, merged, read_settings
from gumbeldore.runs.renamed import renewed
from gumbeldore.runs.settings import RunSettings
from gumbeldore.training.checkpoint import NEWEST, PREVIOUS, Checkpoints, read_metrics

SETTINGS, METRICS, PLOT = "settings.json", "metrics.jsonl", "training.png"
ENVIRONMENT, DIVERGED = "environment.json", "diverged.pt"
FILES = (SETTINGS, METRICS, NEWEST, PREVIOUS, POLICY, PLOT, ENVIRONMENT, DIVERGED, PROGRESS, f"damaged-{METRICS}")
"""All that a run writes, except for the lock."""

LABELS, LABELS_HASH = "labels", "labels_sha256"  # in the settings.json of supervised runs
INSTANCES, INSTANCES_HASH = "instances", "instances_sha256"  # of runs on a user's own instances
START, START_HASH = "started_from", "started_from_sha256"  # of runs that begin with given weights
RUN = "run"  # in a checkpoint: the content of settings.json


class RunFolder:
    """Reads and checks; nothing is written before `begin`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = Checkpoints(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """For this process alone, and rid of what killed processes left of their files."""
        check_writable(self.path, "--folder")
        with locked(self.path):
            remove_parts(self.path, FILES)
            yield

    @property
    def results(self) -> list[str]:
        """What would be lost if another run began here."""
        found = [name for name in (NEWEST, PREVIOUS, POLICY) if (self / name).exists()]
        return [*found, METRICS] if read_metrics(self / METRICS) else found

    def check_free(self) -> None:
        """Raises where a new run would overwrite an old one."""
        if self.checkpoints.exist:
            raise CheckpointError(f"{self.path} already holds a run. Continue it with --resume, or choose another --folder.")
        if found := self.results:
            raise CheckpointError(
                f"{self.path} holds {' and '.join(found)} of a run, but no checkpoint to resume. Choose another --folder{self._way_on}."
            )

    def load(self) -> tuple[dict[str, Any], str]:
        """The newest checkpoint that is whole, and what to tell about it."""
        if self.checkpoints.exist:
            try:
                saved, note = self.checkpoints.load()
                return _renewed(saved), note
            except CheckpointError as error:
                raise CheckpointError(
                    f"{error} The run cannot go on; choose another --folder for a new one{self._way_on}."
                ) from error
        found = f" It holds {' and '.join(self.results)} of a run; choose another --folder for a new one{self._way_on}."
        raise CheckpointError(f"There is no checkpoint in {self.path} to resume from.{found if self.results else ''}")

    @property
    def _way_on(self) -> str:
        return f", which may start from the weights of the old one: --from {self / POLICY}" if (self / POLICY).exists() else ""

    def settings(self) -> dict[str, Any]:
        """The run's own: of settings.json, or of a checkpoint if that is lost or damaged. Empty if there is no run."""
        try:
            return read_settings(self / SETTINGS)
        except SettingsError:
            with suppress(CheckpointError):
                return _renewed(self.checkpoints.load()[0]).get(RUN) or {}
            if (self / SETTINGS).exists():
                raise
        return {}

    def check_resumable(
        self, saved: Mapping[str, Any], plain: Mapping[str, Any], settings: RunSettings, usual: RunSettings
    ) -> None:
        """Raises unless the run may go on with these settings. The training's own ones are compared one by one.

        What its record does not know yet is as `usual`.
        """
        missing = [name for name in ("epoch", "settings", "best_policy", "best_epoch") if name not in saved]
        if missing or type(saved["epoch"]) is not int or not isinstance(saved.get(RUN, {}), dict):
            fault = f"`{missing[0]}` is missing" if missing else f"`epoch` is {saved['epoch']!r}, `{RUN}` is {saved.get(RUN)!r}"
            raise CheckpointError(
                f"The checkpoint in {self.path} does not fit this run: {fault}. Was it made by another program?"
            )
        theirs = dict(saved.get(RUN) or read_settings(self / SETTINGS))
        theirs |= as_plain(merged(usual, {key: theirs[key] for key in as_plain(settings) if key in theirs}))
        free = {
            "training",
            LABELS,
            INSTANCES,
            START,
            START_HASH,
        }  # labels may have moved, their content counts; weights are in the checkpoint
        names = sorted({*plain, *theirs} - free)
        changed = [name for name in names if _without_rates(plain.get(name)) != _without_rates(theirs.get(name))]
        if changed:
            raise CheckpointError(
                f"{self.path} holds a run with other settings ({', '.join(changed)}). Leave them out to resume with the run's own, or "
                f"choose another --folder. If {SETTINGS} was changed, delete it: the checkpoint knows the settings."
            )
        settings.training.check_resumes(saved["settings"])

    def begin(self, plain: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
        """Writes settings.json, and another record to environment.json."""
        starts: list[Any] = []
        with suppress(OSError, ValueError):
            starts = list(json.loads((self / ENVIRONMENT).read_text()))
        for name, content in ((SETTINGS, plain), (ENVIRONMENT, [*starts, environment])):
            text = json.dumps(content, indent=2) + "\n"
            write_atomically(self / name, lambda path, text=text: path.write_text(text))  # type: ignore[misc]

    def clear(self, others: tuple[str, ...] = ()) -> None:
        """Removes the files of the run and those called `others`; whatever else is in the folder stays."""
        with locked(self.path):
            for name in (*FILES, *others):
                (self / name).unlink(missing_ok=True)
            remove_parts(self.path, (*FILES, *others))
            (self / LOCK).unlink(missing_ok=True)


def _renewed(saved: dict[str, Any]) -> dict[str, Any]:
    """A checkpoint with its settings as this version names them."""
    changes: dict[str, Any] = {}
    if isinstance(saved.get(RUN), Mapping):
        changes[RUN] = renewed(saved[RUN])
    if isinstance(saved.get("settings"), Mapping):
        changes["settings"] = renewed({"training": saved["settings"]})["training"]
    return {**saved, **changes}


def _without_rates(setting: Any) -> Any:
    """The learning rates of stages may change."""
    if isinstance(setting, list):
        return [_without_rates(stage) for stage in setting]
    return {key: value for key, value in setting.items() if key != "learning_rate"} if isinstance(setting, Mapping) else setting
