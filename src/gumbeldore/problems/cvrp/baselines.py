"""Routes that nothing has learned: simple constructions, our own local search, outside solvers."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from gumbeldore.kits.baselines import constructive, local_search, solver
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.solver import Limit, Solved
from gumbeldore.local_search.distances import Plane
from gumbeldore.local_search.routes import RouteSearch
from gumbeldore.networks.depot import depot_tokens
from gumbeldore.problems.cvrp.experts import cvrp_by
from gumbeldore.problems.cvrp.problem import CVRP
from gumbeldore.problems.cvrp.rest import Rest
from gumbeldore.problems.cvrp.savings import savings_of
from gumbeldore.problems.routes import actions_of
from gumbeldore.solvers.ortools_routing import ortools_routes
from gumbeldore.solvers.outside import distance_matrix


def nearest_neighbour(instance: Arrays) -> list[int]:
    """On to the nearest customer whose demand still fits; back to the depot if none does."""
    distances = distance_matrix(np.asarray(instance["nodes"], dtype=np.float64))
    demands, capacity = np.asarray(instance["demands"]), int(instance["capacity"])
    distances[:, 0] = np.inf
    routes: list[list[int]] = []
    left, here = -1, 0
    for _ in range(len(demands) - 1):
        reachable = np.where(demands <= left, distances[here], np.inf)
        if not np.isfinite(reachable).any():
            routes.append([])
            left, reachable = capacity, distances[0]
        here = int(reachable.argmin())
        left -= int(demands[here])
        distances[:, here] = np.inf
        routes[-1].append(here - 1)
    return actions_of(routes)


def savings(instance: Arrays) -> list[int]:
    """Clarke and Wright (1964), parallel: a route for each customer; ends of routes are joined, the largest saving first."""
    demands, capacity = np.asarray(instance["demands"])[1:], int(instance["capacity"])
    routes = {customer: [customer] for customer in range(len(demands))}
    route_of, load = list(range(len(demands))), {customer: int(demand) for customer, demand in enumerate(demands)}
    for a, b in _by_saving(distance_matrix(np.asarray(instance["nodes"], dtype=np.float64))):
        one, other = route_of[a], route_of[b]
        first, second = routes[one], routes[other]
        if (
            one == other
            or load[one] + load[other] > capacity
            or a not in (first[0], first[-1])
            or b not in (second[0], second[-1])
        ):
            continue
        first = first if first[-1] == a else first[::-1]
        second = second if second[0] == b else second[::-1]
        routes[one], load[one] = first + second, load[one] + load.pop(other)
        del routes[other]
        for customer in second:
            route_of[customer] = one
    return actions_of(routes.values())


def _by_saving(distances: NDArray[np.float64]) -> list[list[int]]:
    """Pairs of customers that are worth joining, the best first."""
    saved = distances[1:, :1] + distances[:1, 1:] - distances[1:, 1:]
    a, b = np.triu_indices(len(saved), 1)
    order = np.argsort(-saved[a, b], kind="stable")
    order = order[saved[a, b][order] > 0]
    return np.stack([a[order], b[order]], 1).tolist()


def look_ahead(instance: Arrays) -> list[int]:
    """On to where the routes by savings that follow cost least: the pilot method (Duin and Voss 1999).

    It knows what networks with `SavingsLookAhead` know, so it shows what they add.
    """
    nodes, demands = (torch.as_tensor(np.asarray(instance[name]))[None] for name in ("nodes", "demands"))
    problem = CVRP()
    state, actions = problem.instances(nodes, demands, int(instance["capacity"])), []
    while not bool(problem.done(state).all()):
        rest = Rest.of(state, *depot_tokens(state))
        found = savings_of(rest)
        tries = ((found.on_regret, found.on_tried), (found.back_regret, found.back_tried))
        regret = torch.stack([regret.masked_fill(tried == 0, torch.inf) for regret, tried in tries])[:, 0]
        via_depot, place = divmod(int(regret.argmin()), regret.shape[1])
        actions.append(2 * (int(rest.nodes[0, place]) - 1) + via_depot)
        state = problem.step(state, torch.tensor(actions[-1:]))
    return actions


def searched(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """Savings, then strings of customers are taken out and put back, `limit.work` times per customer."""
    points, demands = Plane(np.asarray(instance["nodes"], dtype=np.float64)), np.asarray(instance["demands"])
    search = RouteSearch(points, demands, int(instance["capacity"]), seed=seed)
    search.run(work=limit.units(len(demands) - 1), seconds=limit.seconds, progress=(0.0, 1.0))
    return actions_of([node - 1 for node in route] for route in search.best)


def _cvrp_by_routing(instance: Arrays, limit: Limit, seed: int) -> Solved:
    demands, capacity = np.asarray(instance["demands"]), int(instance["capacity"])
    vehicles = min(len(demands) - 1, 1 + int(2 * demands.sum() // capacity))
    routes = ortools_routes(np.asarray(instance["nodes"], dtype=np.float64), demands, capacity, limit, vehicles)
    return Solved(actions_of(routes), float("inf"), False)


BASELINES = {
    "nearest-neighbour": constructive("on to the nearest customer that still fits", nearest_neighbour),
    "savings": constructive("Clarke and Wright's savings", savings),
    "savings-ahead": constructive("on to where the routes by savings that follow cost least", look_ahead),
    "local-search": local_search(
        "savings, then our compiled removal and reinsertion of strings", searched, 100, "removals per customer", clock=True
    ),
    "hgs": solver("hybrid genetic search, by hygese", partial(cvrp_by, "hygese"), "hygese", "iterations"),
    "pyvrp": solver("PyVRP's iterated local search", partial(cvrp_by, "pyvrp"), "pyvrp", "iterations"),
    "or-tools": solver("OR-Tools routing, guided local search", _cvrp_by_routing, "ortools", "solutions", random=False),
}
