"""`gumbeldore report`: one page of HTML about runs and evaluations, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import track

from gumbeldore.cli.report_pictures import solved_pictures
from gumbeldore.errors import GumbeldoreError, require
from gumbeldore.files import write_atomically
from gumbeldore.io.policy_files import POLICY
from gumbeldore.runs.comparison import sections
from gumbeldore.runs.folders import Found, read_folders
from gumbeldore.runs.page import Page, Picture, render
from gumbeldore.runs.presets import Entry, entry, entry_of_file


@dataclass(frozen=True)
class ReportSettings:
    """Write one page of HTML about runs, evaluations and solved instances, side by side. It needs no network to be read."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]  # of `train`, `imitate`, `evaluate` or `solve`
    out: Path = Path("report.html")  # the file to write; an older report is replaced
    solutions: int = 3  # validation instances that every run's policy solves for pictures
    problem: str | None = None  # file.py:KIT, for pictures of runs of a problem of your own (executes that file)
    seed: int = 0  # of the sampling for pictures

    def __post_init__(self) -> None:
        require(len(self.folders) >= 1, "Name the folders of runs or evaluations: gumbeldore report FOLDER...")
        require(self.out.suffix == ".html", f"`out` must end in .html, got {self.out.name}.")
        require(self.solutions >= 0, f"`solutions` must be at least 0, got {self.solutions}.")


def command(arguments: list[str]) -> None:
    """gumbeldore report FOLDER..."""
    report(tyro.cli(ReportSettings, args=arguments, prog="gumbeldore report", description=ReportSettings.__doc__))


def report(settings: ReportSettings, console: Console | None = None) -> None:
    """Writes the page."""
    console = console or Console()
    found = read_folders(settings.folders)
    entries = _entries(found, settings)
    drawn = {
        each.name: _drawn(each, entries, settings, console) for each in track(found, "solving", console=console, transient=True)
    }
    costs = {name: known.cost for name, known in entries.items()}
    subtitle = f"gumbeldore {version('gumbeldore')}, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    page = Page(_title(found), subtitle, sections(found, costs, drawn))
    write_atomically(settings.out, lambda path: path.write_text(render(page), encoding="utf-8"))
    console.print(f"Wrote {settings.out}: open it in a browser.", highlight=False, soft_wrap=True, markup=False)


def _title(found: list[Found]) -> str:
    shown = ", ".join(each.name for each in found[:4])
    return f"Gumbeldore: {shown}" + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _entries(found: list[Found], settings: ReportSettings) -> dict[str, Entry]:
    """The problems of the runs, as far as they are known. A file's word executes nothing; what the user named may."""
    given = entry(settings.problem) if settings.problem else None
    names = {each.run.problem for each in found if each.run}
    known = {name: given if given and given.name == name else entry_of_file(name) for name in names}
    return {name: problem for name, problem in known.items() if problem is not None}


def _drawn(found: Found, entries: dict[str, Entry], settings: ReportSettings, console: Console) -> list[Picture]:
    """Pictures of what a run's policy finds; where that cannot be, a line says why."""
    run = found.run
    if run is None or settings.solutions == 0 or not (run.folder / POLICY).is_file():
        return []
    try:
        known = entries.get(run.problem)
        require(known is not None, f"its problem `{run.problem}` is not installed. Name it: --problem file.py:KIT.")
        assert known is not None
        return solved_pictures(run, known, settings.solutions, settings.seed)
    except GumbeldoreError as error:
        console.print(f"No pictures of {found.name}: {error}", markup=False, highlight=False, soft_wrap=True)
        return []
