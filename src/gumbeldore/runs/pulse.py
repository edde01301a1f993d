"""Where a run stands: what its progress.json says. Reading it imports nothing heavy, for `gumbeldore status`."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass, fields
from pathlib import Path

from gumbeldore.kits.measure import Measure
from gumbeldore.runs import process_info as processes

FILE = "progress.json"


@dataclass(frozen=True)
class Pulse:
    """Where a run stands, and which process works on it."""

    state: str  # "running", "finished", "stopped" (by Ctrl-C, say) or "failed"
    pid: int
    born: str  # tells the process from a later one of the same number
    host: str
    epoch: int  # the one that is worked on, from 1
    epochs: int  # planned
    phase: str  # "sampling", "training" or "validating"; empty before the first one
    done: int  # of the phase
    total: int
    rate: float  # done per second, in this phase
    memory_mb: float  # of all processes of the run
    began: float  # when the process began with the run, in seconds since 1970
    epoch_began: float
    written: float
    message: str = ""  # of the error that ended it
    cost: str = "cost"  # what the validation is the negative of ...
    maximises: bool = False  # ... or, then, what it is

    @property
    def measure(self) -> Measure:
        return Measure(self.cost, self.maximises)

    @property
    def lives(self) -> bool | None:
        """Whether its process still works on it; None where that cannot be known: on another machine."""
        if self.state != "running":
            return False
        return processes.lives(self.pid, self.born) if self.host == platform.node() else None


def read_pulse(path: Path) -> Pulse | None:
    """The pulse in a file; None if there is none that can be read."""
    try:
        plain = json.loads(path.read_text())
        pulse = Pulse(**plain)
    except (OSError, ValueError, TypeError):
        return None
    kinds = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}
    sound = all(isinstance(getattr(pulse, f.name), kinds[str(f.type)]) for f in fields(Pulse))
    return pulse if sound and all(math.isfinite(v) for v in plain.values() if isinstance(v, float)) else None
