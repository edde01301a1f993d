"""Instances of the TSP from TSPLIB files. Readers are strict and execute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.best_known import Known, fingerprint, published
from gumbeldore.io.plane import LARGEST, duplicates, unit_square
from gumbeldore.io.text import text_format
from gumbeldore.io.tsplib import Tsplib, is_routing, is_tsplib, parse_tsplib, specifications
from gumbeldore.io.tsplib_distances import Matrix, Weights, defining, listed, path_length, places, without_places
from gumbeldore.kits.kit import Instance

DISTANCES = "distances"
"""The name of the array of cities without places."""

_REFUSED = {  # what a file may be about, and why that is not solved
    "SOP": "an order that must be kept is not supported",
    "HCP": "a Hamiltonian cycle in a graph is another problem",
}


@dataclass(frozen=True, eq=False)
class TourCost:
    """The length of a closed tour from city 0 by a file's distances."""

    weights: Weights

    def __call__(self, actions: Sequence[int]) -> float:
        return path_length(self.weights, [0, *actions, 0])


def cities(points: NDArray[np.float64], name: str) -> Instance:
    """Cities in the plane. Up to three of them have one tour only."""
    unit, scale = unit_square(points)
    return Instance(
        arrays={"coordinates": points},
        unit={"coordinates": unit},
        scale=scale,
        name=name,
        solved=tuple(range(1, len(points))) if len(points) <= 3 else None,
        notes=duplicates(points, "city", "cities"),
    )


def _parse(text: str, stem: str) -> list[Instance]:
    """The instance of a TSPLIB file."""
    file = parse_tsplib(text)
    _check_kind(file)
    name = file.name(stem)
    if file.kind("TSP") == "ATSP" or without_places(file):
        return [_of_distances(file, name, stem)]
    points, weights, notes = places(file)
    given, known = cities(points, name), _known_length(file, weights, name, stem)
    notes = (*given.notes, *notes, *file.left_unread(), *known.notes)
    return [replace(given, cost=TourCost(weights), known=known.cost, known_from=known.source, notes=notes)]


def _of_distances(file: Tsplib, name: str, stem: str) -> Instance:
    """Cities without places, for local search alone."""
    kind = file.kind("TSP")
    matrix = listed(file, symmetric=kind == "TSP")
    known = _known_length(file, Matrix(matrix), name, stem)
    return replace(
        of_matrix(matrix, name), known=known.cost, known_from=known.source, notes=(*file.left_unread(), *known.notes)
    )


def _known_length(file: Tsplib, weights: Weights, *names: str) -> Known:
    """The optimal length, if it is a published instance."""
    rule = file.text("EDGE_WEIGHT_TYPE").upper()
    return published("tsp", tsp_fingerprint(rule, weights), {"cities": file.count("DIMENSION"), "weights": rule}, *names)


def tsp_fingerprint(rule: str, weights: Weights) -> str:
    return fingerprint(rule, defining(weights))


def of_matrix(matrix: NDArray[Any], name: str = "") -> Instance:
    """Cities of which only the distances are known, from the row's to the column's."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise FormatError(f"A matrix of distances must have the shape (cities, cities), got {matrix.shape}.")
    values = matrix.astype(np.float64)
    if not (np.abs(values) <= LARGEST).all():
        raise FormatError(f"Distances must be finite and at most {LARGEST:g}.")
    solved = tuple(range(1, len(values))) if len(values) <= 2 else None
    return Instance({DISTANCES: values}, {}, name=name, cost=TourCost(Matrix(values)), solved=solved)


def _check_kind(file: Tsplib) -> None:
    kind = file.kind("TSP")
    if kind not in ("TSP", "ATSP"):
        raise FormatError(f"TYPE is {kind}, not TSP: {_REFUSED.get(kind, 'that is not a travelling salesman problem')}.")
    for section in ("FIXED_EDGES", "EDGE_DATA"):
        if section in file.sections:
            raise FormatError(f"{section}_SECTION is not supported: every edge must be free to use.")


def _claims(lines: list[str]) -> bool:
    return is_tsplib(lines) and not is_routing(lines) and specifications(lines).get("TYPE") not in ("TOUR", "OP")


TSPLIB = text_format("TSPLIB", (".tsp", ".atsp"), _claims, _parse)
