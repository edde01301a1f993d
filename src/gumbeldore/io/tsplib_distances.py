"""Distances as TSPLIB defines them (G. Reinelt, "TSPLIB 95", section 2), to the last digit: published optima depend on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.plane import LARGEST, check_points
from gumbeldore.io.text import number
from gumbeldore.io.tsplib import Tsplib

_PI = 3.141592  # TSPLIB's own
_RADIUS = 6378.388  # of the earth, in kilometres


Weights = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]
"""Distances between pairs of nodes, from 0."""

Rule = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Planar:
    """A rule on the differences in x and y."""

    points: Float[np.ndarray, "node 2"]
    rule: Rule

    def __call__(self, a: Int[np.ndarray, " pair"], b: Int[np.ndarray, " pair"]) -> Float[np.ndarray, " pair"]:
        x, y = np.abs(self.points[a] - self.points[b]).T
        return self.rule(x, y)


@dataclass(frozen=True, eq=False)
class Matrix:
    """Distances that the file lists."""

    matrix: Float[np.ndarray, "node node"]

    def __call__(self, a: Int[np.ndarray, " pair"], b: Int[np.ndarray, " pair"]) -> Float[np.ndarray, " pair"]:
        return np.where(a == b, 0.0, self.matrix[a, b])


@dataclass(frozen=True, eq=False)
class Geographical:
    """Great circles between latitudes and longitudes in radians, cut off after adding one."""

    angles: Float[np.ndarray, "node 2"]

    def __call__(self, a: Int[np.ndarray, " pair"], b: Int[np.ndarray, " pair"]) -> Float[np.ndarray, " pair"]:
        (north_a, east_a), (north_b, east_b) = self.angles[a].T, self.angles[b].T
        q1, q2, q3 = np.cos(east_a - east_b), np.cos(north_a - north_b), np.cos(north_a + north_b)
        cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
        return np.where(a == b, 0.0, np.trunc(_RADIUS * np.arccos(np.clip(cosine, -1.0, 1.0)) + 1.0))


def _nearest_integer(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.floor(values + 0.5)


def _euclidean(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    return _nearest_integer(np.sqrt(x * x + y * y))


def _rounded_up(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ceil(np.sqrt(x * x + y * y))


def _pseudo_euclidean(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """ATT: rounded, and one more where that has become less."""
    exact = np.sqrt((x * x + y * y) / 10.0)
    return _nearest_integer(exact) + (_nearest_integer(exact) < exact)


def _manhattan(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    return _nearest_integer(x + y)


def _maximum(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(_nearest_integer(x), _nearest_integer(y))


PLANAR: dict[str, Rule] = {
    "EUC_2D": _euclidean,
    "CEIL_2D": _rounded_up,
    "ATT": _pseudo_euclidean,
    "MAN_2D": _manhattan,
    "MAX_2D": _maximum,
}
_TYPES = (*PLANAR, "GEO", "EXPLICIT")
_TRIANGLES = {  # of a symmetric matrix, columns of one half are rows of the other: which half, and its first diagonal
    "UPPER_ROW": (np.triu_indices, 1),
    "LOWER_COL": (np.triu_indices, 1),
    "UPPER_DIAG_ROW": (np.triu_indices, 0),
    "LOWER_DIAG_COL": (np.triu_indices, 0),
    "LOWER_ROW": (np.tril_indices, -1),
    "UPPER_COL": (np.tril_indices, -1),
    "LOWER_DIAG_ROW": (np.tril_indices, 0),
    "UPPER_DIAG_COL": (np.tril_indices, 0),
}


class Places(NamedTuple):
    """Where nodes are, as a policy may see it; how far they are apart by the file's rule; what a user should know about it."""

    points: Float[np.ndarray, "node 2"]
    weights: Weights
    notes: tuple[str, ...] = ()


def places(file: Tsplib, symmetric: bool = True) -> Places:
    """Nodes and distances of a file; `symmetric`: as long in both directions."""
    kind = file.text("EDGE_WEIGHT_TYPE").upper()
    if kind in PLANAR:
        points = _points(file, "NODE_COORD")
        return Places(points, Planar(points, PLANAR[kind]), _note(kind))
    if kind == "GEO":
        angles = radians(_points(file, "NODE_COORD"))
        return Places(projected(angles), Geographical(angles), _note(kind))
    if kind == "EXPLICIT":
        return _explicit(file, symmetric)
    raise FormatError(f"EDGE_WEIGHT_TYPE {kind} is not supported, only {', '.join(_TYPES)}.")


def _note(kind: str) -> tuple[str, ...]:
    if kind in ("EUC_2D", "CEIL_2D", "ATT"):
        return ()  # the plane, up to rounding
    return (f"A policy sees distances in the plane; costs and local search go by the file's rule, {kind}.",)


