"""Routes by OR-Tools' routing library: a first solution, then guided local search. It needs `pip install "gumbeldore[solvers]"`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.kits.solver import Limit, SolverError
from gumbeldore.solvers.outside import SCALE, distance_matrix, outside


def ortools_routes(
    points: NDArray[np.float64],
    demands: NDArray[Any],
    capacity: int,
    limit: Limit,
    vehicles: int,
    distances: NDArray[np.float64] | None = None,
) -> list[list[int]]:
    """The routes of its best solution, as customers from 0, by the given `distances` if there are any. Node 0 is the depot. It has no seed: its
    search is deterministic."""
    routing = outside("ortools.constraint_solver.pywrapcp")
    lengths = distance_matrix(points) if distances is None else distances
    lengths = np.rint(lengths * (SCALE / (lengths.max() or 1.0))).astype(np.int64)
    nodes = routing.RoutingIndexManager(len(points), vehicles, 0)
    model = routing.RoutingModel(nodes)
    model.SetArcCostEvaluatorOfAllVehicles(model.RegisterTransitMatrix(lengths.tolist()))
    if demands.any():
        load = model.RegisterUnaryTransitVector([int(demand) for demand in demands])
        model.AddDimension(load, 0, int(capacity), True, "load")
    solution = model.SolveWithParameters(_parameters(routing, limit))
    if solution is None:
        raise SolverError(f"OR-Tools routing found no solution in {limit}. Give it more time.")
    return [route for vehicle in range(vehicles) if (route := _route(nodes, model, solution, vehicle))]


def _parameters(routing: Any, limit: Limit) -> Any:
    enums = outside("ortools.constraint_solver.routing_enums_pb2")
    parameters = routing.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = enums.FirstSolutionStrategy.PATH_CHEAPEST_ARC
    parameters.local_search_metaheuristic = enums.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    if limit.seconds is not None:
        parameters.time_limit.FromMilliseconds(max(1, round(1000 * limit.seconds)))
    elif limit.work is not None:
        parameters.solution_limit = int(limit.work)
    return parameters


def _route(nodes: Any, model: Any, solution: Any, vehicle: int) -> list[int]:
    route, index = [], solution.Value(model.NextVar(model.Start(vehicle)))
    while not model.IsEnd(index):
        route.append(nodes.IndexToNode(index) - 1)
        index = solution.Value(model.NextVar(index))
    return route
