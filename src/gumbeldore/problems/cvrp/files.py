"""Instances of the CVRP from CVRPLIB files. The reader is strict and executes nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.best_known import Known, fingerprint, published
from gumbeldore.io.plane import duplicates
from gumbeldore.io.text import text_format
from gumbeldore.io.tsplib import Tsplib, is_routing, is_tsplib, parse_tsplib, specifications
from gumbeldore.io.tsplib_distances import Matrix, Weights, defining, listed, path_length, places, without_places
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.cvrp.instances import KIND
from gumbeldore.problems.routes import routes
from gumbeldore.problems.vehicle_files import demands_of, depot_first

DISTANCES = "distances"
"""The array of an instance whose places are not known: from the row's node to the column's, the depot first."""

_LIMITS = {  # what would make routes infeasible that are feasible here
    "DISTANCE": "a limit on the length of routes",
    "MAX_DISTANCE": "a limit on the length of routes",
    "TIME_WINDOW": "time windows",
    "PICKUP_AND_DELIVERY": "pick-ups",
    "BACKHAUL": "backhauls",
    "LINEHAUL": "backhauls",
}
_STATED = re.compile(
    r"(?:optimal|optimum|best)(?:[ -]known)?(?: value| solution| cost)?\s*[:=]?\s*(\d{1,15}(?:\.\d+)?)", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class RoutesCost:
    """The length of all subtours by a file's distances. `nodes` says where the file has the depot and the customers."""

    weights: Weights
    nodes: NDArray[np.int64]

    def __call__(self, actions: Sequence[int]) -> float:
        ways = [self.nodes[[0, *(customer + 1 for customer in route), 0]].tolist() for route in routes(actions)]
        return math.fsum(path_length(self.weights, way) for way in ways)


def _parse(text: str, stem: str) -> list[Instance]:
    """The instance of a CVRPLIB file."""
    file = parse_tsplib(text)
    _check_kind(file)
    if without_places(file):
        return [_of_distances(file, stem)]
    points, weights, notes = places(file, symmetric=False)
    order = depot_first(file, len(points))
    arrays = {"nodes": points[order], **_loads(file, order)}
    name = file.name(stem)
    known = _known_cost(file, weights, arrays, name, stem)
    unit, scale = KIND.unit(arrays)
    return [
        Instance(
            arrays=arrays,
            unit=unit,
            scale=scale,
            name=name,
            cost=RoutesCost(weights, order),
            known=known.cost,
            known_from=known.source,
            solved=tuple([1] * (len(points) - 1)) if len(points) <= 2 else None,
            notes=(*duplicates(points), *notes, *_notes(file, order), *known.notes),
        )
    ]


def _of_distances(file: Tsplib, stem: str) -> Instance:
    """Nodes without places, for local search alone."""
    matrix = listed(file, symmetric=False)
    order, weights, name = depot_first(file, len(matrix)), Matrix(matrix), file.name(stem)
    loads = _loads(file, order)
    known = _known_cost(file, weights, loads, name, stem)
    return Instance(
        arrays={DISTANCES: matrix[order][:, order], **loads},
        unit={},
        name=name,
        cost=RoutesCost(weights, order),
        known=known.cost,
        known_from=known.source,
        solved=tuple([1] * (len(matrix) - 1)) if len(matrix) <= 2 else None,
        notes=(*_notes(file, order), *known.notes),
    )


def _loads(file: Tsplib, order: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """What the nodes ask for, and what a vehicle can take."""
    capacity = file.count("CAPACITY")
    demands = demands_of(file, capacity)[order]
    if demands[0]:
        raise FormatError(f"The demand of the depot must be 0, got {demands[0]}.")
    return {"demands": demands, "capacity": np.array(capacity)}


def _known_cost(file: Tsplib, weights: Weights, arrays: Mapping[str, NDArray[Any]], *names: str) -> Known:
    """The best known cost, if it is a published instance; otherwise what the file's comment says."""
    demands, capacity = arrays["demands"], arrays["capacity"]
    content = cvrp_fingerprint(file.text("EDGE_WEIGHT_TYPE").upper(), weights, file.listed("DEPOT"), demands, capacity)
    known = published("cvrp", content, {"nodes": len(demands)}, *names)
    stated = _STATED.search(file.specifications.get("COMMENT", ""))
    if known.cost is None and stated:
        return Known(float(stated[1]), "the file's comment", known.notes)
    return known


def cvrp_fingerprint(rule: str, weights: Weights, depots: Sequence[int], demands: ArrayLike, capacity: ArrayLike) -> str:
    return fingerprint(rule, defining(weights), depots, demands, capacity)


def _check_kind(file: Tsplib) -> None:
    kind = file.kind("CVRP")
    if kind not in ("CVRP", "VRP"):
        raise FormatError(f"TYPE is {kind}, not CVRP: other vehicle routing problems are not supported.")
    for key, what in _LIMITS.items():
        if key in file.specifications or key in file.sections:
            raise FormatError(f"The file has {what} ({key}), which is not supported.")


def _notes(file: Tsplib, order: NDArray[np.int64]) -> list[str]:
    notes = [*file.left_unread("DEMAND", "DEPOT")]
    if order[0] != 0:
        notes.append(f"The depot is node {order[0] + 1}: customers are counted in the order of the file without it.")
    if "VEHICLES" in file.specifications:
        notes.append(f"The number of vehicles ({file.specifications['VEHICLES']}) is not limited here.")
    return notes


def _claims(lines: list[str]) -> bool:
    """Files of vehicles, but for those that say that they have time windows: these are another problem's."""
    return is_tsplib(lines) and is_routing(lines) and specifications(lines).get("TYPE", "").split()[:1] != ["VRPTW"]


CVRPLIB = text_format("CVRPLIB", (".vrp", ".cvrp"), _claims, _parse)
