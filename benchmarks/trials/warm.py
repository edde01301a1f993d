"""The program in copies of this process, which has imported everything already: a trial takes a tenth of the time that a start takes."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gumbeldore.cli.usage import COMMANDS


def imported() -> None:
    """All that commands import. Nothing is computed here: threads do not survive in copies."""
    for name in COMMANDS:
        importlib.import_module(f"gumbeldore.cli.{'importing' if name == 'import' else name}")


def copied(arguments: Sequence[str], limit: float) -> tuple[int | None, str, str, float]:
    """Exit code, or None if there was none in time, output, errors and seconds of the program in a copy of this process."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        out, err = Path(name) / "out", Path(name) / "err"
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _program(arguments, out, err)
        code = _waited(child, began + limit)
        return code, out.read_text(errors="replace"), err.read_text(errors="replace"), time.monotonic() - began


def _program(arguments: Sequence[str], out: Path, err: Path) -> None:
    """Never returns."""
    from gumbeldore.start import main

    os.setsid()
    for path, number in ((os.devnull, 0), (out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - for the life of the process
    sys.argv = ["gumbeldore", *arguments]
    code: int | str | None = 70
    try:
        code = main()
    except SystemExit as end:
        code = end.code if end.code is None or isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(int(code or 0))


def _waited(child: int, until: float) -> int | None:
    """The exit code, negative for a signal; after the time is over the copy and its processes are killed."""
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
