"""From what a user names to jobs: files and folders, each read on its own, so that a bad one does not stop the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gumbeldore.errors import GumbeldoreError, SettingsError
from gumbeldore.problems.kit import Kit
from gumbeldore.problems.reading import read_file, reads
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.running import Failure


def files_in(paths: Iterable[str | Path], kit: Kit | None = None) -> list[Path]:
    """The files, in place of a folder those of its files that look like instances, each once."""
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            found.append(path)
            continue
        within = [
            each for each in sorted(path.iterdir()) if each.is_file() and not each.name.startswith(".") and reads(each, kit)
        ]
        if not within:
            raise SettingsError(f"There are no files of instances in the folder {path}.")
        found += within
    return list(dict.fromkeys(found))


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
