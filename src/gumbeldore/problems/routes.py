"""Routes of vehicles that begin and end at a depot: as actions, and as CVRPLIB solutions. Action 2 c + v: customer c next, v = 1 via the depot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from gumbeldore.errors import FormatError
from gumbeldore.io.text import integer, shown
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Export, Instance
from gumbeldore.kits.verdict import Verdict

_ROUTE = re.compile(r"route\s*#?\s*\d+\s*:?(.*)", re.IGNORECASE)


def split_routes(order: Sequence[int], flags: Sequence[bool]) -> list[list[int]]:
    """The customers of each subtour."""
    routes: list[list[int]] = []
    for customer, begins in zip(order, flags, strict=True):
        if begins:
            routes.append([])
        routes[-1].append(customer)
    return routes


def routes(actions: Sequence[int]) -> list[list[int]]:
    """The customers of each subtour."""
    return split_routes([action // 2 for action in actions], [action % 2 == 1 for action in actions])


def actions_of(routes: Iterable[Sequence[int]]) -> list[int]:
    """Customers in order; the first of each route is reached via the depot."""
    return [2 * customer + (place == 0) for route in routes for place, customer in enumerate(route)]


def read(given: Instance, text: str) -> list[int]:
    """The routes of a file. Depots at the ends of a route (0) may be written."""
    actions, customers = [], len(given.arrays["demands"]) - 1
    for place, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not (match := _ROUTE.fullmatch(line)):
            continue
        stops = [integer(word, f"Each customer in line {place}") for word in match[1].split()]
        stops = stops[1:] if stops[:1] == [0] else stops
        stops = stops[:-1] if stops[-1:] == [0] else stops
        for stop in stops:
            if not 1 <= stop <= customers:
                raise FormatError(f"Line {place} names customer {stop}, but customers are numbered 1 .. {customers}.")
        actions += [2 * (stop - 1) + (number == 0) for number, stop in enumerate(stops)]
    if not actions and customers:
        raise FormatError(f"There is no line `Route #1: ...`, the text begins with {shown(text.strip())}.")
    return actions


def route_exports(verify: Callable[[Arrays, Sequence[int]], Verdict]) -> dict[str, Export]:
    """CVRPLIB's format of solutions."""

    def write(given: Instance, actions: Sequence[int]) -> str:
        """A line for each route, customers from 1 (the depot is 0), and the cost."""
        cost = given.cost(actions) if given.cost is not None else 0.0 - verify(given.arrays, actions).objective
        lines = [f"Route #{number}: {' '.join(str(c + 1) for c in route)}" for number, route in enumerate(routes(actions), 1)]
        return "\n".join([*lines, f"Cost {cost:.15g}", ""])

    return {"sol": Export(".sol", write, read)}
