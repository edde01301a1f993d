"""The first argument of most commands: the problem."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from gumbeldore.cli.catalogue import Entry, entry, names
from gumbeldore.errors import SettingsError


def take_entry(command: str, arguments: list[str]) -> tuple[Entry, list[str]]:
    """The problem that a command is called with, and the other arguments."""
    if arguments and not arguments[0].startswith("-"):
        return entry(arguments[0]), arguments[1:]
    known = ", ".join(names())
    if "--help" in arguments or "-h" in arguments:
        Console().print(
            escape(
                f"Usage: gumbeldore {command} PROBLEM [options]. Problems: {known}, or file.py:KIT, which executes that file.\n"
            )
            + f"`gumbeldore {command} PROBLEM --help` lists its options.",
            highlight=False,
        )
        raise SystemExit(0)
    raise SettingsError(f"Name a problem: gumbeldore {command} PROBLEM. Known: {known}.")
