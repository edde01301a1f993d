"""Best known costs of public instances. They ship as tables, `best_known.csv` in a problem's room, with source and date."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def best_known(room: str, size: Mapping[str, object], *names: str) -> tuple[float | None, str]:
    """The best known cost of the first of these names that the room's table has with this size, and who says so."""
    for name in names:
        row = _table(room).get(name.lower())
        if row is not None and all(row[key] == str(value) for key, value in size.items()):
            return float(row["best"]), f"table of best known values ({row['source']})"
    return None, ""


@cache
def _table(room: str) -> dict[str, dict[str, str]]:
    """Rows by name in small letters. Lines that begin with # say where a table comes from."""
    text = files(f"gumbeldore.problems.{room}").joinpath("best_known.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {row["name"].lower(): row for row in csv.DictReader(lines)}
