"""The first argument of most commands: the problem."""

from __future__ import annotations

from gumbeldore.cli.usage import usage
from gumbeldore.errors import SettingsError
from gumbeldore.kits.names import problem_names
from gumbeldore.runs.presets import Entry, entry
from gumbeldore.runs.records import read_settings


def take_entry(command: str, arguments: list[str]) -> tuple[Entry, list[str]]:
    """The problem that a command is called with, and the other arguments."""
    if arguments and not arguments[0].startswith("-"):
        return entry(arguments[0]), arguments[1:]
    if name := _name_in_settings(arguments):
        return entry(name), arguments
    if "--help" in arguments or "-h" in arguments:
        print(usage(command))
        raise SystemExit(0)
    raise SettingsError(f"Name a problem: gumbeldore {command} PROBLEM. Known: {', '.join(problem_names())}.")


def _name_in_settings(arguments: list[str]) -> str | None:
    """The problem of the run whose settings.json is given. Only a name: files are executed by those who name them."""
    if "--settings" not in arguments[:-1]:
        return None
    name = read_settings(arguments[arguments.index("--settings") + 1]).get("problem_name")
    return name if isinstance(name, str) and ":" not in name else None
