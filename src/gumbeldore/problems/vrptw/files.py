"""Instances of vehicle routing with time windows from text files, and back. Readers execute nothing.

Solomon's layout, which Gehring and Homberger use, too: a name, `VEHICLE` with the number and the capacity of vehicles, `CUSTOMER` with a row for the depot (0)
and each customer: number, x, y, demand, ready time, due date, service time. Distances are exact, as in SINTEF's tables. A line `DECIMALS 1` before
`CUSTOMER` cuts them down to one decimal, as the DIMACS challenge and CVRPLIB do.

VRPLIB's layout, `TYPE : VRPTW`: `EUC_2D` means cut down to one decimal there, the convention of its public files; `EXACT_2D` exact; `FLOOR_2D` cut down to
whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError, require
from gumbeldore.io.best_known import fingerprint, published
from gumbeldore.io.plane import check_points, duplicates
from gumbeldore.io.text import integer, is_number, number, shown, text_format
from gumbeldore.io.tsplib import Tsplib, check_numbers, is_tsplib, parse_tsplib, specifications
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.vehicle_files import demands_of, depot_first

COLUMNS = ("customer", "x", "y", "demand", "ready time", "due date", "service time")
DECIMALS = 6  # at most
LATEST = 1e9  # times; sums stay exact enough
RULES = {"EUC_2D": 10, "EXACT_2D": 0, "FLOOR_2D": 1}
REFUSED = {
    "VEHICLES_DEPOT": "several depots",
    "BACKHAUL": "backhauls",
    "LINEHAUL": "backhauls",
    "PRIZE": "prizes",
    "RELEASE_TIME": "release times",
    "DISTANCE": "a limit on the length of routes",
    "MAX_DISTANCE": "a limit on the length of routes",
    "VEHICLES_MAX_DURATION": "a limit on the duration of routes",
    "VEHICLES_MAX_DISTANCE": "a limit on the length of routes",
}


def parse_solomon(text: str, stem: str) -> list[Instance]:
    """The instance of a file in Solomon's layout."""
    lines = [(place, line.split()) for place, line in enumerate(text.splitlines(), 1) if line.strip()]
    begin = next((index for index, (_, words) in enumerate(lines) if words[0].upper().startswith("CUSTOMER")), None)
    if begin is None:
        raise FormatError("There is no line CUSTOMER.")
    vehicles, capacity, parts = _vehicles(lines[:begin])
    rows = [(place, words) for place, words in lines[begin + 1 :] if is_number(words[0]) or len(words) == len(COLUMNS)]
    if rows and not is_number(rows[0][1][0]):
        rows = rows[1:]  # names of columns
    title = lines[0][1]
    name = title[0] if len(title) == 1 and title[0].upper() != "VEHICLE" else stem
    table = _table(rows)
    arrays = {
        "nodes": table[:, :2],
        "demands": _whole(table[:, 2]),
        "capacity": np.array(capacity),
        "windows": table[:, 3:5],
        "service": table[:, 5],
        "parts": np.array(parts),
    }
    return [_instance(arrays, vehicles, name, stem)]


def _vehicles(lines: Sequence[tuple[int, list[str]]]) -> tuple[int, int, int]:
    """How many there are, what they can take, and to how many parts distances are cut down."""
    numbers, parts = None, 0
    for place, words in lines:
        if words[0].upper() == "DECIMALS":
            decimals = integer(words[1], "DECIMALS") if len(words) == 2 else -1
            if not 0 <= decimals <= DECIMALS:
                raise FormatError(
                    f"Line {place} must be DECIMALS and a number in 0 .. {DECIMALS}, got {shown(' '.join(words))}."
                )
            parts = 10**decimals
        elif len(words) == 2 and all(map(is_number, words)):
            numbers = [
                integer(word, what) for word, what in zip(words, ("The number of vehicles", "The capacity"), strict=True)
            ]
    if numbers is None:
        raise FormatError("Below VEHICLE there must be a line with the number and the capacity of vehicles.")
    if numbers[1] < 1:
        raise FormatError(f"The capacity must be at least 1, got {numbers[1]}.")
    return numbers[0], numbers[1], parts


def _table(rows: Sequence[tuple[int, list[str]]]) -> NDArray[np.float64]:
    """All columns but the first, in the order of the customers."""
    if len(rows) < 2:
        raise FormatError(f"Below CUSTOMER there must be a row for the depot and one for each customer, got {len(rows)} rows.")
    for place, words in rows:
        if len(words) != len(COLUMNS):
            raise FormatError(f"Line {place} must have {len(COLUMNS)} numbers ({', '.join(COLUMNS)}), got {len(words)}.")
    numbers = [integer(words[0], f"The customer in line {place}") + 1 for place, words in rows]
    check_numbers(numbers, len(rows), "CUSTOMER (rows counted from 1, the depot)")
    table = np.empty((len(rows), len(COLUMNS) - 1))
    for node, (place, words) in zip(numbers, rows, strict=True):
        table[node - 1] = [
            number(word, f"The {what} in line {place}") for word, what in zip(words[1:], COLUMNS[1:], strict=True)
        ]
    return table


def _whole(demands: NDArray[np.float64]) -> NDArray[np.int64]:
    wrong = ~((demands == np.floor(demands)) & (demands >= 0) & (demands <= 2**53))
    if wrong.any():
        node = int(wrong.argmax())
        raise FormatError(f"The demand of customer {node} must be an integer of at least 0, got {demands[node]:g}.")
    return demands.astype(np.int64)


