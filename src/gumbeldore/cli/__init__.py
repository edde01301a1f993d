"""The command line: one file per command. The only room that knows all problems."""

from gumbeldore.start import main

__all__ = ["main"]
