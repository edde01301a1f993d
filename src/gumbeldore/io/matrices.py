"""Matrices as rows of text and as numpy arrays: as many numbers in each row as there are rows."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.text import is_number, number

NUMPY = b"\x93NUMPY"
_SHAPE = re.compile(rb"'shape': \((?:\d+, )?(\d+), (\d+)\)")
_LEAST = 3
"""Cities of a matrix that is recognised: two columns are places."""


def _cells(line: str) -> list[str]:
    """What stands between commas, semicolons, tabs or blanks."""
    for delimiter in ",;\t":
        if delimiter in line:
            return [cell.strip(' \t"') for cell in line.split(delimiter)]
    return line.split()


def numbered_rows(lines: list[str]) -> list[tuple[int, list[str]]]:
    """The cells of each line that is neither empty nor a comment, and its number."""
    kept = [(place, line.strip()) for place, line in enumerate(lines, 1)]
    return [(place, _cells(line)) for place, line in kept if line and not line.startswith("#")]


def claims_rows(lines: list[str]) -> bool:
    """Rows of equally many numbers between commas or semicolons, no more than there are columns."""
    rows = [row for _, row in numbered_rows(lines)]
    commas = any("," in line or ";" in line for line in lines)  # rows of job shops have none
    return (
        commas
        and _LEAST <= len(rows) <= len(rows[0])
        and all(len(row) == len(rows[0]) and all(map(is_number, row)) for row in rows)
    )


def parse_rows(text: str) -> NDArray[np.float64]:
    """A square matrix."""
    rows = numbered_rows(text.splitlines())
    for place, row in rows:
        if len(row) != len(rows):
            raise FormatError(f"A matrix of {len(rows)} rows must have {len(rows)} columns, got {len(row)} in line {place}.")
    if not rows:
        raise FormatError("There are no distances.")
    return np.array([[number(cell, f"A distance in line {place}") for cell in row] for place, row in rows])


def claims_array(head: bytes) -> bool:
    """An array of numpy's whose last two axes are equal and larger than 2: distances, not places."""
    shape = _SHAPE.search(head[:256]) if head.startswith(NUMPY) else None
    return shape is not None and shape[1] == shape[2] and int(shape[1]) >= _LEAST
