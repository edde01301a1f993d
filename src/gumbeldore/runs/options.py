"""What is no setting of a run: how it begins, where it works now, and how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from rich.console import Console

from gumbeldore.parallel.cluster import Cluster
from gumbeldore.parallel.devices import pick_device, pick_workers


@dataclass(frozen=True)
class RunOptions:
    """How a run begins, where it works now, and how long."""

    resume: bool = False
    start: Path | None = None  # a file of weights to begin with
    device: str = "auto"
    workers: int | Cluster | None = None  # processes to work in, or a cluster; None: one per core, on a CPU
    max_seconds: float | None = None  # no epoch begins that would probably end later
    tensorboard: bool = False
    console: Console = field(default_factory=Console)  # where progress is shown

    @cached_property
    def place(self) -> torch.device:
        return pick_device(self.device)

    @cached_property
    def pool(self) -> int | Cluster:
        """Decided once: while workers work, this process has fewer threads."""
        return self.workers if isinstance(self.workers, Cluster) else pick_workers(self.workers, self.device)