def parse_vrplib(text: str, stem: str) -> list[Instance]:
    """The instance of a file in VRPLIB's layout."""
    file = parse_tsplib(text)
    if (kind := file.kind("VRPTW")) != "VRPTW":
        raise FormatError(f"TYPE is {kind}, not VRPTW.")
    for key, what in REFUSED.items():
        if key in file.specifications or key in file.sections:
            raise FormatError(f"The file has {what} ({key}), which is not supported.")
    rule = file.text("EDGE_WEIGHT_TYPE").upper()
    if rule not in RULES:
        raise FormatError(f"EDGE_WEIGHT_TYPE {rule} is not supported with time windows, only {', '.join(RULES)}.")
    points = file.rows("NODE_COORD", 2)
    order, capacity = depot_first(file, len(points)), file.count("CAPACITY")
    windows = file.rows("TIME_WINDOW", 2)[order]
    arrays = {
        "nodes": points[order],
        "demands": demands_of(file, capacity)[order],
        "capacity": np.array(capacity),
        "windows": windows,
        "service": _service(file, len(points), order),
        "parts": np.array(RULES[rule]),
    }
    vehicles = file.count("VEHICLES") if "VEHICLES" in file.specifications else 0
    notes = (
        ()
        if order[0] == 0
        else (f"The depot is node {order[0] + 1}: customers are counted in the order of the file without it.",)
    )
    unread = file.left_unread("DEMAND", "DEPOT", "TIME_WINDOW", "SERVICE_TIME")
    return [_instance(arrays, vehicles, file.name(stem), stem, (*notes, *unread))]


def _service(file: Tsplib, count: int, order: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same for all customers, or a section."""
    if "SERVICE_TIME" in file.sections:
        return file.rows("SERVICE_TIME", 1)[order, 0]
    service = np.full(count, number(file.specifications.get("SERVICE_TIME", "0"), "SERVICE_TIME"))
    service[0] = 0.0
    return service


def _instance(arrays: Arrays, vehicles: int, name: str, stem: str, notes: tuple[str, ...] = ()) -> Instance:
    _check(arrays)
    known = published("vrptw", vrptw_fingerprint(arrays), {"nodes": len(arrays["nodes"])}, name, stem)
    if vehicles:
        notes = (*notes, f"The number of vehicles ({vehicles}) is not limited here.")
    return Instance(
        arrays,
        arrays,
        name=name,
        known=known.cost,
        known_from=known.source,
        notes=(*duplicates(arrays["nodes"]), *notes, *known.notes),
    )


def vrptw_fingerprint(arrays: Arrays) -> str:
    return fingerprint("VRPTW", *(arrays[name] for name in ("nodes", "demands", "capacity", "windows", "service", "parts")))


def _check(arrays: Arrays) -> None:
    """What a file may hold and a problem refuses, in the words of files."""
    check_points(arrays["nodes"])
    windows, service, demands, capacity = (arrays[name] for name in ("windows", "service", "demands", "capacity"))
    times = np.concatenate([windows, service[:, None]], 1)
    for node, row in enumerate(times):
        if not (np.abs(row) <= LATEST).all():  # also a NaN
            raise FormatError(
                f"Times of node {node} must be numbers of at most {LATEST:g} in size, got {', '.join(f'{t:g}' for t in row)}."
            )
        if row[0] > row[1] or row[2] < 0:
            raise FormatError(
                f"Node {node} must close after it opens and be served in no negative time, got {row[0]:g} .. {row[1]:g} and {row[2]:g}."
            )
        if demands[node] > capacity:
            raise FormatError(f"The demand of node {node} is {demands[node]}, more than the capacity {int(capacity)}.")
    if demands[0] or service[0]:
        raise FormatError(f"The demand and the service time of the depot must be 0, got {demands[0]} and {service[0]:g}.")
    away = np.sqrt(np.square(arrays["nodes"] - arrays["nodes"][0]).sum(1))
    away = np.floor(away * parts) / parts if (parts := int(arrays["parts"])) else away
    begin, closes = np.maximum(windows[:, 0], windows[0, 0] + away), windows[0, 1]
    late = (begin > windows[:, 1]) | (begin + service + away > closes)
    late[0] = False
    if late.any():
        node = int(late.argmax())
        raise FormatError(
            f"Customer {node} cannot be served in time by any vehicle: service can begin at {begin[node]:g} at the earliest."
        )


def write_solomon(instance: Arrays, name: str = "instance") -> str:
    """The text of a file in Solomon's layout."""
    parts, vehicles = int(instance["parts"]), len(instance["nodes"]) - 1
    require(
        parts in (0, *(10**n for n in range(DECIMALS + 1))), f"`parts` must be 0 or a power of ten to be written, got {parts}."
    )
    decimals = [f"DECIMALS {len(str(parts)) - 1}", ""] if parts else []
    head = [name, "", *decimals, "VEHICLE", "NUMBER     CAPACITY", f"{vehicles} {int(instance['capacity'])}", ""]
    titles = ["CUSTOMER", "CUST NO.  XCOORD.  YCOORD.  DEMAND  READY TIME  DUE DATE  SERVICE TIME", ""]
    columns = (instance["nodes"], instance["demands"][:, None], instance["windows"], instance["service"][:, None])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = [" ".join([str(node), *(_written(value) for part in row for value in part)]) for node, row in enumerate(rows)]
    return "\n".join([*head, *titles, *lines, ""])


def _written(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def claims_solomon(lines: list[str]) -> bool:
    words = [line.strip().upper() for line in lines[:40]]
    return "VEHICLE" in words and any(re.match(r"CUSTOMER\b", line) for line in words)


def claims_vrplib(lines: list[str]) -> bool:
    return is_tsplib(lines) and specifications(lines).get("TYPE", "").split()[:1] == ["VRPTW"]


SOLOMON = text_format("Solomon text", (".txt", ".vrptw"), claims_solomon, parse_solomon)
VRPLIB = text_format("VRPLIB with time windows", (".vrp",), claims_vrplib, parse_vrplib)
