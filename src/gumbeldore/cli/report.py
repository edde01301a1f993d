"""`gumbeldore report`: one page of HTML about runs and evaluations, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from gumbeldore.errors import require
from gumbeldore.runs.presets import entry
from gumbeldore.runs.report import write_report
from gumbeldore.training.settings import check_seed


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
        check_seed(self.seed)


def command(arguments: list[str]) -> None:
    """gumbeldore report FOLDER..."""
    settings = tyro.cli(ReportSettings, args=arguments, prog="gumbeldore report", description=ReportSettings.__doc__)
    console = Console()
    given = [entry(settings.problem)] if settings.problem else []
    with console.status("solving"):
        out = write_report(
            settings.folders,
            settings.out,
            solutions=settings.solutions,
            seed=settings.seed,
            entries={each.name: each for each in given},
            tell=partial(console.print, markup=False, highlight=False, soft_wrap=True),
        )
    console.print(f"Wrote {out}: open it in a browser.", highlight=False, soft_wrap=True, markup=False)
