"""`gumbeldore status`: where a run stands, from another terminal."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.live import Live

from gumbeldore.errors import require
from gumbeldore.runs.folders import read_run
from gumbeldore.runs.status import picture, summary


@dataclass(frozen=True)
class StatusSettings:
    """Show where runs stand: phase, rate, time left, memory and curves. They may be running, finished or interrupted."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]  # of runs, as given to --folder
    follow: bool = False  # look again every few seconds until Ctrl-C or until no run is running
    every: float = 5.0  # seconds
    json: bool = False  # one line of JSON per run, for scripts

    def __post_init__(self) -> None:
        require(len(self.folders) >= 1, "Name the folder of a run: gumbeldore status FOLDER.")
        require(self.every > 0, f"`every` must be above 0, got {self.every}.")


def command(arguments: list[str]) -> None:
    """gumbeldore status FOLDER..."""
    status(tyro.cli(StatusSettings, args=arguments, prog="gumbeldore status", description=StatusSettings.__doc__))


def status(settings: StatusSettings, console: Console | None = None) -> None:
    """Prints it once, or again and again."""
    console = console or Console()
    if settings.json:
        for folder in settings.folders:
            print(json.dumps(summary(read_run(folder), time.time())))
        return
    if not settings.follow:
        console.print(picture(settings.folders, console))
        return
    with Live(picture(settings.folders, console), console=console, auto_refresh=False, vertical_overflow="visible") as live:
        while any(read_run(folder).state == "running" for folder in settings.folders):
            time.sleep(settings.every)
            live.update(picture(settings.folders, console), refresh=True)
