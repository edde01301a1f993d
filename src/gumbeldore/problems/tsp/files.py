"""Instances from files and solutions into files. Readers are strict and execute nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError


def read_points(path: str | Path) -> NDArray[np.float64]:
    """Coordinates of cities from .csv or .txt (two columns), .npy, .json (a list of pairs) or TSPLIB .tsp."""
    path = Path(path)
    readers = {".csv": _read_columns, ".txt": _read_columns, ".npy": _read_npy, ".json": _read_json, ".tsp": _read_tsplib}
    if not path.is_file():
        raise FormatError(f"There is no instance file {path}.")
    if path.suffix.lower() not in readers:
        raise FormatError(f"Cannot read {path.name}: an instance file ends in one of {', '.join(readers)}.")
    try:
        points = np.asarray(readers[path.suffix.lower()](path), dtype=np.float64)
    except FormatError:
        raise
    except (ValueError, TypeError, OSError) as error:
        raise FormatError(f"{path} does not hold coordinates: {error}") from error
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3:
        raise FormatError(f"{path} must hold at least 3 rows of 2 coordinates, got an array of shape {points.shape}.")
    if not np.isfinite(points).all():
        raise FormatError(
            f"{path} holds coordinates that are not finite, first in row {int(np.argwhere(~np.isfinite(points))[0][0]) + 1}."
        )
    return points


def normalised(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Points moved and scaled into the unit square (one factor for both axes), and the factor that undoes the scaling."""
    low = points.min(0)
    size = float((points.max(0) - low).max()) or 1.0
    return (points - low) / size, size


def _read_columns(path: Path) -> NDArray[np.float64]:
    lines = [line.replace(",", " ").replace(";", " ") for line in path.read_text().splitlines()]
    rows = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if rows and not _is_number(rows[0][0]):
        rows = rows[1:]  # a header
    return np.array([[float(value) for value in row] for row in rows])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_npy(path: Path) -> NDArray[np.float64]:
    return np.load(path, allow_pickle=False)


def _read_json(path: Path) -> NDArray[np.float64]:
    return np.array(json.loads(path.read_text()), dtype=np.float64)


def _read_tsplib(path: Path) -> NDArray[np.float64]:
    """The NODE_COORD_SECTION of a TSPLIB file with Euclidean distances."""
    points, inside = [], False
    for line in path.read_text().splitlines():
        key = line.split(":")[0].strip()
        if key == "EDGE_WEIGHT_TYPE" and line.split(":")[1].strip() not in ("EUC_2D", "CEIL_2D"):
            raise FormatError(
                f"{path} has the edge weight type {line.split(':')[1].strip()}; only EUC_2D and CEIL_2D are planar."
            )
        if key in ("NODE_COORD_SECTION", "EOF") or key.endswith("_SECTION"):
            inside = key == "NODE_COORD_SECTION"
        elif inside and line.strip():
            points.append([float(value) for value in line.split()[1:3]])
    return np.array(points)
