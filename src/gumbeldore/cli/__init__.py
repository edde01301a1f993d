"""The command line: one file per command, which parses, calls and shows."""

from gumbeldore.start import main

__all__ = ["main"]