def without_places(file: Tsplib) -> bool:
    """Whether all that a file says are distances."""
    explicit = file.text("EDGE_WEIGHT_TYPE").upper() == "EXPLICIT"
    return explicit and not {"DISPLAY_DATA", "NODE_COORD"} & set(file.sections)


def _explicit(file: Tsplib, symmetric: bool) -> Places:
    drawn = next((section for section in ("DISPLAY_DATA", "NODE_COORD") if section in file.sections), None)
    if drawn is None:
        raise FormatError(
            "The distances are an explicit matrix and there are no coordinates, but policies go by coordinates. "
            "Add a DISPLAY_DATA_SECTION."
        )
    return Places(_points(file, drawn), Matrix(listed(file, symmetric)), _note("EXPLICIT"))


def _points(file: Tsplib, section: str) -> NDArray[np.float64]:
    points = file.rows(section, 2)
    check_points(points)
    return points


def radians(points: Float[np.ndarray, "node 2"]) -> Float[np.ndarray, "node 2"]:
    """Latitude and longitude from DDD.MM, degrees and minutes."""
    degrees = np.trunc(points)
    if (np.abs(degrees) > [90, 180]).any():
        raise FormatError("GEO coordinates must be a latitude in -90 .. 90 and a longitude in -180 .. 180, as degrees.minutes.")
    return _PI * (degrees + 5.0 * (points - degrees) / 3.0) / 180.0


def projected(angles: Float[np.ndarray, "node 2"]) -> Float[np.ndarray, "node 2"]:
    """A map in kilometres: east and north of the middle, true to scale along the middle latitude.

    It is cut where the longitudes leave the widest gap.
    """
    north, east = angles[:, 0], np.mod(angles[:, 1], 2 * math.pi)
    order = np.sort(east)
    gaps = np.diff(order, append=order[0] + 2 * math.pi)
    first = order[(int(gaps.argmax()) + 1) % len(order)]
    across = east - first + np.where(east < first, 2 * math.pi, 0.0)
    middle = (north.min() + north.max()) / 2
    return _RADIUS * np.stack([across * math.cos(middle), north], 1)


def listed(file: Tsplib, symmetric: bool = True) -> NDArray[np.float64]:
    """A matrix in any of TSPLIB's formats; `symmetric`: it must be, otherwise it need not be."""
    count, kind = file.count("DIMENSION"), file.text("EDGE_WEIGHT_FORMAT").upper()
    words = file.words("EDGE_WEIGHT")
    if kind != "FULL_MATRIX" and kind not in _TRIANGLES:
        raise FormatError(f"EDGE_WEIGHT_FORMAT {kind} is not supported, only FULL_MATRIX, {', '.join(_TRIANGLES)}.")
    half, diagonal = _TRIANGLES.get(kind, (None, 0))
    wanted = count * count if half is None else count * (count + 1 if diagonal == 0 else count - 1) // 2
    if len(words) != wanted:
        raise FormatError(f"EDGE_WEIGHT_SECTION must have {wanted} numbers ({kind} of {count} nodes), got {len(words)}.")
    values = np.array([number(word, "Each entry of EDGE_WEIGHT_SECTION") for word in words])
    if not (np.abs(values) <= LARGEST).all():
        raise FormatError(f"EDGE_WEIGHT_SECTION must hold finite numbers of at most {LARGEST:g}.")
    if half is not None:
        return _mirrored(values, half(count, diagonal), count)
    return _symmetric(values.reshape(count, count)) if symmetric else values.reshape(count, count)


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    if not (matrix == matrix.T).all():
        a, b = np.argwhere(matrix != matrix.T)[0]
        raise FormatError(
            f"The matrix is not symmetric, first between nodes {a + 1} and {b + 1}; only symmetric ones are supported."
        )
    return matrix


def _mirrored(values: NDArray[np.float64], place: tuple[Any, Any], count: int) -> NDArray[np.float64]:
    matrix = np.zeros((count, count))
    matrix[place] = values
    matrix.T[place] = values
    return matrix


def defining(weights: Weights) -> NDArray[np.float64]:
    """The numbers that the distances of a file follow from, by its rule."""
    if isinstance(weights, Matrix):
        return np.where(np.eye(len(weights.matrix), dtype=bool), 0.0, weights.matrix)
    return weights.angles if isinstance(weights, Geographical) else weights.points  # type: ignore[attr-defined]


def path_length(weights: Weights, nodes: Sequence[int]) -> float:
    """The way from the first node over all others to the last one."""
    stops = np.asarray(nodes, dtype=np.int64)
    return float(weights(stops[:-1], stops[1:]).sum())


def all_pairs(weights: Weights, count: int) -> Float[np.ndarray, "node node"]:
    """The distances between all nodes."""
    a, b = np.indices((count, count)).reshape(2, -1)
    return weights(a, b).reshape(count, count)
