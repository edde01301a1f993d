"""The command line: which command is called, and what becomes of its errors."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from gumbeldore.errors import GumbeldoreError, SettingsError

OVERVIEW = """[bold]gumbeldore[/bold]: neural solvers for combinatorial problems, trained without expert solutions.

  [bold]gumbeldore demo[/bold]                        train a TSP-20 policy from scratch (3 minutes) and compare samplers
  [bold]gumbeldore train[/bold] PROBLEM \\[options]     train by self-improvement; a run lives in a folder and can be resumed
  [bold]gumbeldore solve[/bold] FILE... \\[options]     solve your files: .tsp, .vrp, job shops, points; or random instances of a PROBLEM
  [bold]gumbeldore evaluate[/bold] PROBLEM \\[options]  compare policies, samplers and baselines on test sets, with intervals
  [bold]gumbeldore generate[/bold] PROBLEM \\[options]  write random instances, or a standard test set, into a file
  [bold]gumbeldore label[/bold] PROBLEM \\[options]     solve instances with PyVRP, HGS or CP-SAT; can be interrupted and goes on
  [bold]gumbeldore imitate[/bold] PROBLEM \\[options]   train on such labels instead of by self-improvement
  [bold]gumbeldore status[/bold] FOLDER...            where runs stand: phase, rate, time left, memory, curves
  [bold]gumbeldore report[/bold] FOLDER...            one page of HTML about runs and evaluations, side by side
  [bold]gumbeldore import[/bold] FILE --out FILE      convert a checkpoint or data of the method's public code
  [bold]gumbeldore policies[/bold]                    the trained policies that ship, and what they reach
  [bold]gumbeldore info[/bold] FILE                   what a policy says about itself: problem, network, training, results
  [bold]gumbeldore reproduce[/bold] \\[WHAT]          the paper's tables and figures again, at three scales
  [bold]gumbeldore check[/bold] PROBLEM               test that a problem, one of your own say, keeps the contract

Start with:
  gumbeldore train tsp --folder runs/first        [dim]# the small preset: minutes on a laptop[/dim]
  gumbeldore train tsp --folder runs/first --resume   [dim]# go on after Ctrl-C or a crash[/dim]
  gumbeldore solve tsp --policy runs/first/policy.safetensors --cities 20
  gumbeldore solve berlin52.tsp ft10.txt --time-limit 20   [dim]# files of any size and problem, or a folder[/dim]
  gumbeldore label tsp --cities 20 --count 1000 --seconds 0.2 --out labels.npz
  gumbeldore imitate tsp --labels labels.npz --folder runs/imitation

`gumbeldore COMMAND --help` (and `gumbeldore train PROBLEM --help`) list all options with their defaults.
Problems: {problems},
or one of your own as file.py:KIT or package.module:KIT (naming a file executes it).
"""


COMMANDS = (
    "demo",
    "train",
    "imitate",
    "solve",
    "evaluate",
    "generate",
    "label",
    "check",
    "status",
    "report",
    "import",
    "policies",
    "info",
    "reproduce",
)
"""Each is a file of this room with a function `command(arguments)`, imported when it is called."""

FILES = {"import": "importing"}  # where the command's name cannot be that of a module


STOPPED = 130
"""The exit code of a command that Ctrl-C or SIGTERM ended early."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code. Errors that users can mend are one line, not a traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    console = Console(stderr=True)
    try:
        with _terminable():
            code = _call(arguments)
            sys.stdout.flush()
    except GumbeldoreError as error:
        return _refused(console, str(error))
    except BrokenPipeError:  # `gumbeldore --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush is quiet
        return 0
    except OSError as error:
        if error.errno is None:
            raise
        return _refused(console, f"{error.filename or 'A file'}: {(error.strerror or '').lower()}.")
    except (MemoryError, OverflowError, RuntimeError, TypeError) as error:
        if not isinstance(error, MemoryError | OverflowError) and not any(sign in str(error) for sign in TOO_LARGE):
            raise
        return _refused(
            console, "Memory ran out. Do less at once: fewer or smaller instances, a narrower beam, a smaller network."
        )
    except KeyboardInterrupt:
        console.print("Stopped.")
        return STOPPED
    return code


TOO_LARGE = ("can't allocate memory", "out of memory", "Storage size calculation overflowed", "Overflow when unpacking long")
"""How torch says that something does not fit into memory, or not even into a number; it has no class of errors for it."""


def _call(arguments: list[str]) -> int:
    """Does what is asked for; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        Console().print(_overview(), highlight=False)
    elif arguments[0] == "--version":
        from importlib.metadata import version

        print(version("gumbeldore"))
    elif arguments[0] in COMMANDS:
        module = importlib.import_module(f"gumbeldore.cli.{FILES.get(arguments[0], arguments[0])}")
        return module.command(arguments[1:]) or 0
    else:
        raise SettingsError(f"Unknown command `{arguments[0]}`. Known: {', '.join(COMMANDS)}. See `gumbeldore --help`.")
    return 0


def _refused(console: Console, reason: str) -> int:
    console.print(f"[red]Error:[/red] {escape(reason)}", highlight=False, markup=True, soft_wrap=True)
    return 2


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does. Only a program's main thread may ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _overview() -> str:
    from gumbeldore.runs.presets import names

    return OVERVIEW.format(problems=", ".join(names()))
