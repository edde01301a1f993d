"""The program `gumbeldore`: signals are handled before anything is imported, this file's own needs included.

So a command that is stopped while Python still reads modules says so in one line and by its exit code, without a traceback. Only what
comes before this file, the start of the interpreter itself, is left to Python.
"""

import _signal  # type: ignore[import-not-found] # what `signal` is made of: it comes with the interpreter, and costs nothing
import os

STOPPED = 130
"""The exit code of a command that Ctrl-C ended early."""

ENDINGS: dict[int, int] = {
    getattr(_signal, name): code
    for name, code in (("SIGINT", STOPPED), ("SIGTERM", 143), ("SIGHUP", 129))
    if hasattr(_signal, name)
}
"""Signals that stop a command, and its exit code then: 128 and the signal's number. SIGHUP is a closed terminal."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code. Errors that users can mend are one line, not a traceback.

    Without `arguments` this process is the program `gumbeldore`, and does nothing else.
    """
    program = arguments is None
    for number in ENDINGS if program else ():
        if _signal.getsignal(number) != _signal.SIG_IGN:  # whoever started this process wants it ignored (nohup)
            _signal.signal(number, _stopped)
    from gumbeldore.cli.dispatch import chosen, prepared
    from gumbeldore.cli.outcome import Outcome
    from gumbeldore.cli.signals import STOPS

    with STOPS.handled(program=program), Outcome() as outcome:
        given = prepared() if arguments is None else list(arguments)
        outcome.returned(chosen(given)())
    return outcome.code


def _stopped(number: int, frame: object) -> None:
    """There is nothing to lose yet."""
    os.write(2, b"Stopped.\n")
    os._exit(ENDINGS[number])
