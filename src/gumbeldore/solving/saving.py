"""The folder of results: `solutions.json`, pictures, solutions in the usual formats. Nothing better is ever replaced."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

from gumbeldore.errors import FormatError
from gumbeldore.files import check_writable, locked, write_atomically
from gumbeldore.kits.kit import Record
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.results import Result, drawable, number
from gumbeldore.solving.running import Failure, Solving

_SOLUTIONS = "solutions.json"
PICTURES = 20
"""So many pictures are drawn, unless told otherwise."""
_EXPORTED = 1000
"""So many solutions get files of their own."""
PAUSE = 1.0
"""Seconds between two writings of what was found so far, at least."""


@dataclass
class SolutionFolder:
    """Where results go, for one process at a time. A solution is replaced by a better one of the same instance only."""

    path: Path
    replaces: bool = False  # worse solutions, too
    earlier: dict[str, Record] = field(default_factory=dict)  # of runs before, by the digest of the instance
    written: float = 0.0

    @contextmanager
    def reserved(self) -> Iterator[SolutionFolder]:
        """For this process alone; what it holds is read."""
        check_writable(self.path, "--folder")
        with locked(self.path):
            self.earlier = {} if self.replaces else {key(record): record for record in read_records(self.path / _SOLUTIONS)}
            yield self

    def start(self, job: Job) -> Job:
        """The job, with the solution that is here to go on from."""
        earlier = self.earlier.get(job.digest)
        return job if earlier is None else replace(job, begin=tuple(earlier["actions"]))

    def kept(self, found: Result) -> str:
        """A note where the folder holds a better solution already, which stays."""
        earlier = self.earlier.get(found.job.digest)
        if earlier is None or not self._worse(found, earlier):
            return ""
        return f"{found.name}: {number(earlier['cost'])} of an earlier run is better and stays (--replace)."

    def _worse(self, found: Result, earlier: Record) -> bool:
        difference = found.cost - earlier["cost"]
        return difference < 0 if found.job.kit.maximises else difference > 0

    def records(self, results: Sequence[Result]) -> list[Record]:
        """Those of this run, or better ones of earlier runs, and then those of other instances."""
        new = [each.record() for each in results]
        mine = {record["instance"] for record in new}
        better = [
            self.earlier[each.job.digest] if self.kept(each) else record for each, record in zip(results, new, strict=True)
        ]
        return [*better, *(record for digest, record in self.earlier.items() if digest not in mine)]

    def save_meanwhile(self, solving: Solving) -> None:
        """What was found so far, if that has not been written a moment ago."""
        if monotonic() - self.written >= PAUSE:
            _write_json(self.path / _SOLUTIONS, self.records(solving.results()))
            self.written = monotonic()

    def save(self, results: Sequence[Result], pictures: int = PICTURES) -> list[str]:
        """Writes everything; returns lines that say what and where."""
        _write_json(self.path / _SOLUTIONS, self.records(results))
        better = [(each, name) for each, name in zip(results, stems(results), strict=True) if not self.kept(each)]
        lines = [f"Saved {self.path / _SOLUTIONS}{self._exported(better[:_EXPORTED])}."]
        if len(better) > _EXPORTED:
            lines.append(
                f"Only the first {_EXPORTED} of {len(better)} solutions have files of their own; {_SOLUTIONS} holds all."
            )
        lines += self._drawn([(each, name) for each, name in better if drawable(each.job)], pictures)
        return [*lines, *filter(None, map(self.kept, results))]

    def _drawn(self, pairs: Sequence[tuple[Result, str]], pictures: int) -> list[str]:
        for each, name in pairs[:pictures]:
            each.draw(self.path / f"{name}.png")
        if len(pairs) > pictures > 0:
            return [f"Drew the first {pictures} of {len(pairs)} instances: --pictures {len(pairs)} draws all."]
        names = ", ".join(str(self.path / f"{name}.png") for _, name in pairs[:3])
        return [f"Drew {names}{' ...' * (len(pairs) > 3)}."] if pairs and pictures else []

    def _exported(self, pairs: Sequence[tuple[Result, str]]) -> str:
        """Writes the solutions in the formats of their kits; says which."""
        written: dict[str, Path] = {}
        for each, name in pairs:
            for form, export in each.job.kit.exports.items():
                path, text = self.path / f"{name}{export.suffix}", each.text(form)
                write_atomically(path, lambda temporary, text=text: temporary.write_text(text))  # type: ignore[misc]
                written.setdefault(export.suffix, path)
        if not written:
            return ""
        names = ", ".join(str(path) for path in written.values())
        return f" and solutions as {', '.join(written)} ({names}{' ...' * (len(pairs) > 1)})"


def _write_json(path: Path, records: Sequence[Record]) -> None:
    write_atomically(path, lambda temporary: temporary.write_text(json.dumps(records, indent=1) + "\n"))


def read_records(path: Path) -> list[Record]:
    """The records of a file of solutions; none if there is no such file."""
    if not path.exists():
        return []
    try:
        records = json.loads(path.read_text())
        if not all(isinstance(each["actions"], list) and isinstance(each["cost"], int | float) for each in records):
            raise TypeError
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FormatError(f"{path} holds no solutions of ours. Choose another --folder, or --replace it.") from error
    return records


def key(record: Record) -> str:
    """The instance of a record; those of older versions have a name only."""
    return str(record.get("instance", f"{record.get('file')}[{record.get('row')}]"))


def stems(results: Sequence[Result]) -> list[str]:
    """A name for the files of each result: that of its own file, with its number in it if the file holds several; never twice the same."""
    rows = Counter(each.job.file for each in results)
    taken, names = Counter[str](), []
    for each in results:
        file = each.job.file
        stem = re.sub(r"[^\w.+-]", "_", file.stem if file else each.name or each.problem)
        if rows[file] > 1 or each.job.row:
            stem = f"{stem}-{each.job.row}"
        taken[stem.lower()] += 1
        names.append(stem if taken[stem.lower()] == 1 else f"{stem}_{taken[stem.lower()]}")
    return names


def as_json(results: Sequence[Result], failures: Sequence[Failure], stopped: bool) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "solutions": [each.record() for each in results],
        "failures": [
            {"file": None if failure.file is None else str(failure.file), "message": failure.message} for failure in failures
        ],
        "stopped_early": stopped,
    }
