"""Closed tours from city 0, of places or of a matrix: their length, their verification, and their files in TSPLIB's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.plane import LARGEST
from gumbeldore.io.tsplib import check_numbers, parse_tsplib
from gumbeldore.io.tsplib_distances import Matrix, Weights, path_length
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Export, Instance
from gumbeldore.kits.verdict import Verdict, permutation_fault

DISTANCES = "distances"
"""The name of the array of cities of which only the distances are known."""


@dataclass(frozen=True, eq=False)
class TourCost:
    """The length of a closed tour from city 0 by a file's distances."""

    weights: Weights

    def __call__(self, actions: Sequence[int]) -> float:
        return path_length(self.weights, [0, *actions, 0])


@dataclass(frozen=True)
class Tour:
    """A closed tour."""

    tour: list[int]  # the cities from 0, beginning with city 0


def of_matrix(matrix: NDArray[Any], name: str = "", *, for_policies: bool = True) -> Instance:
    """Cities of which only the distances are known, from the row's to the column's. The diagonal is not looked at."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise FormatError(f"A matrix of distances must have the shape (cities, cities), got {matrix.shape}.")
    values = np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix.astype(np.float64))
    if not (np.abs(values) <= LARGEST).all():
        raise FormatError(f"Distances must be finite and at most {LARGEST:g}.")
    arrays = {DISTANCES: values}
    solved = tuple(range(1, len(values))) if len(values) <= 2 else None
    return Instance(arrays, arrays if for_policies else {}, name=name, cost=TourCost(Matrix(values)), solved=solved)


def verify_by_matrix(given: Arrays, actions: Sequence[int]) -> Verdict:
    """Whether every city is visited once; the objective is minus the length."""
    matrix, tour = np.asarray(given[DISTANCES]), [0, *map(int, actions)]
    if fault := permutation_fault(tour, len(matrix), "city", "cities"):
        return Verdict.infeasible(fault)
    return Verdict(True, -fsum(float(matrix[a, b]) for a, b in zip(tour, [*tour[1:], 0], strict=True)))


def _write(given: Instance, actions: Sequence[int]) -> str:
    """A TOUR_SECTION, cities from 1."""
    tour = [0, *actions]
    length = f"COMMENT : Length {given.cost(actions):.15g}\n" if given.cost is not None else ""
    cities = "\n".join(str(city + 1) for city in tour)
    name = given.name or "tour"
    return f"NAME : {name}.tour\n{length}TYPE : TOUR\nDIMENSION : {len(tour)}\nTOUR_SECTION\n{cities}\n-1\nEOF\n"


def _read(given: Instance, text: str) -> list[int]:
    """The tour of a file, turned so that it begins at city 0."""
    file, count = parse_tsplib(text), len(next(iter(given.arrays.values())))
    kind = file.kind("TOUR")
    if kind != "TOUR":
        raise FormatError(f"TYPE is {kind}, not TOUR.")
    if "DIMENSION" in file.specifications and file.count("DIMENSION") != count:
        raise FormatError(f"DIMENSION is {file.count('DIMENSION')}, but the instance has {count} cities.")
    tour = file.listed("TOUR")
    check_numbers(tour, count, "TOUR_SECTION")
    first = tour.index(1)
    return [city - 1 for city in tour[first + 1 :] + tour[:first]]


EXPORTS = {"tour": Export(".tour", _write, _read)}
