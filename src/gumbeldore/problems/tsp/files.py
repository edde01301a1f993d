"""Instances of the TSP from TSPLIB files. Readers are strict and execute nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.best_known import Known, fingerprint, published
from gumbeldore.io.plane import duplicates, unit_square
from gumbeldore.io.text import text_format
from gumbeldore.io.tsplib import Tsplib, is_routing, is_tsplib, parse_tsplib, specifications
from gumbeldore.io.tsplib_distances import Matrix, Weights, defining, listed, places, without_places
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.tours import TourCost, of_matrix

_REFUSED = {  # what a file may be about, and why that is not solved
    "ATSP": "its distances depend on the direction; that is the problem `atsp`",
    "SOP": "an order that must be kept is not supported",
    "HCP": "a Hamiltonian cycle in a graph is another problem",
}


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
    if without_places(file):
        return [_of_distances(file, name, stem)]
    points, weights, notes = places(file)
    given, known = cities(points, name), _known_length(file, weights, name, stem)
    notes = (*given.notes, *notes, *file.left_unread(), *known.notes)
    return [replace(given, cost=TourCost(weights), known=known.cost, known_from=known.source, notes=notes)]


def _of_distances(file: Tsplib, name: str, stem: str) -> Instance:
    """Cities without places, for local search alone."""
    matrix = listed(file)
    known = _known_length(file, Matrix(matrix), name, stem)
    given, notes = of_matrix(matrix, name, for_policies=False), (*file.left_unread(), *known.notes)
    return replace(given, known=known.cost, known_from=known.source, notes=notes)


def _known_length(file: Tsplib, weights: Weights, *names: str) -> Known:
    """The optimal length, if it is a published instance."""
    rule = file.text("EDGE_WEIGHT_TYPE").upper()
    return published("tsp", tsp_fingerprint(rule, weights), {"cities": file.count("DIMENSION"), "weights": rule}, *names)


def tsp_fingerprint(rule: str, weights: Weights) -> str:
    return fingerprint(rule, defining(weights))


def _check_kind(file: Tsplib) -> None:
    kind = file.kind("TSP")
    if kind != "TSP":
        raise FormatError(f"TYPE is {kind}, not TSP: {_REFUSED.get(kind, 'that is not a travelling salesman problem')}.")
    for section in ("FIXED_EDGES", "EDGE_DATA"):
        if section in file.sections:
            raise FormatError(f"{section}_SECTION is not supported: every edge must be free to use.")


def _claims(lines: list[str]) -> bool:
    return is_tsplib(lines) and not is_routing(lines) and specifications(lines).get("TYPE") not in ("TOUR", "OP", "ATSP")


TSPLIB = text_format("TSPLIB", (".tsp", ".atsp"), _claims, _parse)
