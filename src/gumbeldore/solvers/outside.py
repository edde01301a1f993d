"""Solvers that are not ours: for labels and for comparison. They need `pip install "gumbeldore[solvers]"`.

Nothing they say is trusted: whoever uses an answer checks it with the problem's verifier.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.kits.solver import Limit, SolverError

SCALE = 1e6  # CP-SAT and PyVRP need integer distances
LOAD_SCALE = 1000
_PATIENCE = 0.1  # seconds between two looks whether somebody pressed Ctrl-C


def outside(module: str) -> Any:
    """An optional library, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise SolverError(
            f'This needs the solver {name}, which is not installed: pip install "gumbeldore[solvers]".'
        ) from error


def distance_matrix(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean distances between all points."""
    return np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))


def cp_sat(cp_model: Any, model: Any, limit: Limit, **parameters: int) -> tuple[Any, bool]:
    """CP-SAT's solver after its run on one core, and whether the answer is proved optimal."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if limit.seconds is not None:
        solver.parameters.max_time_in_seconds = limit.seconds
    else:
        solver.parameters.max_deterministic_time = limit.work
    solver.parameters.catch_sigint_signal = False  # it would take Python's own handler away, for good
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    status = _interruptible(solver, model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SolverError(f"CP-SAT found no solution in {limit} ({solver.status_name(status)}). Give it more time.")
    return solver, status == cp_model.OPTIMAL


def _interruptible(solver: Any, model: Any) -> Any:
    """CP-SAT in a thread of its own, so that Ctrl-C ends it at once."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(solver.solve, model)
        try:
            while not wait([future], _PATIENCE).done:
                pass
            return future.result()
        except BaseException:
            solver.stop_search()
            raise


def pyvrp_routes(
    points: NDArray[np.float64],
    demands: NDArray[Any],
    capacity: int,
    limit: Limit,
    seed: int,
    vehicles: int | None = None,
    distances: NDArray[np.float64] | None = None,
    start: Sequence[Sequence[int]] | None = None,
) -> list[list[int]]:
    """The routes of PyVRP's best solution, as customers from 0. It goes by the given `distances`, and from the routes of `start`.

    Its penalty for an excess load is bounded, so loads are scaled up with the distances; otherwise excess would pay.
    """
    pyvrp = outside("pyvrp")
    matrix = _integers(distance_matrix(points) if distances is None else distances)
    loads = [LOAD_SCALE * int(demand) for demand in demands[1:]]
    data = pyvrp.ProblemData(
        locations=[pyvrp.Location(x=float(x), y=float(y)) for x, y in points],
        clients=[pyvrp.Client(location=1 + index, delivery=[load]) for index, load in enumerate(loads)],
        depots=[pyvrp.Depot(location=0)],
        vehicle_types=[pyvrp.VehicleType(num_available=vehicles or len(loads), capacity=[LOAD_SCALE * capacity])],
        distance_matrices=[matrix],
        duration_matrices=[np.zeros_like(matrix)],
    )
    return pyvrp_solved(data, limit, seed, start)


def pyvrp_solved(data: Any, limit: Limit, seed: int, start: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
    """The routes of PyVRP's best solution of its own kind of data, as clients from 0."""
    pyvrp, stop = outside("pyvrp"), outside("pyvrp.stop")
    first = None if start is None else pyvrp.Solution(data, [list(route) for route in start])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about penalties of its own search; the solution is checked anyway
        end = stop.MaxIterations(int(limit.work)) if limit.work is not None else stop.MaxRuntime(limit.seconds)
        result = pyvrp.solve(data, stop=end, seed=seed, collect_stats=False, display=False, initial_solution=first)
    if not result.is_feasible():
        raise SolverError(f"PyVRP found no feasible solution in {limit}. Give it more time.")
    return [[activity.idx for activity in route if activity.is_client()] for route in result.best.routes()]


def _integers(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Distances up to about `SCALE`; those that are integers already keep their ratios."""
    factor = SCALE / (distances.max() or 1.0)
    if factor >= 1 and (distances == np.rint(distances)).all():
        factor = np.floor(factor)
    return np.rint(distances * factor).astype(np.int64)
