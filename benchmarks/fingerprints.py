"""Fingerprints of published instances, into the tables of best known values: `python benchmarks/fingerprints.py tsp FOLDER...`.

The folders hold the published files, at any depth: of tsp github.com/mastqe/tsplib, of cvrp sets of CVRPLIB, of jssp github.com/ScheduleOpt/benchmarks,
of op github.com/bcamath-ds/OPLib.
Each row of the table gets the fingerprint of the file that has its name; copies that differ are listed, and the row is left without one.
`--check` changes nothing and fails if the table says something else.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gumbeldore.errors import GumbeldoreError
from gumbeldore.io.best_known import fingerprint
from gumbeldore.io.reading import read_file
from gumbeldore.io.text import read_text
from gumbeldore.io.tsplib import parse_tsplib
from gumbeldore.kits.registry import kit_named
from gumbeldore.problems.cvrp.files import RoutesCost, cvrp_fingerprint
from gumbeldore.problems.op.files import TourPrize, op_fingerprint
from gumbeldore.problems.tours import TourCost
from gumbeldore.problems.tsp.files import tsp_fingerprint

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "gumbeldore"
ENDINGS = {"tsp": (".tsp",), "cvrp": (".vrp",), "jssp": (".txt", ".json"), "op": (".oplib",)}


def fingerprints(room: str, folder: Path, names: set[str]) -> Iterator[tuple[str, str]]:
    """The files of these names and their fingerprints."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix.lower() in ENDINGS[room] and path.stem.lower() in names:
            try:
                yield path.stem.lower(), _fingerprint(room, path)
            except GumbeldoreError as error:
                print(f"left out: {error}")


def _fingerprint(room: str, path: Path) -> str:
    if path.suffix == ".json":
        return _of_operations(json.loads(path.read_text()))
    _, (given,) = read_file(path, kit_named(room))
    if room == "jssp":
        return fingerprint("jssp", given.arrays["times"], given.arrays["machines"])
    file = parse_tsplib(read_text(path))
    rule = file.text("EDGE_WEIGHT_TYPE").upper()
    if isinstance(given.cost, TourPrize):
        return op_fingerprint(
            rule, given.cost.weights, file.listed("DEPOT"), given.arrays["prizes"], float(given.arrays["budget"])
        )
    if isinstance(given.cost, TourCost):
        return tsp_fingerprint(rule, given.cost.weights)
    assert isinstance(given.cost, RoutesCost)
    arrays = given.arrays
    return cvrp_fingerprint(rule, given.cost.weights, file.listed("DEPOT"), arrays["demands"], arrays["capacity"])


def _of_operations(shop: dict[str, Any]) -> str:
    """A job shop as ScheduleOpt writes it."""
    times, machines = np.zeros((2, shop["jobs"], shop["machines"]), dtype=np.int64)
    for each in shop["data"]:
        place = each["job"], each["operation"]
        times[place], machines[place] = each["duration"], each["machine"]
    return fingerprint("jssp", times, machines)


def rows_of(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(line for line in table.splitlines() if not line.startswith("#")))


def filled(table: str, found: dict[str, set[str]]) -> str:
    """The table with the fingerprints of all rows that have one."""
    comments = [line for line in table.splitlines() if line.startswith("#")]
    rows = rows_of(table)
    for row in rows:
        copies = found.get(row["name"].lower(), set())
        row["fingerprint"] = copies.pop() if len(copies) == 1 else ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return "\n".join([*comments, text.getvalue()])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=list(ENDINGS))
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    path = PACKAGE / "problems" / given.room / "best_known.csv"
    before, found = path.read_text(), defaultdict(set)
    names = {row["name"].lower() for row in rows_of(before)}
    for folder in given.folders:
        for name, content in fingerprints(given.room, folder, names):
            found[name].add(content)
    print(*(f"copies of {name} differ" for name, contents in found.items() if len(contents) > 1), sep="\n")
    after = filled(before, found)
    rows = rows_of(after)
    print(f"{sum(bool(row['fingerprint']) for row in rows)} of {len(rows)} rows of {path} have a fingerprint")
    if not given.check:
        path.write_text(after)
    return int(given.check and before != after)


if __name__ == "__main__":
    raise SystemExit(main())
