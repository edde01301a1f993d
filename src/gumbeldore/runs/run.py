"""A training run as an object: iterated, resumed, reported."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gumbeldore.errors import CheckpointError, require
from gumbeldore.io.policy_files import POLICY, load_policy
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.policy import Network
from gumbeldore.runs.folder import RunFolder
from gumbeldore.runs.folders import Line, RunRecord, read_run
from gumbeldore.runs.options import RunOptions
from gumbeldore.runs.own_instances import OwnInstances
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.records import merged
from gumbeldore.runs.settings import RunSettings
from gumbeldore.runs.training import Session
from gumbeldore.training.algorithm import Epoch
from gumbeldore.training.state import Progress


@dataclass(frozen=True)
class TrainingRun:
    """A training in a folder. Nothing happens before it is iterated: then it trains, and every finished epoch is saved.

    for epoch in run:           # leaving the loop stops the run; it can be resumed
        print(epoch.index, epoch.validation)
    policy = run.policy         # the best one so far
    run.resume(epochs=100).finish()
    """

    entry: Entry
    settings: RunSettings
    folder: Path
    options: RunOptions = field(default_factory=RunOptions)
    labels: Mapping[Path, InstanceSet] | None = None  # to imitate; None: self-improvement
    instances: OwnInstances | None = None  # to solve, instead of generated ones

    def __iter__(self) -> Iterator[Epoch]:
        """The epochs, as they are finished and saved."""
        with closing(self.events()) as events:
            yield from (event for event in events if isinstance(event, Epoch))

    def events(self) -> Generator[Progress | Epoch, None, None]:
        """The epochs, and where they stand meanwhile."""
        return Session(self.entry, self.settings, RunFolder(self.folder), self.options, self.labels, self.instances).events()

    def finish(self) -> Network:
        """Trains to the end; returns the best policy."""
        for _ in self:
            pass
        return self.policy

    @property
    def policy(self) -> Network:
        """The best policy so far."""
        path = self.folder / POLICY
        if not path.is_file():
            raise CheckpointError(f"{self.folder} holds no policy yet. Iterate the run, or call its `finish()`.")
        return load_policy(path, self.entry.architecture.network).to(self.options.place)  # type: ignore[return-value]

    @property
    def record(self) -> RunRecord:
        """What its folder says: state, times, settings, metrics."""
        return read_run(self.folder)

    @property
    def history(self) -> list[Line]:
        """The metrics of every finished epoch."""
        return self.record.metrics

    @property
    def best(self) -> Line | None:
        """The metrics of the epoch whose policy is the best; None before there is one."""
        return self.record.best

    def resume(self, **changes: Any) -> TrainingRun:
        """The same run, going on from its last checkpoint; `epochs`, `patience`, `goal` and learning rates may change."""
        settings = merged(self.settings, {"training": changes})
        return replace(self, settings=settings, options=replace(self.options, resume=True, start=None))

    def report(self, out: str | Path = "report.html", *, solutions: int = 3) -> Path:
        """Writes one page of HTML about the run; returns where it is."""
        from gumbeldore.runs.report import write_report

        require((self.folder / "settings.json").is_file(), f"{self.folder} holds no run yet. Iterate it first.")
        return write_report([self.folder], Path(out), solutions=solutions, entries={self.entry.name: self.entry})
