"""The command line: one file per command. The only room that knows all problems."""

from gumbeldore.cli.dispatch import main

__all__ = ["main"]
