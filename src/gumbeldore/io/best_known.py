"""Best known costs of public instances. They ship as tables, `best_known.csv` in a problem's folder, with source and date.

A name is no proof: copies are scaled, cut or named after others. So a table has a fingerprint of what each published instance consists of
(`benchmarks/fingerprints.py` makes them), and a value belongs to an instance with the same one, whatever it is called.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Known(NamedTuple):
    """The best known cost, if there is one, who says so, what a user should know about it, and the name of the published instance."""

    cost: float | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    name: str = ""


def published(problem: str, content: str, size: Mapping[str, object], *names: str) -> Known:
    """What the problem's table says about an instance with this fingerprint, or, where it has none, with one of these names and this size."""
    rows = _table(problem)
    named = [rows[name.lower()] for name in names if name.lower() in rows]
    for row in (*named, *rows.values()):  # two rows may have the same data: M-n200-k16 and M-n200-k17
        if row.get("fingerprint") == content:
            return Known(float(row["best"]), f"table of best known values ({row['source']}, {row['name']})", (), row["name"])
    for row in named:
        if row.get("fingerprint") or any(row[key] != str(value) for key, value in size.items()):
            note = f"The data differ from those of the published {row['name']}, so its best known value does not apply."
            return Known(notes=(note,))
        note = f"Whether this is the published {row['name']} is unknown: only the name and the size were compared."
        return Known(float(row["best"]), f"table of best known values ({row['source']}), by name", (note,), row["name"])
    return Known()


def fingerprint(kind: str, *numbers: ArrayLike) -> str:
    """The first digits of a hash of all that an instance consists of: 1, 1.0 and 1e0 are the same number."""
    content = hashlib.sha256(kind.encode())
    for each in numbers:
        values = np.ascontiguousarray(each, dtype="<f8") + 0.0  # no -0
        content.update(f"{values.shape}".encode() + values.tobytes())
    return content.hexdigest()[:16]


@cache
def _table(problem: str) -> dict[str, dict[str, str]]:
    """Rows by name in small letters. Lines that begin with # say where a table comes from."""
    text = files(f"gumbeldore.problems.{problem}").joinpath("best_known.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {row["name"].lower(): row for row in csv.DictReader(lines)}
