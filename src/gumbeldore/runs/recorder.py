"""Writes down what a run brings forth. A full disk does not stop the run: it is told, and writing is tried again."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from gumbeldore.errors import DiskFullError, GumbeldoreError
from gumbeldore.io.policy_files import POLICY, save_policy
from gumbeldore.kits.measure import Measure
from gumbeldore.policy import Network
from gumbeldore.runs.curves import plot_training
from gumbeldore.runs.folder import DIVERGED, METRICS, PLOT, RUN, RunFolder
from gumbeldore.training.algorithm import Epoch
from gumbeldore.training.checkpoint import MetricsFile, iterate_metrics, save_state
from gumbeldore.training.divergence import DivergenceError

_PLOT_SECONDS = 60  # the curves are drawn anew at most this often, and at the end
pause = time.sleep  # by a name of its own, which tests can replace without stopping the clocks of others
_RETRY_SECONDS = 10  # so often a last epoch that found no room is tried again ...
_RETRIES = 360  # ... for an hour


class Recorder:
    """The files of a run that goes on. `about` is the content of its settings.json."""

    def __init__(
        self,
        folder: RunFolder,
        policy: Network,
        about: Mapping[str, Any],
        measure: Measure,
        console: Console,
        saved_epoch: int = 0,
    ) -> None:
        self.folder, self.about, self.measure, self.console = folder, about, measure, console
        self.saved_epoch = saved_epoch  # the last one that is safe
        self._policy = copy.deepcopy(policy).requires_grad_(False)
        self._policy_epoch: int | None = None  # of the weights in the policy file
        self._drawn = -float("inf")
        self._unsaved: Mapping[str, Any] | None = None

    def begin(self, saved: Mapping[str, Any] | None, environment: Mapping[str, Any]) -> None:
        """Writes what there is before the first epoch."""
        self.folder.begin(self.about, environment)
        if saved:
            self.take_over(saved)
        self._metrics = MetricsFile(self.folder / METRICS, keep_epochs=self.saved_epoch)
        if self._metrics.note:
            self.tell(self._metrics.note)

    def take_over(self, saved: Mapping[str, Any]) -> None:
        """The policy file becomes the best policy of the checkpoint, whatever it was."""
        self._save_policy(saved)

    def keep(self, epoch: Epoch) -> None:
        """Saves an epoch, and what could not be saved before. The checkpoint comes last: what it names is on disk already."""
        state = {**epoch.checkpoint(), RUN: self.about}
        try:
            self._metrics.append(epoch.metrics())
            self._save(state)
        except DiskFullError as error:
            self._unsaved = copy.deepcopy(state)  # the weights change with the next step
            self.tell(f"{error} Training goes on and tries again; epoch {self.saved_epoch} is the last one that is saved.")

    def draw(self, *, now: bool = False) -> None:
        """The curves, if the last ones are old."""
        if not now and time.monotonic() - self._drawn < _PLOT_SECONDS:
            return
        try:
            plot_training(self.folder / PLOT, iterate_metrics(self.folder / METRICS), self.measure)
        except DiskFullError as error:
            self.tell(str(error))
        self._drawn = time.monotonic()

    def finish(self, retries: int = _RETRIES) -> None:
        """Saves what could not be saved, waiting for room, and draws the curves."""
        for attempt in range(retries + 1):
            if self._unsaved is None:
                break
            try:
                self._metrics.flush()
                self._save(self._unsaved)
            except DiskFullError as error:
                if attempt == retries:
                    raise
                if attempt == 0:
                    self.tell(f"{error} Waiting for it with the last epoch; Ctrl-C gives it up.")
                pause(_RETRY_SECONDS)
        if self.saved_epoch:
            self.draw(now=True)

    def save_divergence(self, error: DivergenceError, problem: str) -> GumbeldoreError:
        """Writes the step that failed into a file, and returns the error that says so."""
        path = self.folder / DIVERGED
        try:
            save_state(path, {**error.reproducer, RUN: self.about})
        except DiskFullError as full:
            return GumbeldoreError(f"{error} {full}")
        return GumbeldoreError(f"{error} The step is in {path}: `gumbeldore check {problem} --diverged {path}` repeats it.")

    @property
    def results(self) -> str:
        """Where they are."""
        return f"The best policy is {self.folder / POLICY}, the curves are {self.folder / PLOT}."

    def tell(self, note: str) -> None:
        self.console.print(f"[yellow]Note:[/yellow] {escape(note)}", highlight=False, soft_wrap=True)

    def _save(self, state: Mapping[str, Any]) -> None:
        self._save_policy(state)
        self.folder.checkpoints.save(state)
        self.saved_epoch, self._unsaved = state["epoch"], None

    def _save_policy(self, state: Mapping[str, Any]) -> None:
        """The best policy, the initial one if no epoch was better."""
        if self._policy_epoch == state["best_epoch"] and (self.folder / POLICY).exists():
            return
        self._policy.load_state_dict(state["best_policy"])
        save_policy(
            self.folder / POLICY,
            self._policy,
            problem=self.about["problem_name"],
            epoch=str(state["best_epoch"]),
            trained_on=json.dumps({name: self.about[name] for name in ("problem", "stages") if self.about.get(name)}),
        )
        self._policy_epoch = state["best_epoch"]
