"""The syntax of TSPLIB and CVRPLIB: `KEY : value` lines and sections of numbers, as G. Reinelt's "TSPLIB 95" describes it.

Stricter than vrplib, which takes rows as they come: every node must be there, once, and nothing may be left over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.text import integer, number, shown

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*")
SECTION = re.compile(r"([A-Za-z][A-Za-z0-9_]*)_SECTION\s*:?", re.IGNORECASE)
_KEYS = ("NAME", "TYPE", "COMMENT", "DIMENSION", "CAPACITY", "EDGE_WEIGHT_TYPE")
_DRAWN = ("NODE_COORD", "EDGE_WEIGHT", "DISPLAY_DATA")
"""Sections that say where nodes are, or how far from each other."""


@dataclass(frozen=True)
class Tsplib:
    """A file: its specifications and sections by name in capitals, sections as the words of each row."""

    specifications: dict[str, str] = field(default_factory=dict)
    sections: dict[str, list[list[str]]] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """A specification that must be there."""
        if not (value := self.specifications.get(key, "")):
            raise FormatError(f"There is no {key}.")
        return value

    def count(self, key: str) -> int:
        """A specification that must be a positive integer."""
        value = integer(self.text(key), key)
        if value < 1:
            raise FormatError(f"{key} must be at least 1, got {value}.")
        return value

    def kind(self, usual: str) -> str:
        """What the file is about, in capitals."""
        value = self.specifications.get("TYPE", usual)
        if not value:
            raise FormatError("TYPE must say what the file is about, but is empty.")
        return value.split()[0].upper()

    def name(self, stem: str) -> str:
        """As the file calls itself, without the endings that some have; otherwise the name of the file."""
        name = self.specifications.get("NAME", "").strip("\"' ")
        return re.sub(r"\.(tsp|vrp)$", "", name, flags=re.IGNORECASE) or stem

    def left_unread(self, *read: str) -> tuple[str, ...]:
        """What to tell a user: that there are sections which are not `read`, so that what they ask for is not done."""
        unread = sorted(set(self.sections) - {*_DRAWN, *read})
        return tuple(f"{section}_SECTION is not read: what it asks for is not part of the problem here." for section in unread)

    def rows(self, section: str, width: int) -> NDArray[np.float64]:
        """A section with a row of `width` numbers for each node, in the order of the nodes."""
        rows, count = self._section(section), self.count("DIMENSION")
        if len(rows) != count:
            raise FormatError(f"DIMENSION is {count}, but {section}_SECTION has {len(rows)} rows.")
        nodes = [integer(row[0], f"The node in row {place} of {section}_SECTION") for place, row in enumerate(rows, 1)]
        check_numbers(nodes, count, f"{section}_SECTION")
        for node, row in zip(nodes, rows, strict=True):
            if len(row) != 1 + width:
                raise FormatError(
                    f"{section}_SECTION must give {width} numbers for each node, got {len(row) - 1} for node {node}."
                )
        values = np.empty((count, width))
        for node, row in zip(nodes, rows, strict=True):
            values[node - 1] = [number(word, f"{section}_SECTION of node {node}") for word in row[1:]]
        return values

    def words(self, section: str) -> list[str]:
        """A section whose lines mean nothing."""
        return [word for row in self._section(section) for word in row]

    def listed(self, section: str) -> list[int]:
        """A section that lists integers and ends with -1, which may be missing."""
        values = [integer(word, f"Each entry of {section}_SECTION") for word in self.words(section)]
        end = values.index(-1) if -1 in values else len(values)
        if any(value != -1 for value in values[end:]):
            raise FormatError(f"{section}_SECTION goes on after the -1 that ends it.")
        return values[:end]

    def _section(self, section: str) -> list[list[str]]:
        if section not in self.sections:
            raise FormatError(f"There is no {section}_SECTION.")
        return self.sections[section]


def check_numbers(nodes: Sequence[int], count: int, where: str) -> None:
    """Each of 1 .. count must be there once."""
    seen: set[int] = set()
    for node in nodes:
        if not 1 <= node <= count:
            raise FormatError(f"{where} has node {node}, but nodes are numbered 1 .. {count}.")
        if node in seen:
            raise FormatError(f"{where} has node {node} twice.")
        seen.add(node)
    if len(seen) < count:
        raise FormatError(f"{where} lacks node {min(set(range(1, count + 1)) - seen)} of {count}.")


def parse_tsplib(text: str) -> Tsplib:
    """Specifications and sections in any order, up to EOF."""
    file, rows = Tsplib(), None
    for place, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line == "EOF":
            break
        if name := section_name(line):
            rows = _new(file.sections, name, [], f"The {name}_SECTION in line {place}")
        elif entry := _specification(line):
            key, value = entry
            if key == "COMMENT":
                value = f"{file.specifications.pop(key, '')} {value}".strip()
            _new(file.specifications, key, value, f"{key} in line {place}")
            rows = None
        elif line and rows is None:
            raise FormatError(f"Line {place} is neither `KEY : value` nor the name of a section: {shown(line)}.")
        elif line and rows is not None:
            rows.append(line.split())
    return file


V = TypeVar("V")


def _new(entries: dict[str, V], key: str, value: V, what: str) -> V:
    if key in entries:
        raise FormatError(f"{what} is there a second time.")
    return entries.setdefault(key, value)


def section_name(line: str) -> str:
    """The name of the section that begins with this line, without `_SECTION`; empty if none does."""
    match = SECTION.fullmatch(line.strip())
    return match[1].upper() if match else ""


def _specification(line: str) -> tuple[str, str] | None:
    """Key and value of such a line."""
    key, colon, value = (part.strip() for part in line.partition(":"))
    return (key.upper(), value) if colon and _KEY.fullmatch(key) else None


def is_tsplib(lines: Iterable[str]) -> bool:
    """Whether the first line that is not empty belongs to such a file."""
    first = next((line for line in lines if line.strip()), "")
    entry = _specification(first)
    return bool(section_name(first)) or (entry is not None and entry[0] in _KEYS)


def specifications(lines: Iterable[str]) -> dict[str, str]:
    """All keys and values, in capitals, for a guess at what a file is about."""
    return {key: value.upper() for key, value in filter(None, map(_specification, lines))}


def is_routing(lines: Sequence[str]) -> bool:
    """Whether such a file is about vehicles."""
    keys = specifications(lines)
    if keys.get("TYPE", "").split()[:1] == ["OP"]:
        return False
    return "VRP" in keys.get("TYPE", "") or "CAPACITY" in keys or bool({"DEMAND", "DEPOT"} & set(map(section_name, lines)))
