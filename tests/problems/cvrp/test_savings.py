"""What a CVRP network is told of the savings heuristic, and of what is left to do."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
import torch
from routing import partial
from torch import Tensor

from gumbeldore.local_search.compiling import compiled
from gumbeldore.networks.depot import depot_tokens
from gumbeldore.problems import CVRP
from gumbeldore.problems.cvrp import savings
from gumbeldore.problems.cvrp.baselines import look_ahead
from gumbeldore.problems.cvrp.baselines import savings as by_savings
from gumbeldore.problems.cvrp.problem import CVRPState
from gumbeldore.problems.cvrp.rest import Rest
from gumbeldore.problems.cvrp.savings import saving_features, savings_of

NEXT, MINE, END, LOAD = range(4)


def features(state: CVRPState) -> tuple[Tensor, Tensor]:
    """By token, and which nodes these are."""
    order, blocked = depot_tokens(state)
    return saving_features(Rest.of(state, order, blocked), torch.float32), order


def test_ends_and_loads_are_those_of_the_heuristic() -> None:
    problem = CVRP(20, capacity=30)
    state = problem.generate(20, generator=torch.Generator().manual_seed(0))
    found, order = features(state)
    assert torch.equal(order, torch.arange(21).expand(20, -1))
    for row in range(20):
        nodes, demands = state.nodes[row], state.demands[row]
        actions = by_savings({"nodes": nodes.numpy(), "demands": demands.numpy(), "capacity": 30})
        routes: list[list[int]] = []
        for action in actions:
            if action % 2:
                routes.append([])
            routes[-1].append(action // 2 + 1)
        for route in routes:
            load = demands[route].sum().item() / 30
            assert found[row, route, LOAD].tolist() == pytest.approx([load] * len(route))
            ends = {route[0], route[-1]}
            assert [bool(end) for end in found[row, route, END]] == [node in ends for node in route]
    assert not bool(found[..., NEXT].any())  # from the depot it could go anywhere


def test_following_the_heuristic_from_step_to_step_leads_to_its_routes() -> None:
    """Whoever has joined a route before does so again with what is left of it."""
    problem = CVRP(12, capacity=20)
    state = problem.generate(16, generator=torch.Generator().manual_seed(1))
    expected = [
        by_savings({"nodes": state.nodes[row].numpy(), "demands": state.demands[row].numpy(), "capacity": 20})
        for row in range(16)
    ]
    length = torch.stack([_length(problem, state.rows(torch.tensor([row])), actions) for row, actions in enumerate(expected)])
    while not bool(problem.done(state).all()):
        found, order = features(state)
        open_ = torch.ones_like(order, dtype=torch.bool).scatter(1, torch.zeros_like(order[:, :1]), False)
        open_ &= ~torch.nn.functional.pad(state.visited, (1, 0)).gather(1, order)
        goes_on = found[..., NEXT].bool() & open_
        via_depot = ~goes_on.any(1)
        ends = torch.where(via_depot[:, None], found[..., END].bool() & open_, goes_on)
        node = order.gather(1, ends.int().argmax(1, keepdim=True)).squeeze(1)
        state = problem.step(state, 2 * (node - 1) + via_depot.long())
    torch.testing.assert_close(problem.objective(state), length)


def _length(problem: CVRP, state: CVRPState, actions: list[int]) -> Tensor:
    for action in actions:
        state = problem.step(state, torch.tensor([action]))
    return problem.objective(state)[0]


def test_a_vehicle_under_way_takes_only_what_fits() -> None:
    """It stands at customer 0 with 6 of 10 loaded; customers 1 (demand 5) and 2 (4) lie ahead, 1 nearer."""
    problem = CVRP(3, 10)
    nodes = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [1.1, 0.0], [1.2, 0.1]]])
    state = problem.step(problem.instances(nodes, torch.tensor([[0, 6, 5, 4]]), 10), torch.tensor([1]))
    order, blocked = depot_tokens(state)
    rest = Rest.of(state, order, blocked)
    assert order.tolist() == [[0, 1, 2, 3]]
    assert rest.nodes.tolist() == [[1, 2, 3, 0]]
    assert rest.demands.tolist() == [[6, 5, 4, 0]]
    assert rest.place.tolist() == [[3, 0, 1, 2]]
    found = features(state)[0][0]
    # The largest saving is that of 1 and 2, which then do not fit into this vehicle.
    assert found[:, NEXT].tolist() == [0, 0, 0, 0]
    assert found[:, MINE].tolist() == [0, 1, 0, 0]
    assert found[:, LOAD].tolist() == pytest.approx([0, 0.6, 0.9, 0.9])


@pytest.mark.skipif(compiled() is None, reason="savings are not compiled")
@pytest.mark.parametrize("steps", [0, 3, 9])
def test_compiled_code_computes_what_is_defined(steps: int) -> None:
    state = partial(CVRP(14, capacity=(12, 40)), 30, steps)
    order, blocked = depot_tokens(state)
    rest = Rest.of(state, order, blocked)
    loads = (each.contiguous() for each in (rest.demands, rest.capacity))
    given = rest.points.float().contiguous(), *loads, rest.counts.int()
    for ours, theirs in zip(savings._compiled(*given), savings.defined(*given), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_what_actions_cost_is_what_the_heuristic_makes_of_the_rest() -> None:
    """At the beginning: the routes that savings build after the first customer, by other code, and the way there."""
    problem = CVRP(9, 15)
    state = problem.generate(10, generator=torch.Generator().manual_seed(2))
    order, blocked = depot_tokens(state)
    rest = Rest.of(state, order, blocked)
    found = savings_of(rest)
    assert bool((found.on_tried == 0).all())  # at the depot there is nothing to go on with
    assert bool((found.back_tried.sum(1) >= 8).all())
    for row in range(10):
        tried = [place for place in range(1, 10) if found.back_tried[row, place] > 0]
        costs = {place: _with_start(state.rows(torch.tensor([row])).compact(), place) for place in tried}
        least = min(costs.values())
        for place, cost in costs.items():
            assert found.back_regret[row, place].item() == pytest.approx((cost - least) / (least / 10), abs=1e-4)


def _with_start(state: CVRPState, customer: int) -> float:
    """What routes by savings cost if that customer has to stay the end of one; by other code."""
    nodes, demands = state.nodes[0].double(), state.demands[0]
    capacity, distance = int(state.capacity), torch.cdist(nodes, nodes)
    routes = [[node] for node in range(1, len(nodes))]
    pairs = [(float(distance[0, a] + distance[0, b] - distance[a, b]), a, b) for a, b in combinations(range(1, len(nodes)), 2)]
    for _, a, b in sorted((pair for pair in pairs if pair[0] > 0), key=lambda pair: -pair[0]):
        one, other = (next(route for route in routes if node in route) for node in (a, b))
        if one is other or int(demands[one + other].sum()) > capacity:
            continue
        ways = [x + y for x in (one, one[::-1]) for y in (other, other[::-1]) if (x[-1], y[0]) == (a, b)]
        ways = [way for way in ways if customer not in way[1:-1]]
        if ways:
            routes = [route for route in routes if route is not one and route is not other] + ways[:1]
    return sum(float(distance[[0, *route], [*route, 0]].sum()) for route in routes)


def test_going_where_costs_are_least_is_never_worse_than_the_heuristic() -> None:
    problem = CVRP(20, 30)
    state = problem.generate(20, generator=torch.Generator().manual_seed(3))
    state = replace(state, demands=state.demands.clone())
    state.demands[10:, 1::2] = 0  # a vehicle may be under way with nothing loaded
    state.demands[15:] = 0
    cost: dict[str, list[float]] = {"ahead": [], "plain": []}
    for row in range(20):
        instance = {"nodes": state.nodes[row].numpy(), "demands": state.demands[row].numpy(), "capacity": 30}
        for name, build in (("ahead", look_ahead), ("plain", by_savings)):
            cost[name].append(-_length(problem, state.rows(torch.tensor([row])), build(instance)).item())
    assert all(ahead <= plain + 1e-5 for ahead, plain in zip(cost["ahead"], cost["plain"], strict=True))
    assert sum(cost["ahead"]) < 0.99 * sum(cost["plain"])
