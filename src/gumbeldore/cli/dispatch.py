"""The command line: which command is called, and what becomes of its errors.

Nothing heavy is imported before a command is known: `gumbeldore --version` and `--help` answer at once.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gumbeldore.cli.signals import STOPS
from gumbeldore.cli.usage import COMMANDS as WITH_PROBLEM
from gumbeldore.cli.usage import usage
from gumbeldore.errors import DEBUG, GumbeldoreError, SettingsError, foreign_fault
from gumbeldore.start import STOPPED

__all__ = ["STOPPED", "main"]

OVERVIEW = """gumbeldore: neural solvers for combinatorial problems, trained without experts

  solve FILE...       solve your files: .tsp, .vrp, job shops, points, arrays
  solve PROBLEM       ... or random instances of a problem
  train PROBLEM       train by self-improvement; a run lives in a folder
  imitate PROBLEM     train on the solutions of a solver instead
  evaluate PROBLEM    compare policies, samplers and baselines, with intervals
  status FOLDER...    where runs stand: phase, rate, time left, memory, curves
  report FOLDER...    one page of HTML about runs and evaluations
  new NAME            write a problem of your own: a kit that works, to change
  check PROBLEM       test that a problem keeps the contract
  generate PROBLEM    write random instances, or a standard test set
  label PROBLEM       solve instances with PyVRP, HGS, CP-SAT or local search
  policies            the trained policies that ship, and what they reach
  info FILE           what a policy says about itself
  import FILE         convert a checkpoint or data of the method's public code
  reproduce [WHAT]    the paper's tables and figures again, at three scales
  demo                train on TSP-20 from scratch and compare samplers

Start with:
  gumbeldore solve berlin52.tsp ft10.txt --time-limit 20
  gumbeldore train tsp --folder runs/first
  gumbeldore train tsp --folder runs/first --resume
  gumbeldore solve tsp --policy runs/first/policy.safetensors --cities 20

`gumbeldore COMMAND --help` and `gumbeldore COMMAND PROBLEM --help` list options;
`--debug` shows the traceback where a kit of your own raises an error.
`gumbeldore train --help` lists the problems; one of your own is file.py:KIT or
package.module:KIT (naming a file executes it).
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
    "new",
    "status",
    "report",
    "import",
    "policies",
    "info",
    "reproduce",
)
"""Each is a file of this room with a function `command(arguments)`, imported when it is called."""

FILES = {"import": "importing"}  # where the command's name cannot be that of a module


NARROW = 40
"""Columns below which tables and help cannot be laid out; a window may be narrower, and wraps lines then."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code. Errors that users can mend are one line, not a traceback.

    Without `arguments` this process is the program `gumbeldore`, and does nothing else.
    """
    program = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    with STOPS.handled(program=program):
        if program:
            _prepare()
        return _answered(arguments)


def _prepare() -> None:
    """Makes do with what a process may be given: no output, no width, another program's settings of matplotlib."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell: >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for the life of the process
    os.environ["MPLBACKEND"] = "agg"  # pictures go into files, whatever a notebook has left there
    columns = os.environ.get("COLUMNS", "")
    with suppress(OSError, ValueError):
        wide = int(columns) if columns else os.get_terminal_size(sys.stdout.fileno()).columns or NARROW
        if wide < NARROW:
            os.environ["COLUMNS"] = str(NARROW)


def _answered(arguments: list[str]) -> int:
    """What a command returns, or the exit code for what it raised."""
    try:
        code = _call(arguments)
        sys.stdout.flush()
    except GumbeldoreError as error:
        return _refused(str(error))
    except BrokenPipeError:  # `gumbeldore --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush is quiet
        return 0
    except OSError as error:
        if error.errno is None:
            raise
        return _refused(f"{error.filename or 'A file'}: {(error.strerror or '').lower()}.")
    except (MemoryError, OverflowError, RuntimeError, TypeError) as error:
        if not isinstance(error, MemoryError | OverflowError) and not any(sign in str(error) for sign in TOO_LARGE):
            if fault := foreign_fault(error):
                return _refused(fault)
            raise
        return _refused("Memory ran out. Do less at once: fewer or smaller instances, a narrower beam, a smaller network.")
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return STOPS.code
    except Exception as error:
        if fault := foreign_fault(error):
            return _refused(fault)
        raise
    return STOPS.code if code == STOPPED else code


TOO_LARGE = ("can't allocate memory", "out of memory", "Storage size calculation overflowed", "Overflow when unpacking long")
"""How torch says that something does not fit into memory, or not even into a number; it has no class of errors for it."""


def _call(arguments: list[str]) -> int:
    """Does what is asked for; returns the exit code."""
    if "--debug" in arguments:
        arguments.remove("--debug")
        os.environ[DEBUG] = "1"
    if any("\0" in argument for argument in arguments):
        raise SettingsError(f"No argument may hold a null character, got {next(a for a in arguments if chr(0) in a)!r}.")
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(OVERVIEW, end="")
    elif arguments[0] == "--version":
        from importlib.metadata import version

        print(version("gumbeldore"))
    elif arguments[1:] in (["--help"], ["-h"]) and arguments[0] in WITH_PROBLEM:
        print(usage(arguments[0]))
    elif arguments[0] in COMMANDS:
        return _command(arguments[0])(arguments[1:]) or 0
    else:
        raise SettingsError(f"Unknown command `{arguments[0]}`. Known: {', '.join(COMMANDS)}. See `gumbeldore --help`.")
    return 0


def _command(name: str) -> Any:
    """The function of a command. From here on a signal raises, so that what was done is kept."""
    gc.disable()  # what modules make stays
    module = importlib.import_module(f"gumbeldore.cli.{FILES.get(name, name)}")
    gc.freeze()
    gc.enable()
    STOPS.set(STOPS.raised)
    return module.command


def _refused(reason: str) -> int:
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True).print(f"[red]Error:[/red] {escape(reason)}", highlight=False, markup=True, soft_wrap=True)
    return 2
