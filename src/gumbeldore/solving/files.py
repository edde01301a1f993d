"""From what a user names to jobs: files and folders, each read on its own, so that a bad one does not stop the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gumbeldore.errors import GumbeldoreError, SettingsError
from gumbeldore.problems.finding import all_kits
from gumbeldore.problems.kit import Kit
from gumbeldore.problems.reading import read_file, reads
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.running import Failure


def files_in(paths: Iterable[str | Path], kit: Kit | None = None) -> list[Path]:
    """The files, in place of a folder those of its files that look like instances, each once."""
    found: list[Path] = []
    for path in map(Path, paths):
        within = [each for each in sorted(path.iterdir()) if _is_an_instance(each, kit)] if path.is_dir() else [path]
        if not within:
            raise SettingsError(f"There are no files of instances in the folder {path}.")
        found += within
    return list(dict.fromkeys(found))


def _is_an_instance(path: Path, kit: Kit | None) -> bool:
    """Rather than something else that lies in a folder, such as a solution."""
    kits = [kit] if kit is not None else all_kits()
    solutions = tuple(export.suffix for each in kits for export in each.exports.values())
    return path.is_file() and not path.name.startswith(".") and not path.name.endswith(solutions) and reads(path, kit)


def read_jobs(files: Sequence[Path], kit: Kit | None = None) -> tuple[list[Job], list[Failure]]:
    """The instances of all files, and what is wrong with the other files."""
    jobs: list[Job] = []
    failures = []
    for file in files:
        try:
            owner, given = read_file(file, kit)
            jobs += [Job(owner, each, file, row) for row, each in enumerate(given)]
        except GumbeldoreError as error:
            failures.append(Failure(file, str(error)))
    return jobs, failures
