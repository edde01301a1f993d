"""Solutions by solvers that are not ours: for comparison, and as labels. They need `pip install "gumbeldore[solvers]"`.

Each function takes plain arrays of one instance and knows one outside library. Nothing here is trusted: whoever uses an answer
checks it with `verification`.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import GumbeldoreError, require

SCALE = 1e6  # CP-SAT and PyVRP need integer distances
LOAD_SCALE = 1000


class SolverError(GumbeldoreError):
    """An outside solver is not installed, or has found no solution."""


@dataclass(frozen=True)
class ExactTour:
    """A tour and whether the solver proved it optimal (for distances rounded to six decimals)."""

    tour: list[int]
    length: float
    optimal: bool


@dataclass(frozen=True)
class Routes:
    """Subtours that begin and end at the depot; customers count from 0 (customer c is node c + 1)."""

    routes: list[list[int]]
    length: float


@dataclass(frozen=True)
class Schedule:
    """When each operation of each job starts, and whether the solver proved the makespan optimal."""

    starts: list[list[int]]
    makespan: int
    optimal: bool


def solve_tsp(coordinates: NDArray[np.floating], seconds: float = 60.0) -> ExactTour:
    """A provably shortest tour by OR-Tools CP-SAT with a circuit constraint; fit for some dozens of cities."""
    cp_model = outside("ortools.sat.python.cp_model")
    points = np.asarray(coordinates, dtype=np.float64)
    distances = distance_matrix(points)
    model = cp_model.CpModel()
    count = len(points)
    arcs = [(i, j, model.new_bool_var("")) for i in range(count) for j in range(count) if i != j]
    model.add_circuit(arcs)
    model.minimize(sum(int(round(distances[i, j] * SCALE)) * chosen for i, j, chosen in arcs))
    solver, optimal = _solved(cp_model, model, seconds, linearization_level=2)
    successor = {i: j for i, j, chosen in arcs if solver.value(chosen)}
    tour = [0]
    while len(tour) < count:
        tour.append(successor[tour[-1]])
    length = float(distances[tour, np.roll(tour, -1)].sum())
    return ExactTour(tour, length, optimal)


def solve_tsps(instances: Sequence[NDArray[np.floating]], workers: int = 2) -> Iterator[ExactTour]:
    """`solve_tsp` for many instances, in order, in parallel processes."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(solve_tsp, instances, chunksize=4)


def approximate_tsp(coordinates: NDArray[np.floating], seconds: float = 2.0, seed: int = 0) -> ExactTour:
    """A short tour by PyVRP's iterated local search, beginning at city 0; fit for hundreds of cities, never proved optimal."""
    points = np.asarray(coordinates, dtype=np.float64)
    (customers,) = _pyvrp_routes(points, np.zeros(len(points)), 0, seconds, seed, vehicles=1)
    tour = [0, *(customer + 1 for customer in customers)]
    return ExactTour(tour, float(distance_matrix(points)[tour, np.roll(tour, -1)].sum()), False)


def solve_cvrp(
    nodes: NDArray[np.floating],
    demands: NDArray[np.integer],
    capacity: int,
    seconds: float = 2.0,
    seed: int = 0,
    solver: str = "hygese",
) -> Routes:
    """Good subtours by HGS ("hygese") or by PyVRP's iterated local search ("pyvrp"). Node 0 is the depot."""
    solvers = {"hygese": _hygese_routes, "pyvrp": _pyvrp_routes}
    require(solver in solvers, f"`solver` must be one of {', '.join(solvers)}, got {solver!r}.")
    points, load = np.asarray(nodes, dtype=np.float64), np.asarray(demands)
    if len(points) == 2 or not np.ptp(points, axis=0).any():  # HGS hangs on one customer and crashes if all is one point
        routes = [[customer] for customer in range(len(points) - 1)]
    else:
        routes = solvers[solver](points, load, int(capacity), seconds, seed)
    distances = distance_matrix(points)
    stops = [[0, *(customer + 1 for customer in route), 0] for route in routes]
    return Routes(routes, math.fsum(distances[a, b] for stop in stops for a, b in pairwise(stop)))


