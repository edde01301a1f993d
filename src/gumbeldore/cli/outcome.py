"""What becomes of a command: the exit code, and errors that users can mend as one line, not a traceback."""

from __future__ import annotations

import os
import sys
from types import TracebackType

from gumbeldore.cli.signals import STOPS
from gumbeldore.errors import GumbeldoreError, foreign_fault, memory_fault
from gumbeldore.start import STOPPED


class Outcome:
    """A context for a command: `returned` takes what it returns, and what it raises becomes a line and an exit code."""

    code = 0

    def returned(self, code: int | None) -> None:
        self.code = STOPS.code if code == STOPPED else code or 0
        sys.stdout.flush()

    def __enter__(self) -> Outcome:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, BrokenPipeError):  # `gumbeldore --help | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush is quiet
            self.code = 0
        elif isinstance(error, KeyboardInterrupt):
            print("Stopped.", file=sys.stderr)
            self.code = STOPS.code
        elif isinstance(error, Exception) and (reason := _reason_of(error)):
            _show(reason)
            self.code = 2
        else:
            return False
        return True


def _reason_of(error: Exception) -> str:
    """What a user should know and can mend; nothing for a fault of ours."""
    if isinstance(error, GumbeldoreError):
        return str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.filename or 'A file'}: {(error.strerror or '').lower()}."
    return memory_fault(error) or ("" if isinstance(error, OSError) else foreign_fault(error))


def _show(reason: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True).print(f"[red]Error:[/red] {escape(reason)}", highlight=False, markup=True, soft_wrap=True)
