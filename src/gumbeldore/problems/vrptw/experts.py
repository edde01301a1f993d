"""Routes within time windows by PyVRP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Instance
from gumbeldore.kits.solver import Limit, Solved
from gumbeldore.problems.routes import actions_of, routes
from gumbeldore.problems.vrptw.insertion import travel_times
from gumbeldore.problems.vrptw.instances import verify
from gumbeldore.solvers.outside import LOAD_SCALE, SCALE, outside, pyvrp_solved


def vrptw_by_pyvrp(instance: Arrays, limit: Limit, seed: int) -> Solved:
    actions = actions_of(pyvrp_solved(pyvrp_data(instance), limit, seed))
    return Solved(actions, 0.0 - verify(instance, actions).objective, False)


def warm_started_pyvrp(given: Instance, starts: Sequence[Sequence[int]], limit: Limit, seed: int) -> list[int]:
    """PyVRP from the best routes."""
    return actions_of(pyvrp_solved(pyvrp_data(given.arrays), limit, seed, routes(starts[0])))


def pyvrp_data(instance: Arrays) -> Any:
    """The instance in whole numbers, on the safe side: ways and service a little longer, windows a little narrower.

    Distances that are cut down to parts of a unit are whole numbers of these parts, and nothing is rounded.
    """
    pyvrp, exact = outside("pyvrp"), travel_times(instance)
    parts = int(instance["parts"])
    factor = float(parts) if parts else SCALE / max(float(exact.max()), 1e-300)
    windows, service = (np.asarray(instance[name], dtype=np.float64) * factor for name in ("windows", "service"))
    ways, takes, early = _up(exact * factor), _up(service), _up(windows[:, 0])
    late = np.maximum(-_up(-windows[:, 1]), early)
    loads = [LOAD_SCALE * int(demand) for demand in instance["demands"]]
    depot = {"tw_early": int(early[0]), "tw_late": int(late[0])}
    return pyvrp.ProblemData(
        locations=[pyvrp.Location(x=float(x), y=float(y)) for x, y in instance["nodes"]],
        clients=[
            pyvrp.Client(
                node, [loads[node]], service_duration=int(takes[node]), tw_early=int(early[node]), tw_late=int(late[node])
            )
            for node in range(1, len(loads))
        ],
        depots=[pyvrp.Depot(0, **depot)],
        vehicle_types=[pyvrp.VehicleType(len(loads) - 1, [LOAD_SCALE * int(instance["capacity"])], **depot)],
        distance_matrices=[ways],
        duration_matrices=[ways],
    )


def _up(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The next whole number, but for what rounding did to one."""
    nearest = np.rint(values)
    near = np.abs(values - nearest) <= 1e-9 * np.maximum(1.0, np.abs(values))
    return np.where(near, nearest, np.ceil(values)).astype(np.int64)


EXPERTS = {"pyvrp": vrptw_by_pyvrp}
WARM_STARTED = {"pyvrp": warm_started_pyvrp}
