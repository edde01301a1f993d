"""Tours that collect prizes as text: OPLib's format of solutions."""

from __future__ import annotations

from collections.abc import Sequence

from gumbeldore.errors import FormatError
from gumbeldore.io.tsplib import parse_tsplib
from gumbeldore.kits.kit import Export, Instance
from gumbeldore.problems.op.instances import DISTANCES, verify
from gumbeldore.problems.op.verify import tour_length


def write(given: Instance, actions: Sequence[int]) -> str:
    """Nodes from 1, the depot first, as the file numbers them."""
    numbers = file_numbers(given)
    stops = [numbers[0], *(numbers[node] for node in actions if node)]
    arrays = given.arrays
    prize = verify(arrays, actions).objective
    length = tour_length(arrays["nodes"].tolist(), list(actions), arrays.get(DISTANCES))
    lines = [
        f"NAME : {given.name or 'tour'}",
        "TYPE : OP",
        f"DIMENSION : {len(numbers)}",
        f"COST_LIMIT : {float(arrays['budget']):.15g}",
        f"ROUTE_NODES : {len(stops)}",
        f"ROUTE_SCORE : {prize:.15g}",
        f"ROUTE_COST : {length:.15g}",
        "NODE_SEQUENCE_SECTION",
        *map(str, stops),
        "-1",
        "DEPOT_SECTION",
        str(numbers[0]),
        "-1",
        "EOF",
        "",
    ]
    return "\n".join(lines)


def read(given: Instance, text: str) -> list[int]:
    """The tour of such a file, which may begin anywhere on it."""
    numbers = file_numbers(given)
    places = {number: node for node, number in enumerate(numbers)}
    stops = parse_tsplib(text).listed("NODE_SEQUENCE")
    for stop in stops:
        if stop not in places:
            raise FormatError(f"NODE_SEQUENCE_SECTION names node {stop}, but nodes are numbered 1 .. {len(numbers)}.")
    nodes = [places[stop] for stop in stops]
    if 0 not in nodes:
        raise FormatError(f"NODE_SEQUENCE_SECTION must pass the depot, node {numbers[0]}.")
    begin = nodes.index(0)
    return [*nodes[begin + 1 :], *nodes[: begin + 1]]


def file_numbers(given: Instance) -> list[int]:
    """How the file numbers our nodes; from 1 where there is no file."""
    order = getattr(given.cost, "nodes", None)
    return [1 + int(node) for node in (range(len(given.arrays["prizes"])) if order is None else order)]


EXPORTS = {"sol": Export(".sol", write, read)}
