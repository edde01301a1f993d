"""The library's own errors: each message names what is wrong, the rule, the value and, where there is one, the fix."""

from __future__ import annotations

import os
from functools import cache


class GumbeldoreError(Exception):
    """Base of all errors that the library raises on purpose."""


class SettingsError(GumbeldoreError, ValueError):
    """A setting is unknown or outside its range."""


class ContractError(GumbeldoreError, ValueError):
    """A problem or a policy broke the contract (NaN logits, a mask without actions, a non-finite objective, ...)."""


class NotFiniteError(ContractError):
    """The logits of a policy, or its loss, are no numbers."""


class CheckpointError(GumbeldoreError, ValueError):
    """A file is not what it should be: unreadable, of another format, or of another run."""


class FormatError(GumbeldoreError, ValueError):
    """A file cannot be read as what it should hold."""


class DiskFullError(GumbeldoreError):
    """There is no room left for a file."""


class BusyError(GumbeldoreError):
    """Another process uses the folder."""


def require(condition: bool, message: str) -> None:
    """Raises a `SettingsError` with `message` unless `condition` holds."""
    if not condition:
        raise SettingsError(message)


def require_positive(**numbers: int) -> None:
    """Raises a `SettingsError` for the first of these numbers that is below 1."""
    for name, number in numbers.items():
        require(number >= 1, f"`{name}` must be at least 1, got {number}.")


@cache
def notice(message: str) -> None:
    """Says something on one line, once: that an old name of a setting is read as a new one, say."""
    import logging

    logging.getLogger("gumbeldore").warning(message)


_TOO_LARGE = ("can't allocate memory", "out of memory", "Storage size calculation overflowed", "Overflow when unpacking long")
"""How torch says that something does not fit into memory, or not even into a number; it has no class of errors for it."""


def memory_fault(error: BaseException) -> str:
    """What to do about an error that says that memory ran out; nothing for any other."""
    torch_says = isinstance(error, RuntimeError | TypeError) and any(sign in str(error) for sign in _TOO_LARGE)
    if torch_says or isinstance(error, MemoryError | OverflowError):
        return "Memory ran out. Do less at once: fewer or smaller instances, a narrower beam, a smaller network."
    return ""


DEBUG = "GUMBELDORE_DEBUG"
"""In the environment, so that worker processes know, too: tracebacks are shown instead of one line (`--debug`)."""


def foreign_fault(error: BaseException) -> str:
    """Which function outside of this package raised an error that is not one of ours, in one line; nothing if there is none.

    A problem, policy or kit of one's own may fail in any way, and its author wants to know where.
    """
    if isinstance(error, GumbeldoreError) or os.environ.get(DEBUG):
        return ""
    import sysconfig
    import traceback

    ours = (os.path.dirname(__file__), *sysconfig.get_paths().values(), "<")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    begun = [frame for frame in frames if frame.name != "<module>"]
    if not begun:
        return ""
    frame, said = begun[-1], " ".join(str(error).split())
    where = f"{os.path.basename(frame.filename)}, line {frame.lineno}"
    return f"`{frame.name}` ({where}) raised {type(error).__name__}: {said or 'without a word'}. --debug shows the way there."
