"""Tours as TSPLIB files."""

from __future__ import annotations

from collections.abc import Sequence

from gumbeldore.errors import FormatError
from gumbeldore.io.tsplib import check_numbers, parse_tsplib
from gumbeldore.kits.kit import Export, Instance


def _write(given: Instance, actions: Sequence[int]) -> str:
    """A TOUR_SECTION, cities from 1."""
    tour = [0, *actions]
    length = f"COMMENT : Length {given.cost(actions):.15g}\n" if given.cost is not None else ""
    cities = "\n".join(str(city + 1) for city in tour)
    name = given.name or "tour"
    return f"NAME : {name}.tour\n{length}TYPE : TOUR\nDIMENSION : {len(tour)}\nTOUR_SECTION\n{cities}\n-1\nEOF\n"


def read(given: Instance, text: str) -> list[int]:
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


EXPORTS = {"tour": Export(".tour", _write, read)}
