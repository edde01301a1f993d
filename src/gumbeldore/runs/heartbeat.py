"""The pulse of a run: progress.json in its folder, renewed every few seconds, for those who look from elsewhere."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from gumbeldore.errors import GumbeldoreError
from gumbeldore.files import write_atomically
from gumbeldore.kits.measure import COST, Measure
from gumbeldore.runs import process_info as processes
from gumbeldore.runs.pulse import FILE, Pulse
from gumbeldore.training.algorithm import Epoch
from gumbeldore.training.state import Progress

SECONDS = 5.0  # it is written at most this often, and at the end
_EPOCH_SECONDS = 1.0  # the same when an epoch is finished


class Heartbeat:
    """Writes the pulse from the first event of a training on, and how it ended. A full disk does not stop it.

    A training that ends before that, with an error or because it was finished already, leaves the pulse of the one before as it is.

    with Heartbeat(folder, epochs) as beat:
        for event in events:
            beat(event)
    """

    def __init__(
        self, folder: Path, epochs: int, done: int = 0, clock: Callable[[], float] = time.time, measure: Measure = COST
    ) -> None:
        self.path, self.clock = folder / FILE, clock
        now, pid = clock(), os.getpid()
        self.pulse = Pulse(
            state="running",
            pid=pid,
            born=processes.born(pid),
            host=platform.node(),
            epoch=done,
            epochs=epochs,
            phase="",
            done=0,
            total=0,
            rate=0.0,
            memory_mb=0.0,
            began=now,
            epoch_began=now,
            written=0.0,
            cost=measure.name,
            maximises=measure.maximises,
        )
        self._last = self._phase_began = now

    def __call__(self, event: Progress | Epoch) -> None:
        now, before = self.clock(), self.pulse
        if isinstance(event, Epoch):
            self.pulse = replace(before, epoch=event.index, epoch_began=now, phase="", done=0, total=0)
        else:
            if event.phase != before.phase:
                self._phase_began = self._last
            rate = event.done / (now - self._phase_began) if now > self._phase_began else 0.0
            self.pulse = replace(before, epoch=event.epoch, phase=event.phase, done=event.done, total=event.total, rate=rate)
        self._last = now
        if now - self.pulse.written >= (_EPOCH_SECONDS if isinstance(event, Epoch) else SECONDS):
            self._write(now)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self.pulse.written:
            return
        state = "finished" if kind is None else "stopped" if issubclass(kind, KeyboardInterrupt | GeneratorExit) else "failed"
        message = f"{type(error).__name__}: {error}" if state == "failed" else ""
        self.pulse = replace(self.pulse, state=state, message=message)
        self._write(self.clock())

    def _write(self, now: float) -> None:
        self.pulse = replace(self.pulse, written=now, memory_mb=round(processes.memory_mb(os.getpid()), 1))
        text = json.dumps(asdict(self.pulse), indent=1) + "\n"
        with suppress(OSError, GumbeldoreError):
            write_atomically(self.path, lambda path: path.write_text(text))
