"""Instances of the orienteering problem from OPLib files: TSPLIB with a `COST_LIMIT` and a `NODE_SCORE_SECTION`. The reader executes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.io.best_known import Known, fingerprint, published
from gumbeldore.io.plane import duplicates
from gumbeldore.io.text import number, text_format
from gumbeldore.io.tsplib import Tsplib, is_tsplib, parse_tsplib, section_name, specifications
from gumbeldore.io.tsplib_distances import Matrix, Places, Weights, defining, listed, places, without_places
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.op.instances import DISTANCES, KIND

LARGEST_PRIZE = 1e12
EXACT = 2**24
"""Whole numbers up to here are numbers of 32 bits."""
NO_PLACES = ("All that is known are distances: local search goes by them; policies go by coordinates and are not asked.",)


@dataclass(frozen=True, eq=False)
class TourPrize:
    """Minus what a tour collects, the depot's prize among it. `weights` are the file's distances, `nodes` says where the file has the depot and the customers."""

    prizes: NDArray[np.float64]
    weights: Weights
    nodes: NDArray[np.int64]

    def __call__(self, actions: Sequence[int]) -> float:
        return 0.0 - math.fsum(self.prizes[list(actions)].tolist())


def parse(text: str, stem: str) -> list[Instance]:
    """The instance of an OPLib file."""
    file = parse_tsplib(text)
    kind = file.kind("OP")
    if kind != "OP":
        raise FormatError(f"TYPE is {kind}, not OP.")
    seen = not without_places(file)
    points, weights, notes = (
        places(file) if seen else Places(np.zeros((file.count("DIMENSION"), 2)), Matrix(listed(file)), NO_PLACES)
    )
    order = _depot_first(file, len(points))
    budget, prizes = _budget(file), _prizes(file)[order]
    arrays = {"nodes": points[order], "prizes": prizes, "budget": np.array(budget), DISTANCES: ways(weights, order)}
    name = file.name(stem)
    rule = file.text("EDGE_WEIGHT_TYPE").upper()
    known = known_prize(op_fingerprint(rule, weights, file.listed("DEPOT"), prizes, budget), len(points), stem, name)
    unit, scale = KIND.unit(arrays)
    extra = (f"The depot is node {order[0] + 1}: nodes are counted in the order of the file without it.",) if order[0] else ()
    return [
        Instance(
            arrays=arrays,
            unit=unit if seen else {},
            scale=scale,
            name=known.name or (stem if name in stem else name),  # files of four generations have the name of their TSP
            cost=TourPrize(prizes, weights, order),
            known=None if known.cost is None else -known.cost,
            known_from=known.source.replace("table of best known values", "EA4OP's value"),
            notes=(*(duplicates(points) if seen else ()), *notes, *extra, *known.notes),
        )
    ]


def known_prize(content: str, count: int, *names: str) -> Known:
    """The best known sum of prizes, if it is a published instance."""
    return published("op", content, {"nodes": count}, *names)


def op_fingerprint(rule: str, weights: Weights, depots: Sequence[int], prizes: NDArray[np.float64], budget: float) -> str:
    return fingerprint(rule, defining(weights), depots, prizes, budget)


def ways(weights: Weights, order: NDArray[np.int64]) -> NDArray[Any]:
    """The distances between all nodes, row by row, in half the memory where they are whole and fit."""
    matrix: NDArray[Any] = np.empty((len(order), len(order)), dtype=np.float32)
    for place, node in enumerate(order):
        row = weights(np.full_like(order, node), order)
        if not (row >= 0).all():
            raise FormatError(f"Distances must be at least 0, got {row.min():g}.")
        if matrix.dtype == np.float32 and not ((row == np.rint(row)) & (row < EXACT)).all():
            matrix = matrix.astype(np.float64)
        matrix[place] = row
    return matrix


def _depot_first(file: Tsplib, count: int) -> NDArray[np.int64]:
    """The nodes from 0 in our order: the depot, then the others as in the file."""
    depots = file.listed("DEPOT")
    if len(depots) != 1:
        raise FormatError(f"DEPOT_SECTION must name one depot, got {len(depots)}.")
    if not 1 <= depots[0] <= count or count < 2:
        raise FormatError(
            f"DEPOT_SECTION names node {depots[0]}, but nodes are numbered 1 .. {count}, and there must be two or more."
        )
    depot = depots[0] - 1
    return np.array([depot, *(node for node in range(count) if node != depot)])


def _budget(file: Tsplib) -> float:
    budget = number(file.text("COST_LIMIT"), "COST_LIMIT")
    if not 0 <= budget <= 1e15:
        raise FormatError(f"COST_LIMIT must be at least 0 and finite, got {budget:g}.")
    return budget


def _prizes(file: Tsplib) -> NDArray[np.float64]:
    prizes = file.rows("NODE_SCORE", 1)[:, 0]
    for node, prize in enumerate(prizes.tolist(), 1):
        if not 0 <= prize <= LARGEST_PRIZE:  # also a NaN
            raise FormatError(f"The score of node {node} must be in 0 .. {LARGEST_PRIZE:g}, got {prize:g}.")
    return prizes


def claims(lines: list[str]) -> bool:
    if not is_tsplib(lines):
        return False
    keys = specifications(lines)
    return keys.get("TYPE", "").split()[:1] == ["OP"] or "COST_LIMIT" in keys or "NODE_SCORE" in map(section_name, lines)


OPLIB = text_format("OPLib", (".oplib",), claims, parse)
