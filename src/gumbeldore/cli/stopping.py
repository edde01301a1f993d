"""Being asked to stop: SIGTERM (of `kill`, a batch system, a container) is like Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = 130
"""The exit code of a command that was stopped early."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Within it SIGTERM raises a KeyboardInterrupt, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # others cannot set handlers
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
