"""Ctrl-C, SIGTERM and a closed terminal (SIGHUP): how a command is stopped, and the exit code that says so.

Nothing heavy is imported here: the handlers must be there before it is.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from gumbeldore.start import ENDINGS, STOPPED


class Stops:
    """What this process does when it is stopped, and by which signal it was."""

    def __init__(self) -> None:
        self.received: int | None = None

    @property
    def code(self) -> int:
        """The exit code of a command that was stopped."""
        return STOPPED if self.received is None else ENDINGS[self.received]

    def raised(self, number: int, frame: FrameType | None) -> None:
        """A handler: everything is tidied up on the way out."""
        self.received = number
        raise KeyboardInterrupt

    def at_once(self, number: int, frame: FrameType | None) -> None:
        """A handler for when there is nothing to lose yet, or any more: imports and the interpreter's end cannot be interrupted well."""
        self.received = number
        os.write(2, b"Stopped.\n")
        os._exit(self.code)

    @contextmanager
    def handled(self, *, program: bool) -> Iterator[None]:
        """The signals stop what is done here. A `program` does nothing else, so that its handlers stay afterwards."""
        self.received = None
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in ENDINGS}
        if program:
            sys.unraisablehook = self._repeated
        self.set(self.at_once if program else self.raised)
        try:
            yield
        finally:
            if program:
                self.set(self.at_once)
            else:
                for number, handler in before.items():
                    signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def set(self, handler: Any) -> None:
        """All signals but those that whoever started this process wants ignored (nohup)."""
        if threading.current_thread() is threading.main_thread():
            for number in ENDINGS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, handler)

    def _repeated(self, fault: Any) -> None:
        """Where Python can raise nothing (in a finaliser, say), it drops an interrupt: it comes again a moment later."""
        if isinstance(fault.exc_value, KeyboardInterrupt) and self.received is not None:
            threading.Timer(0.05, _thread.interrupt_main, (self.received,)).start()
        else:
            sys.__unraisablehook__(fault)


STOPS = Stops()
