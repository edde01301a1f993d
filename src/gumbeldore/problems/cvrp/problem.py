"""The capacitated vehicle routing problem (paper, appendix "Capacitated Vehicle Routing Problem")."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import hash_set, mix
from gumbeldore.local_search.improve import improve_routes
from gumbeldore.problem import Augmentations, Examples, Problem, ReEncoding, State, precise, step_some
from gumbeldore.problems.demands import check_demands, integers
from gumbeldore.problems.geometry import (
    ISOMETRIES,
    all_true,
    augment,
    check_nearest,
    drawn_apart,
    isometry,
    nearest_candidates,
    points_at,
)
from gumbeldore.problems.subtours import Subtours

LARGEST_DEMAND = 9
_ORDERS = ("fullest", "given")


@dataclass(frozen=True)
class CVRPState(State):
    """Partial routes that stand at node `current` with `remaining` capacity. Node 0 is the depot, node c + 1 customer c."""

    per_instance: ClassVar[tuple[str, ...]] = ("nodes", "demands", "capacity")

    nodes: Float[Tensor, "batch node 2"]
    demands: Int[Tensor, "batch node"]  # 0 at the depot
    capacity: Int[Tensor, " batch"]
    current: Int[Tensor, " row"]
    remaining: Int[Tensor, " row"]
    visited: Bool[Tensor, "row customer"]
    length: Float[Tensor, " row"]  # of the route so far

    @property
    def choosable(self) -> Bool[Tensor, "row customer"]:
        """The customers that may come next: those the mask allows (if only via the depot) and a network looks at."""
        return ~self.visited


@dataclass(frozen=True)
class NearestCVRPState(CVRPState):
    """Partial routes that may go on only to one of the `nearest` unvisited customers around `current`."""

    per_instance: ClassVar[tuple[str, ...]] = ("nodes", "demands", "capacity", "nearest")

    nearest: Int[Tensor, " batch"]

    @property
    def choosable(self) -> Bool[Tensor, "row customer"]:
        points, count = self.nodes[self.instance, 1:], self.nearest[self.instance]
        return nearest_candidates(self.nodes[self.instance, self.current], points, ~self.visited, count)


@dataclass(frozen=True)
class CVRP(Problem[CVRPState]):
    """Serve every customer once in subtours that begin and end at the depot, on the shortest way.

    - Instances: depot and `customers` points, uniform in the unit square; demands uniform in 1 .. 9; the vehicle's capacity
      is given, or uniform in a range (low, high), both included; of more numbers, ascending, in one of the ranges between neighbours, all
      equally likely. `instances` takes data of any size.
    - Action 2 c + v: customer c next (from 0), directly from the current node (v = 0) or via the depot (v = 1). Direct is
      allowed if the demand fits into the remaining capacity and the vehicle is not at the depot; via the depot always.
    - A solution of N customers takes N actions; the last return to the depot is implied.
    - Objective: minus the total length. Demands and capacities are integers, so no rounding can break a capacity.
    - `nearest=k` allows only the k nearest unvisited customers of the current node, and shows only those to the network
      (the paper: k = 250). It is for inference on large instances: states from `generate` and `instances` carry it,
      training examples do not.
    - `order` says which subtour of a solution comes next in training examples, where any could: the "fullest" (the paper), from
      either end, or that which comes next in the solution as it is "given".
    """

    customers: int = 100
    capacity: int | tuple[int, ...] = 50
    nearest: int | None = None
    order: str = "fullest"

    def __post_init__(self) -> None:
        require(self.customers >= 1, f"`customers` must be at least 1, got {self.customers}.")
        low, ends = self.capacity_ends[0], self.capacity_ends
        require(list(ends) == sorted(ends), f"`capacity` must be a range (low, high) with low <= high, got {self.capacity}.")
        require(low >= LARGEST_DEMAND, f"`capacity` must be at least {LARGEST_DEMAND}, the largest demand, got {low}.")
        check_nearest(self.nearest)
        require(self.order in _ORDERS, f"`order` must be one of {', '.join(_ORDERS)}, got {self.order!r}.")

    @property
    def capacity_ends(self) -> tuple[int, ...]:
        """Where the ranges of generated instances' capacities begin and end; at least two numbers."""
        given = (self.capacity,) if isinstance(self.capacity, int) else tuple(self.capacity)
        require(len(given) > 0, "`capacity` must be a number, a range (low, high), or several ranges, got none.")
        return given * 2 if len(given) == 1 else given

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> CVRPState:
        source = generator.device
        nodes = torch.rand(count, 1 + self.customers, 2, generator=generator, device=source)
        demands = torch.randint(1, LARGEST_DEMAND + 1, (count, 1 + self.customers), generator=generator, device=source)
        demands[:, 0] = 0
        capacity = self._capacities(count, generator)
        return self.instances(nodes.to(device), demands.to(device), capacity.to(device))

    def _capacities(self, count: int, generator: torch.Generator) -> Int[Tensor, " instance"]:
        source, ends = generator.device, self.capacity_ends
        if len(ends) == 2:
            return torch.randint(ends[0], ends[1] + 1, (count,), generator=generator, device=source)
        of_range = torch.tensor(ends, device=source)
        which = torch.randint(len(ends) - 1, (count,), generator=generator, device=source)
        share = torch.rand(count, generator=generator, device=source, dtype=torch.float64)
        return of_range[which] + (share * (of_range[which + 1] - of_range[which] + 1)).long()

    def instances(self, nodes: Float[Tensor, "batch node 2"], demands: Tensor, capacity: Tensor | int) -> CVRPState:
        """Initial states for given data: `nodes` and `demands` (batch, 1 + N) begin with the depot, whose demand is 0.

        `capacity` is one number, or one per instance. Demands and capacities are integers in a tensor of any type.
        """
        require(
            nodes.dim() == 3 and nodes.shape[1] >= 2 and nodes.shape[2] == 2,
            f"`nodes` must have the shape (instances, 1 + customers >= 2, 2), got {tuple(nodes.shape)}.",
        )
        require(bool(nodes.isfinite().all()), "`nodes` must be finite, got NaN or infinity.")
        count, device = nodes.shape[0], nodes.device
        demands, capacity = integers("demands", demands, device), integers("capacity", capacity, device)
        require(
            demands.shape == nodes.shape[:2],
            f"`demands` must have the shape {tuple(nodes.shape[:2])}, the depot first, got {tuple(demands.shape)}.",
        )
        require(
            capacity.shape in ((), (count,)), f"`capacity` must be one number or {count}, got shape {tuple(capacity.shape)}."
        )
        capacity = capacity.expand(count).clone()
        check_demands(demands, capacity)
        zeros = torch.zeros(count, dtype=torch.long, device=device)
        visited = torch.zeros(count, nodes.shape[1] - 1, dtype=torch.bool, device=device)
        length = torch.zeros(count, dtype=precise(device), device=device)
        state = CVRPState(
            torch.arange(count, device=device), nodes, demands, capacity, zeros, capacity.clone(), visited, length
        )
        return self.restricted(state)

    def restricted(self, state: CVRPState) -> CVRPState:
        """The same state with the restriction to the `nearest` customers, if there is one."""
        if self.nearest is None:
            return state
        return NearestCVRPState(
            **state.tensors(), nearest=torch.full((state.instance_count,), self.nearest, device=state.device)
        )

    def mask(self, state: CVRPState) -> Bool[Tensor, "row action"]:
        via_depot = state.choosable
        fits = state.demands.index_select(0, state.instance)[:, 1:] <= state.remaining[:, None]
        direct = via_depot & fits & (state.current != 0)[:, None]
        return torch.stack([direct, via_depot], -1).flatten(1)

    def done(self, state: CVRPState) -> Bool[Tensor, " row"]:
        return all_true(state.visited)

    def step(self, state: CVRPState, action: Int[Tensor, " row"]) -> CVRPState:
        moving, instance = ~self.done(state), state.instance
        action = action.where(moving, 0)  # customer 0 of a finished row is visited already
        customer, via_depot = action // 2, action % 2 == 1
        node, nodes = customer + 1, state.nodes.to(state.length.dtype)
        here, there, depot = (points_at(nodes, instance, place) for place in (state.current, node, torch.zeros_like(node)))
        way = _distance(here, torch.where(via_depot[:, None], depot, there)) + _distance(depot, there).where(via_depot, 0)
        demand = state.demands.take(torch.add(node, instance, alpha=state.demands.shape[1]))
        load = torch.where(via_depot, state.capacity.index_select(0, instance), state.remaining) - demand
        return replace(
            state,
            current=node.where(moving, state.current),
            remaining=load.where(moving, state.remaining),
            visited=state.visited.scatter(1, customer[:, None], True),
            length=state.length + way.where(moving, 0),
        )

    def objective(self, state: CVRPState) -> Float[Tensor, " row"]:
        here, depot = points_at(state.nodes, state.instance, state.current), state.nodes[state.instance, 0]
        return -(state.length + _distance(here, depot))

    def horizon(self, state: CVRPState) -> int:
        return int((~state.visited).sum(1).max())

    def augmentations(self, state: CVRPState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[CVRPState]:
        """Customers to begin with (any, whatever is `nearest`), or none, each under some isometry of the square. The tag is 1 + that customer,
        or 0."""
        require(not bool(state.visited.any()), "`augmentations` needs initial states.")
        drawn = drawn_apart(seeds, 1 + state.visited.shape[1], ISOMETRIES, count)
        count = drawn.shape[1]
        rows = torch.arange(len(drawn), device=state.device).repeat_interleave(count)
        same, first = state.rows(rows).compact(), drawn.flatten() // ISOMETRIES
        same = replace(same, nodes=isometry(same.nodes, drawn.flatten() % ISOMETRIES))
        return Augmentations(step_some(self, same, self._begin(first), first > 0), first, count)

    def inverse_transform(self, state: CVRPState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        """A customer to begin with is the first action. Others keep their numbers."""
        begun = torch.cat([self._begin(tag)[:, None], actions[:, :-1]], 1)
        return torch.where((tag > 0)[:, None], begun, actions)

    def _begin(self, tag: Int[Tensor, " row"]) -> Int[Tensor, " row"]:
        """The first action of an augmentation with this tag, if it has one."""
        return 2 * (tag - 1).clamp(min=0) + 1

    def reencoded(
        self, state: CVRPState, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]
    ) -> ReEncoding[CVRPState]:
        """Subtours in the order of their directions from the depot, from some direction on, one way round or the other, each of them
        reversed or not; under some isometry. The last actions are those of neighbouring subtours."""
        require(not bool(state.visited.any()), "`reencoded` needs solutions of initial states.")
        same, noise = state.compact(), mix(seeds)
        turn = (noise >> 11 & 0xFFFF).to(same.nodes.dtype) * (2 * math.pi / 0x10000)
        subtours = Subtours.of(actions)
        angle = subtours.directions(same.nodes).add(turn[:, None]).remainder(2 * math.pi)
        angle = torch.where((noise & 1 == 1)[:, None], -angle, angle)
        coins = mix(noise[:, None] + torch.arange(actions.shape[1], device=actions.device)) & 1 == 1
        order, begins = subtours.arranged(angle, coins)
        seen = replace(same, nodes=isometry(same.nodes, (noise >> 1) % ISOMETRIES))
        return ReEncoding(seen, torch.zeros_like(seeds), 2 * order + begins)

    def key(self, state: CVRPState) -> Int[Tensor, "row 2"]:
        """Two independent 64-bit hashes of the visited set, the current node and the remaining capacity."""
        return hash_set(state.visited, state.current, state.remaining)

    def examples(
        self, state: CVRPState, actions: Int[Tensor, "row depth"], *, generator: torch.Generator
    ) -> Examples[CVRPState]:
        """A random stretch of each solution that ends at the depot, of one random number of customers per minibatch.

        Subtours are turned round and sorted (`order`). The number L of customers is uniform in 3 .. N. One of
        the returns to the depot after L or more customers is the end (all equally likely); the stretch is the last L
        customers before it, and everyone else counts as visited. If the first of them is reached via the depot, the
        example starts there with probability 1/2; otherwise it starts at that customer, with the capacity left there.
        """
        rows, customers = state.visited.shape
        device = actions.device
        require(
            actions.shape[1] == customers and bool((actions >= 0).all()) and not bool(state.visited.any()),
            "`examples` needs complete solutions of full instances.",
        )
        require(
            bool((actions[:, 0] % 2 == 1).all()), "`examples` needs solutions whose first customer is reached via the depot."
        )

        def uniform(columns: int) -> Tensor:
            return torch.rand(rows, columns, generator=generator, device=generator.device).to(device)

        demands, capacity = state.demands[state.instance], state.capacity[state.instance]
        subtours = Subtours.of(actions)
        rank, reverse = self.ranked(subtours, demands, capacity, uniform(customers) < 0.5)
        order, begins = subtours.arranged(rank, reverse)
        left = capacity_left(order, begins, demands, capacity)
        size = int(torch.randint(min(3, customers), customers + 1, (), generator=generator))
        ends = torch.cat([begins[:, 1:], torch.ones_like(begins[:, :1])], 1)[:, size - 1 :]  # after `size` customers or more
        first = uniform(ends.shape[1]).masked_fill(~ends, -1).argmax(1, keepdim=True)
        stretch = order.gather(1, first + torch.arange(size, device=device))
        at_depot = (begins.gather(1, first) & (uniform(1) < 0.5)).squeeze(1) | (size == 1)
        second = (first + 1).clamp(max=customers - 1)
        target = torch.where(at_depot, 2 * stretch[:, 0] + 1, (2 * order + begins).gather(1, second).squeeze(1))
        visited = torch.ones_like(state.visited).scatter_(1, stretch, False)
        visited.scatter_(1, stretch[:, :1], ~at_depot[:, None])
        example = CVRPState(
            instance=torch.arange(rows, device=device),
            nodes=augment(state.nodes[state.instance], generator),
            demands=demands,
            capacity=capacity,
            current=torch.where(at_depot, 0, stretch[:, 0] + 1),
            remaining=torch.where(at_depot, capacity, left.gather(1, first).squeeze(1)),
            visited=visited,
            length=torch.zeros_like(state.length),
        )
        return Examples(example, target)

    def examples_after(
        self, state: CVRPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[CVRPState]:
        """Where a subtour ends, any other could be next, either way round. As in `examples`, `order` says which."""
        there, subtours = self.prefix(state, actions, steps), Subtours.of(actions)
        coins = torch.rand(actions.shape, generator=generator).to(steps.device) < 0.5
        rank, reverse = self.ranked(subtours, there.demands, there.capacity, coins)
        later = subtours.first >= steps[:, None]
        next_one = rank.masked_fill(~later, torch.inf).argmin(1)
        action = actions.gather(1, steps[:, None]).squeeze(1)
        target = torch.where(action % 2 == 1, 2 * subtours.start(next_one, reverse) + 1, action)
        return Examples(replace(there, nodes=augment(there.nodes, generator)), target)

    def ranked(
        self,
        subtours: Subtours,
        demands: Int[Tensor, "row node"],
        capacity: Int[Tensor, " row"],
        coins: Bool[Tensor, "row subtour"],
    ) -> tuple[Float[Tensor, "row subtour"], Bool[Tensor, "row subtour"]]:
        """In which order to learn subtours, ascending, and which of them to turn round: those of `coins`, or none."""
        if self.order == "fullest":
            return (capacity[:, None] - subtours.load(demands)).double(), coins
        return subtours.first.double(), torch.zeros_like(coins)

    def prefix(self, state: CVRPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"]) -> CVRPState:
        """What `replay` does from the depot, many times faster, but for the length of the way, which is 0, and without `nearest`."""
        require(not bool(state.visited.any()), "`prefix` needs complete solutions of full instances.")
        whole = state.compact()
        same = CVRPState(**{field.name: getattr(whole, field.name) for field in fields(CVRPState)})
        customer, begins = actions // 2, actions % 2 == 1
        left = capacity_left(customer, begins, same.demands, same.capacity)
        last = (steps - 1).clamp(min=0)[:, None]
        passed = torch.arange(actions.shape[1], device=actions.device) < steps[:, None]
        return replace(
            same,
            current=(1 + customer.gather(1, last).squeeze(1)).where(steps > 0, 0),
            remaining=left.gather(1, last).squeeze(1).where(steps > 0, same.capacity),
            visited=torch.zeros_like(same.visited).scatter_(1, customer, passed),
            length=torch.zeros_like(same.length),
        )

    def local_search(
        self, state: CVRPState, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        """Strings of customers are taken out and put back, `effort` times per customer that may move.

        With `kept` actions the vehicle is on its way: all that is left to do is another instance, in which the node where it stands
        demands what it has loaded, and stays the first of its subtour.
        """
        require(
            actions.shape[1] == state.visited.shape[1] and not bool(state.visited.any()),
            "`polish` needs complete solutions of full instances.",
        )
        nodes, demands, capacity = (each[state.instance] for each in (state.nodes, state.demands, state.capacity))
        if kept == 0:
            return improve_routes(nodes, demands, capacity, actions, seeds, effort * actions.shape[1])
        now = self.prefix(state, actions, torch.full_like(seeds, kept))
        places = torch.cat([torch.zeros_like(now.current)[:, None], now.current[:, None], actions[:, kept:] // 2 + 1], 1)
        rest = demands.gather(1, places)
        rest[:, 1] = capacity - now.remaining
        numbers = torch.arange(places.shape[1] - 1, device=places.device)
        via_depot = torch.cat([torch.ones_like(actions[:, :1]), actions[:, kept:] % 2], 1)
        points = nodes.gather(1, places[..., None].expand(-1, -1, 2))
        routes, rounds = 2 * numbers + via_depot, effort * len(numbers)
        better = improve_routes(points, rest, capacity, routes, seeds, rounds, under_way=True)[:, 1:]
        return torch.cat([actions[:, :kept], 2 * (places.gather(1, better // 2 + 1) - 1) + better % 2], 1)


def capacity_left(
    order: Int[Tensor, "row customer"],
    begins: Bool[Tensor, "row customer"],
    demands: Int[Tensor, "row node"],
    capacity: Int[Tensor, " row"],
) -> Int[Tensor, "row customer"]:
    """The vehicle's capacity after each customer of a solution."""
    demand = demands.gather(1, order + 1)
    total = demand.cumsum(1)
    before = (total - demand).masked_fill(~begins, 0).cummax(1).values  # served before this subtour
    return capacity[:, None] - (total - before)


def _distance(a: Float[Tensor, "row 2"], b: Float[Tensor, "row 2"]) -> Float[Tensor, " row"]:
    """Euclidean, in the type that lengths are kept in."""
    kind = precise(a.device)
    return (a.to(kind) - b.to(kind)).square_().sum(1).sqrt_()
