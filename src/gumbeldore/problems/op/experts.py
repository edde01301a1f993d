"""Tours by an outside solver."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import Limit, Solved, SolverError
from gumbeldore.problems.op.instances import DISTANCES
from gumbeldore.solvers.outside import distance_matrix, outside

UNITS = 1_000_000
"""The budget in whole numbers, where distances are not whole."""
PRIZES = 1_000
"""The largest prize in units of a mean way to a customer: a prize counts more than ways, but an excess costs more than any prize."""


def op_by_pyvrp(instance: Arrays, limit: Limit, seed: int, start: Sequence[int] | None = None) -> Solved:
    """PyVRP with one vehicle, a limit on its way, and clients that need not be visited but bring a prize."""
    pyvrp, stop = outside("pyvrp"), outside("pyvrp.stop")
    prizes = np.asarray(instance["prizes"], dtype=np.float64)
    ways, budget = whole(instance)
    worth = np.rint(prizes * (PRIZES * budget / len(prizes) / max(prizes[1:].max(), 1e-300))).astype(np.int64)
    data = pyvrp.ProblemData(
        locations=[pyvrp.Location(x=float(x), y=float(y)) for x, y in np.asarray(instance["nodes"], dtype=np.float64)],
        clients=[pyvrp.Client(location=node, prize=int(worth[node]), required=False) for node in range(1, len(prizes))],
        depots=[pyvrp.Depot(location=0)],
        vehicle_types=[pyvrp.VehicleType(num_available=1, max_distance=budget)],
        distance_matrices=[ways],
        duration_matrices=[np.zeros_like(ways)],
    )
    first = None if start is None else pyvrp.Solution(data, [[node - 1 for node in start if node]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about penalties of its own search; the solution is checked anyway
        end = stop.MaxIterations(int(limit.work)) if limit.work is not None else stop.MaxRuntime(limit.seconds)
        result = pyvrp.solve(data, stop=end, seed=seed, collect_stats=False, display=False, initial_solution=first)
    if not result.is_feasible():
        raise SolverError(f"PyVRP found no feasible solution in {limit}. Give it more time.")
    tour = [1 + activity.idx for route in result.best.routes() for activity in route if activity.is_client()]
    return Solved([*tour, 0], -float(prizes[[0, *tour]].sum()), False)


def whole(instance: Arrays) -> tuple[NDArray[np.int64], int]:
    """Distances and budget in whole numbers: no tour within the budget that was not."""
    budget: Any = float(instance["budget"])
    ways = instance.get(DISTANCES)
    if ways is None:
        ways = distance_matrix(np.asarray(instance["nodes"], dtype=np.float64))
    elif (ways == np.rint(ways)).all():
        return ways.astype(np.int64), int(budget)
    factor = UNITS / (budget or 1.0)
    return np.ceil(np.asarray(ways, dtype=np.float64) * factor).astype(np.int64), int(np.floor(budget * factor))


def warm_started_pyvrp(given: Instance, starts: Sequence[Sequence[int]], limit: Limit, seed: int) -> list[int]:
    """PyVRP from the best tour."""
    return op_by_pyvrp(given.arrays, limit, seed, starts[0]).actions


EXPERTS = {"pyvrp": op_by_pyvrp}
WARM_STARTED = {"pyvrp": warm_started_pyvrp}
