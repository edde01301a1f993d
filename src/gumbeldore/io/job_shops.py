"""Texts of job shops: rows of numbers, a job each, by which of three layouts a file is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

UNSUPPORTED = "Precedence graphs, setup times, release and due dates are not supported."
"""What else a file of a shop may ask for."""

Row = Sequence[str]
Layout = Literal["flexible", "general", "flow", "other"]
"""Flexible: the number of a job's operations, then for each the number of its machines and pairs of a machine and a time. General: pairs of a
machine and a time, but some job does not come to each machine exactly once. Flow: Taillard's flow shops. Everything else: classical job shops,
and no job shops."""
FLOW = "processing times"
"""What stands above the times of a flow shop."""


def layout(lines: Sequence[str]) -> Layout:
    """The layout of the lines of a file, or of its first ones."""
    if any(line.strip().lower().startswith(FLOW) for line in lines):
        return "flow"
    rows = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    while rows and not rows[0][0].isdigit():
        rows.pop(0)  # a title
    if len(rows) < 2 or len(rows[0]) not in (2, 3) or not all(map(_is_count, rows[0][:2])):
        return "other"
    jobs, machines = (int(word) for word in rows[0][:2])
    rows = rows[1 : jobs + 1]
    if all(_is_flexible(row, machines) for row in rows):
        return "flexible"
    if len(rows[0]) == machines and len(rows) == jobs:  # times, then machines
        return "other"
    pairs = len(rows) > 0 and all(len(row) % 2 == 0 and all(_is_digits(word) for word in row[::2]) for row in rows)
    classical = pairs and any(_is_classical(row, machines) for row in rows)
    return "general" if pairs and not classical and len(lines) > jobs else "other"


def _is_count(word: str) -> bool:
    return _is_digits(word) and int(word) > 0


def _is_digits(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10


def _is_flexible(row: Row, machines: int) -> bool:
    """Whether a row is the number of its operations, and so many of them; of a row that is cut off or spoilt, whether it begins like one."""
    if not _is_count(row[0]):
        return False
    place = 1
    for _ in range(int(row[0])):
        if place >= len(row) or not _is_count(row[place]) or int(row[place]) > machines:
            return False
        place += 1 + 2 * int(row[place])
    return place == len(row)


def _is_classical(row: Row, machines: int) -> bool:
    visited = sorted(map(int, row[::2]))
    return visited in (list(range(machines)), list(range(1, machines + 1)))
