"""Where long work is shown: it goes on when nobody reads any more."""

from __future__ import annotations

import os
import sys

from rich.console import Console


class LastingConsole(Console):
    """A console whose reader may leave (`gumbeldore train ... | head`): what is printed after that goes nowhere."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print("Nobody reads the output any more; the work goes on. `gumbeldore status` shows it.", file=sys.stderr)


def lasting_console() -> Console:
    return LastingConsole()
