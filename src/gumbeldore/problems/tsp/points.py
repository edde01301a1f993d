"""Instances of the TSP from plain coordinates: columns of text, JSON or a numpy array."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io import arrays
from gumbeldore.io.matrices import NUMPY, claims_array, claims_rows, numbered_rows
from gumbeldore.io.plane import check_points
from gumbeldore.io.text import is_number, number, shown, text_format
from gumbeldore.kits.kit import Format, Instance
from gumbeldore.problems.tsp.files import cities

_LOOKED_AT = 50  # rows, when the format is guessed
_FEW = 2  # rows that may be anything


def _parse_columns(text: str, stem: str) -> list[Instance]:
    """A row for each city: x and y, between commas, semicolons or blanks. A first row without numbers is a header."""
    rows = numbered_rows(text.splitlines())
    width, (x, y) = 2, (0, 1)
    if _could_be_a_shop(text, rows):
        raise FormatError(
            "This could be the beginning of a job shop. For cities, put commas between x and y, or write a header `x y`."
        )
    if rows and _is_header(rows[0][1]):
        header = [cell.lower() for cell in rows.pop(0)[1]]
        if "x" in header and "y" in header:
            width, (x, y) = len(header), (header.index("x"), header.index("y"))
    for place, row in rows:
        if len(row) != width:
            raise FormatError(
                f"Line {place} must hold {width} columns, got {len(row)}. Name the columns `x` and `y` if there are more."
            )
    if not rows:
        raise FormatError("There are no coordinates.")
    points = [[number(row[column], f"A coordinate in line {place}") for column in (x, y)] for place, row in rows]
    return [_checked(np.array(points), stem)]


def _parse_json(text: str, stem: str) -> list[Instance]:
    """A list of pairs, alone or as `coordinates` of an object, which may have a `name`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"This is no valid JSON: {error}.") from error
    name = stem
    if isinstance(content, dict):
        name = " ".join(str(content.get("name", stem)).split())
        content = content.get("coordinates")
    if not isinstance(content, list) or not content:
        raise FormatError("JSON must be a list of pairs, or an object with such a list as `coordinates`.")
    for place, pair in enumerate(content, 1):
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(value) in (int, float) for value in pair)):
            raise FormatError(f"City {place} must be a pair of numbers, got {shown(json.dumps(pair))}.")
    try:
        return [_checked(np.array(content, dtype=np.float64), name)]
    except OverflowError as error:
        raise FormatError("A coordinate is too large.") from error


def _read_array(path: Path) -> list[Instance]:
    """The array of a .npy file with the axes (city, 2), or (instance, city, 2)."""
    array = arrays.read_array(path)
    if array.dtype.kind not in "iuf" or array.ndim not in (2, 3) or array.shape[-1] != 2 or not array.size:
        raise FormatError(
            f"{path} must hold places with the axes (city, 2) or (instance, city, 2), got {array.dtype} {array.shape}."
        )
    sets = array.astype(np.float64).reshape(-1, *array.shape[-2:])
    try:
        return [_checked(points, f"{path.stem}[{row}]" if array.ndim == 3 else path.stem) for row, points in enumerate(sets)]
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error


def _checked(points: NDArray[np.float64], name: str) -> Instance:
    check_points(points, "city")
    return cities(points, name)


def _is_header(row: list[str]) -> bool:
    return not any(map(is_number, row))


def _claims_columns(lines: list[str]) -> bool:
    """Two numbers in each row, or a header that names them; no matrix."""
    if claims_rows(lines):
        return False
    rows = [row for _, row in numbered_rows(lines)[:_LOOKED_AT]]
    if rows and {"x", "y"} <= {cell.lower() for cell in rows[0]}:
        return True
    numbers = rows[1:] if rows and _is_header(rows[0]) else rows
    if numbers and all(len(row) == 2 and all(map(is_number, row)) for row in numbers):
        return True
    commas = any("," in line or ";" in line for line in lines)  # rows of job shops have none
    return commas and len(numbers) > 2 and all(len(row) == len(numbers[0]) > 2 and all(map(is_number, row)) for row in numbers)


def _could_be_a_shop(text: str, rows: list[tuple[int, list[str]]]) -> bool:
    """A few pairs of whole numbers between blanks: sooner the beginning of a job shop (jobs, machines, times) than cities."""
    whole = all(cell.lstrip("+-").isdigit() for _, row in rows for cell in row)
    return len(rows) <= _FEW and whole and not set(text) & set(",;\t")


COLUMNS = text_format("columns of coordinates", (".csv", ".txt", ".xy"), _claims_columns, _parse_columns)
JSON = text_format("JSON", (".json",), lambda lines: bool(lines) and lines[0].lstrip()[:1] in ("[", "{"), _parse_json)
ARRAY = Format("numpy array", (".npy",), lambda head: head.startswith(NUMPY) and not claims_array(head), _read_array)