def solve_jssp(times: NDArray[Any], machines: NDArray[np.integer], seconds: float = 60.0) -> Schedule:
    """A short schedule by OR-Tools CP-SAT on one core: optimal within `seconds` up to about 10 jobs on 10 machines."""
    cp_model = outside("ortools.sat.python.cp_model")
    duration = np.asarray(times)
    require(
        bool((duration == np.rint(duration)).all()),
        f"CP-SAT needs integer `times`, got {duration[duration != np.rint(duration)][:1].tolist()}. Scale them to integers.",
    )
    duration, route = duration.astype(np.int64), np.asarray(machines)
    model, latest = cp_model.CpModel(), int(duration.sum())
    start = [[model.new_int_var(0, latest, "") for _ in job] for job in duration]
    end = model.new_int_var(int(duration.sum(1).max()), latest, "")
    load: dict[int, list[Any]] = {int(machine): [] for machine in route.flat}
    for job, jobs_times in enumerate(duration.tolist()):
        for index, time in enumerate(jobs_times):
            load[int(route[job, index])].append(model.new_fixed_size_interval_var(start[job][index], time, ""))
            model.add((end if index + 1 == len(jobs_times) else start[job][index + 1]) >= start[job][index] + time)
    for intervals in load.values():
        model.add_no_overlap(intervals)
    model.minimize(end)
    solver, optimal = _solved(cp_model, model, seconds)
    starts = [[int(solver.value(variable)) for variable in job] for job in start]
    makespan = max(
        begin + int(time)
        for row, times_of in zip(starts, duration, strict=True)
        for begin, time in zip(row, times_of, strict=True)
    )
    return Schedule(starts, makespan, optimal)


def distance_matrix(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean distances between all points."""
    return np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))


def outside(module: str) -> Any:
    """An optional library, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise SolverError(
            f'This needs the solver {name}, which is not installed: pip install "gumbeldore[solvers]".'
        ) from error


def _solved(cp_model: Any, model: Any, seconds: float, **parameters: int) -> tuple[Any, bool]:
    """CP-SAT's solver after its run on one core, and whether the answer is proved optimal."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SolverError(f"CP-SAT found no solution in {seconds:g} seconds ({solver.status_name(status)}). Give it more time.")
    return solver, status == cp_model.OPTIMAL


def _pyvrp_routes(
    points: NDArray[np.float64], demands: NDArray[Any], capacity: int, seconds: float, seed: int, vehicles: int | None = None
) -> list[list[int]]:
    """The routes of PyVRP's best solution, as customers from 0.

    Its penalty for an excess load is bounded, so loads are scaled up with the distances; otherwise excess would pay.
    """
    pyvrp, stop = outside("pyvrp"), outside("pyvrp.stop")
    distances = distance_matrix(points)
    distances = np.rint(distances * (SCALE / (distances.max() or 1.0))).astype(np.int64)
    loads = [LOAD_SCALE * int(demand) for demand in demands[1:]]
    data = pyvrp.ProblemData(
        locations=[pyvrp.Location(x=float(x), y=float(y)) for x, y in points],
        clients=[pyvrp.Client(location=1 + index, delivery=[load]) for index, load in enumerate(loads)],
        depots=[pyvrp.Depot(location=0)],
        vehicle_types=[pyvrp.VehicleType(num_available=vehicles or len(loads), capacity=[LOAD_SCALE * capacity])],
        distance_matrices=[distances],
        duration_matrices=[np.zeros_like(distances)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about penalties of its own search; the solution is checked anyway
        result = pyvrp.solve(data, stop=stop.MaxRuntime(seconds), seed=seed, collect_stats=False, display=False)
    if not result.is_feasible():
        raise SolverError(f"PyVRP found no feasible solution in {seconds:g} seconds. Give it more time.")
    return [[activity.idx for activity in route if activity.is_client()] for route in result.best.routes()]


def _hygese_routes(
    points: NDArray[np.float64], demands: NDArray[Any], capacity: int, seconds: float, seed: int
) -> list[list[int]]:
    """The routes of HGS, as customers from 0. Its clock counts processor time.

    Coordinates are scaled to 0 .. 1000: it wants none below 0 and works with absolute tolerances. Two routes that fit into one
    vehicle can be joined without loss, so no more vehicles are needed than twice the least number.
    """
    hygese = outside("hygese")
    if not demands.any():  # it would find nothing
        demands, capacity = np.ones_like(demands), len(demands)
    moved = points - points.min(0)
    moved *= 1000 / moved.max()
    data = {
        "x_coordinates": moved[:, 0],
        "y_coordinates": moved[:, 1],
        "demands": demands.astype(np.float64),
        "vehicle_capacity": float(capacity),
        "num_vehicles": 1 + int(2 * demands.sum() // capacity),
    }
    solver = hygese.Solver(hygese.AlgorithmParameters(timeLimit=seconds, seed=seed), verbose=False)
    return [[customer - 1 for customer in route] for route in solver.solve_cvrp(data, rounding=False).routes]
