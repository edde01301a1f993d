"""From what a user names to jobs: files and folders, each read on its own, so that a bad one does not stop the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gumbeldore.errors import GumbeldoreError, SettingsError
from gumbeldore.io.reading import instance_files, read_file
from gumbeldore.kits.kit import Kit
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.running import Failure

NAMED = 4
"""Files that a note names."""


def files_in(paths: Iterable[str | Path], kit: Kit | None = None) -> list[Path]:
    """The files, in place of a folder those of its files that look like instances, each once."""
    found: list[Path] = []
    for path in map(Path, paths):
        within = instance_files(path, kit)[0] if path.is_dir() else [path]
        if not within:
            raise SettingsError(f"There are no files of instances in the folder {path}.")
        found += within
    return list(dict.fromkeys(found))


def left_out(paths: Iterable[str | Path], kit: Kit | None = None) -> str:
    """A note about files of folders that look like no instances; empty if there are none."""
    others = [other.name for path in map(Path, paths) if path.is_dir() for other in instance_files(path, kit)[1]]
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return f"Left out, because they look like no instances: {', '.join(others[:NAMED])}{more}." if others else ""


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
