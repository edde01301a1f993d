"""`gumbeldore demo`: the demonstration behind `make run`."""

from __future__ import annotations

import tyro

from gumbeldore.cli.console import lasting_console
from gumbeldore.runs.demonstration import DemoSettings, demo


def command(arguments: list[str]) -> None:
    """gumbeldore demo"""
    demo(tyro.cli(DemoSettings, args=arguments, prog="gumbeldore demo", description=DemoSettings.__doc__), lasting_console())
