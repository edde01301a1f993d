"""The command line: which command is called.

Nothing heavy is imported before a command is known: `gumbeldore --version` and `--help` answer at once.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from gumbeldore.cli.signals import STOPS
from gumbeldore.cli.usage import COMMANDS, OVERVIEW, WITH_PROBLEM, usage
from gumbeldore.errors import DEBUG, SettingsError

_FILES = {"import": "importing"}
"""Where the command's name cannot be that of a module."""

_NARROW = 40
"""Columns below which tables and help cannot be laid out; a window may be narrower, and wraps lines then."""


def prepared() -> list[str]:
    """The arguments of this process, which makes do with what it may be given: no output, no width, a notebook's matplotlib."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell: >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for the life of the process
    os.environ["MPLBACKEND"] = "agg"  # pictures go into files, whatever a notebook has left there
    columns = os.environ.get("COLUMNS", "")
    with suppress(OSError, ValueError):
        wide = int(columns) if columns else os.get_terminal_size(sys.stdout.fileno()).columns or _NARROW
        if wide < _NARROW:
            os.environ["COLUMNS"] = str(_NARROW)
    return sys.argv[1:]


def chosen(arguments: list[str]) -> Callable[[], int | None]:
    """What is asked for: a command with its arguments, or help."""
    if "--debug" in arguments:
        arguments.remove("--debug")
        os.environ[DEBUG] = "1"
    if any("\0" in argument for argument in arguments):
        raise SettingsError(f"No argument may hold a null character, got {next(a for a in arguments if chr(0) in a)!r}.")
    first, rest = (arguments or ["help"])[0], arguments[1:]
    if first in ("-h", "--help", "help"):
        return partial(print, OVERVIEW, end="")
    if first == "--version":
        from importlib.metadata import version

        return partial(print, version("gumbeldore"))
    if rest in (["--help"], ["-h"]) and first in WITH_PROBLEM:
        return partial(print, usage(first))
    if first not in COMMANDS:
        raise SettingsError(f"Unknown command `{first}`. Known: {', '.join(COMMANDS)}. See `gumbeldore --help`.")
    return partial(_command(first), rest)


def _command(name: str) -> Callable[[list[str]], int | None]:
    """The function of a command. From here on a signal raises, so that what was done is kept."""
    gc.disable()  # what modules make stays
    module = importlib.import_module(f"gumbeldore.cli.{_FILES.get(name, name)}")
    gc.freeze()
    gc.enable()
    STOPS.set(STOPS.raised)
    return module.command  # type: ignore[no-any-return]
