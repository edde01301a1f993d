"""The command line: which command is called, and what becomes of its errors."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from gumbeldore.errors import GumbeldoreError, SettingsError

OVERVIEW = """[bold]gumbeldore[/bold]: neural solvers for combinatorial problems, trained without expert solutions.

  [bold]gumbeldore demo[/bold]                        train a TSP-20 policy from scratch (3 minutes) and compare samplers
  [bold]gumbeldore train[/bold] PROBLEM \\[options]     train by self-improvement; a run lives in a folder and can be resumed
  [bold]gumbeldore solve[/bold] PROBLEM \\[options]     solve instances of files, or random ones, with a trained policy
  [bold]gumbeldore generate[/bold] PROBLEM \\[options]  write random instances, or a standard test set, into a file
  [bold]gumbeldore label[/bold] PROBLEM \\[options]     solve instances with PyVRP, HGS or CP-SAT; can be interrupted and goes on
  [bold]gumbeldore imitate[/bold] PROBLEM \\[options]   train on such labels instead of by self-improvement
  [bold]gumbeldore status[/bold] FOLDER...            where runs stand: phase, rate, time left, memory, curves
  [bold]gumbeldore report[/bold] FOLDER...            one page of HTML about runs and evaluations, side by side
  [bold]gumbeldore import[/bold] FILE --out FILE      convert a checkpoint or data of the method's public code
  [bold]gumbeldore check[/bold] PROBLEM               test that a problem, one of your own say, keeps the contract

Start with:
  gumbeldore train tsp --folder runs/first        [dim]# the small preset: minutes on a laptop[/dim]
  gumbeldore train tsp --folder runs/first --resume   [dim]# go on after Ctrl-C or a crash[/dim]
  gumbeldore solve tsp --policy runs/first/policy.safetensors --cities 20
  gumbeldore solve tsp --policy runs/first/policy.safetensors --instance cities.csv
  gumbeldore solve jssp --policy runs/shops/policy.safetensors --instances labels-6x6.npz labels-10x10.npz   [dim]# any sizes[/dim]
  gumbeldore label tsp --cities 20 --count 1000 --seconds 0.2 --out labels.npz
  gumbeldore imitate tsp --labels labels.npz --folder runs/imitation

`gumbeldore COMMAND --help` (and `gumbeldore train PROBLEM --help`) list all options with their defaults.
Problems: {problems},
or one of your own as file.py:KIT or package.module:KIT (naming a file executes it).
"""


COMMANDS = ("demo", "train", "imitate", "solve", "generate", "label", "check", "status", "report", "import")
"""Each is a file of this room with a function `command(arguments)`, imported when it is called."""

FILES = {"import": "importing"}  # where the command's name cannot be that of a module


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code. Errors that users can mend are one line, not a traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    console = Console(stderr=True)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        Console().print(_overview(), highlight=False)
        return 0
    if arguments[0] == "--version":
        from importlib.metadata import version

        print(version("gumbeldore"))
        return 0
    try:
        if arguments[0] not in COMMANDS:
            raise SettingsError(f"Unknown command `{arguments[0]}`. Known: {', '.join(COMMANDS)}. See `gumbeldore --help`.")
        importlib.import_module(f"gumbeldore.cli.{FILES.get(arguments[0], arguments[0])}").command(arguments[1:])
    except GumbeldoreError as error:
        console.print(f"[red]Error:[/red] {escape(str(error))}", highlight=False, markup=True, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    return 0


def _overview() -> str:
    from gumbeldore.cli.catalogue import names

    return OVERVIEW.format(problems=", ".join(names()))
