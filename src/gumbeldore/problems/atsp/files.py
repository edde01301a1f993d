"""Instances of the ATSP from TSPLIB files, rows of numbers and numpy arrays. Readers are strict and execute nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gumbeldore.errors import FormatError
from gumbeldore.io.arrays import read_array
from gumbeldore.io.best_known import fingerprint, published
from gumbeldore.io.matrices import claims_array, claims_rows, parse_rows
from gumbeldore.io.text import text_format
from gumbeldore.io.tsplib import is_routing, is_tsplib, parse_tsplib, specifications
from gumbeldore.io.tsplib_distances import listed
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Format, Instance
from gumbeldore.problems.tours import DISTANCES, of_matrix

_WRAPPED = 15  # numbers in a line


def _parse(text: str, stem: str) -> list[Instance]:
    """The instance of a TSPLIB file that lists its distances. Those of symmetric ones are taken where they are asked for."""
    file = parse_tsplib(text)
    kind = file.kind("ATSP")
    if kind not in ("ATSP", "TSP"):
        raise FormatError(f"TYPE is {kind}, not ATSP.")
    if (weights := file.text("EDGE_WEIGHT_TYPE").upper()) != "EXPLICIT":
        raise FormatError(f"EDGE_WEIGHT_TYPE is {weights}, not EXPLICIT: cities in the plane are the problem `tsp`.")
    given = of_matrix(listed(file, symmetric=kind == "TSP"), file.name(stem))
    known = published("atsp", atsp_fingerprint(given.arrays), {"cities": file.count("DIMENSION")}, given.name, stem)
    return [replace(given, known=known.cost, known_from=known.source, notes=(*file.left_unread(), *known.notes))]


def atsp_fingerprint(arrays: Arrays) -> str:
    return fingerprint("EXPLICIT", arrays[DISTANCES])


def write_atsp(given: Arrays, name: str = "matrix") -> str:
    """The text of a TSPLIB file."""
    matrix = given[DISTANCES]
    head = f"NAME: {name}\nTYPE: ATSP\nDIMENSION: {len(matrix)}\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
    rows = [[f"{value:.17g}" for value in row] for row in matrix.tolist()]
    lines = [" ".join(row[first : first + _WRAPPED]) for row in rows for first in range(0, len(row), _WRAPPED)]
    return head + "EDGE_WEIGHT_SECTION\n" + "\n".join(lines) + "\nEOF\n"


def _read_array(path: Path) -> list[Instance]:
    """The array of a .npy file with the axes (city, city), or (instance, city, city)."""
    array = read_array(path)
    if array.dtype.kind not in "iuf" or array.ndim not in (2, 3) or not array.size:
        raise FormatError(
            f"{path} must hold distances with the axes (city, city) or (instance, city, city), got {array.dtype} {array.shape}."
        )
    if array.ndim == 2:
        return [of_matrix(array, path.stem)]
    return [of_matrix(matrix, f"{path.stem}[{row}]") for row, matrix in enumerate(array)]


def _claims(lines: list[str]) -> bool:
    return is_tsplib(lines) and not is_routing(lines) and specifications(lines).get("TYPE", "").startswith("ATSP")


TSPLIB = text_format("TSPLIB matrix", (".atsp", ".tsp"), _claims, _parse)
ROWS = text_format("rows of a matrix", (".csv", ".txt"), claims_rows, lambda text, stem: [of_matrix(parse_rows(text), stem)])
ARRAY = Format("numpy matrix", (".npy",), claims_array, _read_array)
