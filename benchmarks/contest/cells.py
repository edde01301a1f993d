"""Cells of the table: what one sampler finds on the instances of one case, round by round. Each is a file, so that a run can be resumed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from contest.cases import Case
from contest.samplers import MOST, Entrant
from gumbeldore.evaluation.methods import described, weights_digest
from gumbeldore.files import write_atomically
from gumbeldore.policy import Network

TOGETHER = 100
"""Instances that are searched together."""


@dataclass(frozen=True)
class Cell:
    """A curve for each instance: the best cost after so many evaluations, and the mean of seconds of processor time."""

    family: str
    name: str
    evaluations: Float[np.ndarray, "round instance"]
    cost: Float[np.ndarray, "round instance"]
    seconds: Float[np.ndarray, " round"]


@dataclass(frozen=True)
class Task:
    """A cell to be filled."""

    case: Case
    entrant: Entrant
    policy: Network
    count: int  # of instances
    most: int = MOST  # evaluations

    @property
    def identity(self) -> dict[str, Any]:
        """What the numbers depend on."""
        return {
            "case": self.case.name,
            "sampler": described(self.entrant.sampler),
            "weights": weights_digest(self.policy),
            "instances": self.count,
            "most": self.most,
        }

    def path(self, folder: Path) -> Path:
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:12]
        return folder / "cells" / f"{self.case.name}-{digest}.json"

    def load(self, folder: Path) -> Cell | None:
        """The cell, if it is there."""
        path = self.path(folder)
        if not path.exists():
            return None
        plain = json.loads(path.read_text())
        columns = {name: np.array(plain[name]) for name in ("evaluations", "cost", "seconds")}
        return Cell(self.entrant.family, self.entrant.name, **columns)

    def fill(self, folder: Path) -> Iterator[int]:
        """Computes and keeps the cell; yields how many instances are solved so far."""
        state, seeds = self.case.instances(self.count), self.case.seeds(self.count)
        parts = []
        for start in range(0, self.count, TOGETHER):
            rows = slice(start, min(start + TOGETHER, self.count))
            parts.append(self._curves(state.rows(rows).compact(), seeds[rows]))
            yield rows.stop
        cell = _joined(self.entrant, parts)
        plain = {name: getattr(cell, name).round(6).tolist() for name in ("evaluations", "cost", "seconds")}
        text = json.dumps({"name": cell.name, "family": cell.family, "identity": self.identity, **plain})
        path = self.path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda temporary: temporary.write_text(text))

    def _curves(self, state: Any, seeds: Tensor) -> Cell:
        evaluations, costs, seconds, begin = [], [], [], time.process_time()
        for found in self.entrant.sampler.stream(self.case.problem, self.policy, state, seeds):
            seconds.append((time.process_time() - begin) / state.row_count)
            evaluations.append(found.diagnostics.evaluations.numpy().astype(float))
            costs.append(-found.best_objective.numpy().astype(float))
            if evaluations[-1].min() >= self.most:
                break
        return Cell(self.entrant.family, self.entrant.name, np.stack(evaluations), np.stack(costs), np.array(seconds))


def _joined(entrant: Entrant, parts: list[Cell]) -> Cell:
    """Instances side by side. A search that ended earlier than others stays as it was."""
    rounds = max(len(part.seconds) for part in parts)

    def longer(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values, np.repeat(values[-1:], rounds - len(values), axis=0)])

    weights = [part.cost.shape[1] for part in parts]
    return Cell(
        entrant.family,
        entrant.name,
        np.concatenate([longer(part.evaluations) for part in parts], 1),
        np.concatenate([longer(part.cost) for part in parts], 1),
        np.average([longer(part.seconds) for part in parts], axis=0, weights=weights),
    )


def reference(case: Case, policy: Network, count: int, folder: Path) -> Float[np.ndarray, " instance"]:
    """Costs from which gaps are measured; kept in a file, too."""
    path = folder / "references" / f"{case.training}-{case.size}-{count}.json"
    if not path.exists():
        with torch.no_grad():
            costs = case.reference(policy, case.instances(count), case.seeds(count))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda temporary: temporary.write_text(json.dumps(costs.tolist())))
    return np.array(json.loads(path.read_text()))
