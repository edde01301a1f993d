"""One page of HTML about runs and evaluations, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from gumbeldore.errors import GumbeldoreError, require
from gumbeldore.files import write_atomically
from gumbeldore.io.policy_files import POLICY
from gumbeldore.runs.comparison import sections
from gumbeldore.runs.folders import Found, read_folders
from gumbeldore.runs.page import Page, Picture, render
from gumbeldore.runs.presets import Entry, entry_of_file
from gumbeldore.runs.report_pictures import solved_pictures

_TITLE = "Gumbeldore: "
"""How the title of a report begins: only files with such a title are replaced."""


def write_report(
    folders: Sequence[Path],
    out: Path,
    *,
    solutions: int = 3,
    seed: int = 0,
    entries: Mapping[str, Entry] | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> Path:
    """Writes the page about the folders of `train`, `imitate`, `evaluate` or `solve`; returns where it is.

    `entries` are problems that no installed kit is named after. `tell` hears of what cannot be drawn.
    """
    require(len(folders) >= 1, "Name the folders of runs or evaluations: gumbeldore report FOLDER...")
    require(out.suffix == ".html", f"`out` must end in .html, got {out.name}.")
    require(solutions >= 0, f"`solutions` must be at least 0, got {solutions}.")
    _check_replaceable(out)
    found = read_folders(folders)
    known = _entries(found, entries or {})
    drawn = {each.name: _drawn(each, known, solutions, seed, tell) for each in found}
    measures = {name: entry.measure for name, entry in known.items()}
    subtitle = f"gumbeldore {version('gumbeldore')}, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    page = Page(_title(found), subtitle, sections(found, measures, drawn))
    write_atomically(out, lambda path: path.write_text(render(page), encoding="utf-8"))
    return out


def _check_replaceable(out: Path) -> None:
    """Raises where the page would replace a file that is no report."""
    if not out.exists():
        return
    with open(out, errors="replace") as handle:
        ours = f"<title>{_TITLE}" in handle.read(1000)
    require(ours, f"{out} is there and is no report, so it is not replaced. Choose another --out.")


def _title(found: Sequence[Found]) -> str:
    shown = ", ".join(each.name for each in found[:4])
    return f"{_TITLE}{shown}" + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _entries(found: Sequence[Found], given: Mapping[str, Entry]) -> dict[str, Entry]:
    """The problems of the runs, as far as they are known. A file's word executes nothing; what the user named may."""
    names = {each.run.problem for each in found if each.run}
    known = {name: given[name] if name in given else entry_of_file(name) for name in names}
    return {name: entry for name, entry in known.items() if entry is not None}


def _drawn(found: Found, entries: Mapping[str, Entry], count: int, seed: int, tell: Callable[[str], object]) -> list[Picture]:
    """Pictures of what a run's policy finds; where that cannot be, a line says why."""
    run = found.run
    if run is None or count == 0 or not (run.folder / POLICY).is_file():
        return []
    try:
        known = entries.get(run.problem)
        require(known is not None, f"its problem `{run.problem}` is not installed. Name it: --problem file.py:KIT.")
        assert known is not None
        return solved_pictures(run, known, count, seed)
    except GumbeldoreError as error:
        tell(f"No pictures of {found.name}: {error}")
        return []
