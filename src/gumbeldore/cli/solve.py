"""gumbeldore solve: the instances of files, or random ones of a problem."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from gumbeldore.cli import solve_files, solve_problem
from gumbeldore.errors import SettingsError
from gumbeldore.runs.presets import names

USAGE = """Usage: gumbeldore solve FILE... | FOLDER \\[options]     [dim]# TSPLIB, CVRPLIB, job shops, points, .npz: the problem is guessed[/dim]
       gumbeldore solve PROBLEM \\[options]            [dim]# random instances[/dim]

`gumbeldore solve FILE --help` and `gumbeldore solve PROBLEM --help` list the options.
Problems: {problems}, or file.py:KIT, which executes that file."""


def command(arguments: list[str]) -> int:
    """gumbeldore solve FILE... or gumbeldore solve PROBLEM"""
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help"):
        Console().print(USAGE.format(problems=", ".join(names())), highlight=False)
        return 0
    return (solve_problem if is_a_problem(first) else solve_files).command(arguments)


def is_a_problem(argument: str) -> bool:
    """Rather than a file. A name that could be either is a problem: `./tsp` is a folder."""
    if not argument:
        raise SettingsError(f"Name files or a problem: gumbeldore solve FILE... or PROBLEM. Problems: {', '.join(names())}.")
    path = Path(argument)
    if argument in names() or (":" in argument and not path.exists()):
        return True
    if argument.startswith("-") or path.exists() or path.suffix or path.name != argument:
        return False
    raise SettingsError(f"`{argument}` is neither a file nor a problem. Problems: {', '.join(names())}.")
