"""Results as files: `solutions.json`, a picture of each, and solutions in the formats that are usual for the problem."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gumbeldore.files import write_atomically
from gumbeldore.kits.kit import Record
from gumbeldore.solving.results import Result

PICTURES = 20
"""So many pictures are drawn, unless told otherwise."""
EXPORTED = 1000
"""So many solutions get files of their own."""


def save(results: Sequence[Result], folder: Path, records: Sequence[Record], pictures: int = PICTURES) -> list[str]:
    """Writes everything; returns lines that say what and where."""
    save_json(folder / "solutions.json", records)
    names = stems(results)
    lines = [f"Saved {folder / 'solutions.json'}{_exported(results[:EXPORTED], names, folder)}."]
    if len(results) > EXPORTED:
        lines.append(
            f"Only the first {EXPORTED} of {len(results)} solutions have files of their own; solutions.json holds all."
        )
    drawable = [
        (result, name) for result, name in zip(results, names, strict=True) if result.job.kit.solution_format.draw is not None
    ]
    for result, name in drawable[:pictures]:
        result.draw(folder / f"{name}.png")
    if len(drawable) > pictures > 0:
        lines.append(f"Drew the first {pictures} of {len(drawable)} instances: --pictures {len(drawable)} draws all.")
    elif drawable and pictures:
        lines.append(
            f"Drew {', '.join(str(folder / f'{name}.png') for _, name in drawable[:3])}{' ...' * (len(drawable) > 3)}."
        )
    return lines


def save_json(path: Path, records: Sequence[Record]) -> None:
    write_atomically(path, lambda temporary: temporary.write_text(json.dumps(records, indent=1) + "\n"))


def stems(results: Sequence[Result]) -> list[str]:
    """A name for the files of each result: that of its own file, with its number in it if the file holds several; never twice the same."""
    rows = Counter(result.job.file for result in results)
    taken, names = Counter[str](), []
    for result in results:
        file = result.job.file
        stem = re.sub(r"[^\w.+-]", "_", file.stem if file else result.name or "instance")
        if rows[file] > 1 or result.job.row:
            stem = f"{stem}-{result.job.row}"
        taken[stem.lower()] += 1
        names.append(stem if taken[stem.lower()] == 1 else f"{stem}_{taken[stem.lower()]}")
    return names


def _exported(results: Sequence[Result], names: Sequence[str], folder: Path) -> str:
    """Writes the solutions in the formats of their kits; says which."""
    written: dict[str, Path] = {}
    for result, name in zip(results, names, strict=False):
        for form, export in result.job.kit.exports.items():
            path, text = folder / f"{name}{export.suffix}", result.text(form)
            write_atomically(path, lambda temporary, text=text: temporary.write_text(text))  # type: ignore[misc]
            written.setdefault(export.suffix, path)
    if not written:
        return ""
    return f" and solutions as {', '.join(written)} ({', '.join(str(path) for path in written.values())}{' ...' * (len(results) > 1)})"
