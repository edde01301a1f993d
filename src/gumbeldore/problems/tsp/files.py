"""Instances of the TSP from TSPLIB files. Readers are strict and execute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.best_known import best_known
from gumbeldore.io.plane import duplicates, unit_square
from gumbeldore.io.text import text_format
from gumbeldore.io.tsplib import Tsplib, is_routing, is_tsplib, parse_tsplib, specifications
from gumbeldore.io.tsplib_distances import Weights, path_length, places
from gumbeldore.kits.kit import Instance

REFUSED = {  # what a file may be about, and why that is not solved
    "ATSP": "asymmetric distances are not supported",
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


def parse(text: str, stem: str) -> list[Instance]:
    """The instance of a TSPLIB file."""
    file = parse_tsplib(text)
    _check_kind(file)
    points, weights, notes = places(file)
    name = file.name(stem)
    known, source = best_known("tsp", {"cities": len(points), "weights": file.text("EDGE_WEIGHT_TYPE").upper()}, name, stem)
    given = cities(points, name)
    return [replace(given, cost=TourCost(weights), known=known, known_from=source, notes=given.notes + notes)]


def _check_kind(file: Tsplib) -> None:
    kind = file.kind("TSP")
    if kind != "TSP":
        raise FormatError(f"TYPE is {kind}, not TSP: {REFUSED.get(kind, 'that is not a travelling salesman problem')}.")
    for section in ("FIXED_EDGES", "EDGE_DATA"):
        if section in file.sections:
            raise FormatError(f"{section}_SECTION is not supported: every edge must be free to use.")


def claims(lines: list[str]) -> bool:
    return is_tsplib(lines) and not is_routing(lines) and specifications(lines).get("TYPE") != "TOUR"


TSPLIB = text_format("TSPLIB", (".tsp",), claims, parse)
