"""Help on a command before its problem is known. It imports nothing heavy."""

from __future__ import annotations

from gumbeldore.kits.names import problem_names

SOLVE = """Usage: gumbeldore solve FILE... | FOLDER [options]     # TSPLIB, CVRPLIB, job shops, points, .npz: guessed
       gumbeldore solve PROBLEM [FILE...] [options]  # random instances, or files of it

`gumbeldore solve FILE --help` and `gumbeldore solve PROBLEM --help` list the options.
Problems: {problems},
or file.py:KIT, which executes that file."""

OTHERS = """Usage: gumbeldore {command} PROBLEM [options]

`gumbeldore {command} PROBLEM --help` lists its options.
Problems: {problems},
or file.py:KIT, which executes that file."""

COMMANDS = ("train", "imitate", "solve", "evaluate", "generate", "label", "check")
"""Whose options depend on the problem."""


def usage(command: str) -> str:
    """How a command is called."""
    return (SOLVE if command == "solve" else OTHERS).format(command=command, problems=", ".join(problem_names()))
