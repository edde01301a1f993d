"""The vehicle routing problem with time windows (Solomon 1987)."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import hash_set, mix
from gumbeldore.local_search.improve import improve_timed_routes
from gumbeldore.problem import Augmentations, Examples, Problem, ReEncoding, State, precise, replay
from gumbeldore.problems.demands import check_demands, integers
from gumbeldore.problems.geometry import ISOMETRIES, all_true, check_nearest, drawn_apart, isometry, points_at
from gumbeldore.problems.subtours import Subtours
from gumbeldore.problems.vrptw.windows import check_windows, drawn_windows, tightened, tolerance, ways

LARGEST_DEMAND = 9
ORDERS = ("earliest", "given")
FORMS = 2  # forwards and backwards in time


@dataclass(frozen=True)
class VRPTWState(State):
    """Partial routes that stand at node `current` with `remaining` capacity, ready to leave at `time`. Node 0 is the depot, node c + 1
    customer c.

    `windows` say when service may begin at a node, on the way from the depot and back to it; at the depot, when it opens and closes.
    """

    per_instance: ClassVar[tuple[str, ...]] = ("nodes", "demands", "capacity", "windows", "service", "parts")

    nodes: Float[Tensor, "batch node 2"]
    demands: Int[Tensor, "batch node"]  # 0 at the depot
    capacity: Int[Tensor, " batch"]
    windows: Float[Tensor, "batch node 2"]
    service: Float[Tensor, "batch node"]  # 0 at the depot
    parts: Int[Tensor, " batch"]  # distances are cut down to multiples of 1 / parts; 0: exact
    current: Int[Tensor, " row"]
    remaining: Int[Tensor, " row"]
    time: Float[Tensor, " row"]
    visited: Bool[Tensor, "row customer"]
    length: Float[Tensor, " row"]  # of the route so far

    @property
    def earliest(self) -> Float[Tensor, "batch node"]:
        return self.windows[..., 0]

    @property
    def latest(self) -> Float[Tensor, "batch node"]:
        return self.windows[..., 1]

    @property
    def choosable(self) -> Bool[Tensor, "row customer"]:
        """The customers that may come next, if only via the depot."""
        return ~self.visited

    def arrivals(self) -> Float[Tensor, "row customer"]:
        """When the vehicle would be at each customer, directly."""
        points = self.nodes.index_select(0, self.instance)
        here = points_at(self.nodes, self.instance, self.current)
        return self.time[:, None] + ways(here[:, None], points[:, 1:], self.parts[self.instance][:, None])


@dataclass(frozen=True)
class NearestVRPTWState(VRPTWState):
    """Partial routes that may go on only to some customers: half of the `nearest` ones are those that can be served the soonest, directly, the others those
    that must be."""

    per_instance: ClassVar[tuple[str, ...]] = (*VRPTWState.per_instance, "nearest")

    nearest: Int[Tensor, " batch"]

    @property
    def choosable(self) -> Bool[Tensor, "row customer"]:
        waiting, count, instance = ~self.visited, self.nearest[self.instance], self.instance
        arrival, latest = self.arrivals(), self.latest.index_select(0, instance)[:, 1:]
        begin = torch.maximum(arrival, self.earliest.index_select(0, instance)[:, 1:])
        soon = first_of(begin, waiting & (arrival <= latest), count - count // 2)
        return soon | first_of(latest, waiting & ~soon, count - soon.sum(1))


@dataclass(frozen=True)
class VRPTW(Problem[VRPTWState]):
    """Serve every customer once, each within its time window, in subtours that begin and end at the depot, on the shortest way.

    - Instances: depot and `customers` points, uniform in the unit square; demands uniform in 1 .. 9; vehicles of `capacity`, 30 + customers / 5
      (30 up to 20 customers) if none is given; windows and service times by the recipe of Liu et al. (2024), see `drawn_windows`. `instances`
      takes data of any size.
    - A vehicle drives at speed 1, waits where it comes before the window opens, and must begin service before it closes. There are as many vehicles
      as it takes; each leaves the depot when that opens and is back before it closes.
    - Action 2 c + v: customer c next (from 0), directly from the current node (v = 0) or via the depot, by another vehicle (v = 1). Direct is allowed if
      the customer fits into the vehicle and is reached in time to be back in time; via the depot always.
    - A solution of N customers takes N actions; the last return to the depot is implied.
    - Objective: minus the total length; waiting and vehicles cost nothing.
    - `nearest=k` allows only k unvisited customers, and shows only those to the network: those that can be served soon, and those that must be. It is for inference on
      large instances: states from `generate` and `instances` carry it, training examples do not.
    - `order` says which subtour of a solution comes next in training examples, where any could: that whose first customer must be served the "earliest", or that
      which comes next in the solution as it is "given".
    """

    customers: int = 100
    capacity: int | None = None
    order: str = "earliest"
    nearest: int | None = None

    def __post_init__(self) -> None:
        require(self.customers >= 1, f"`customers` must be at least 1, got {self.customers}.")
        require(
            self.capacity is None or self.capacity >= LARGEST_DEMAND,
            f"`capacity` must be at least {LARGEST_DEMAND}, the largest demand, got {self.capacity}.",
        )
        check_nearest(self.nearest)
        require(self.order in ORDERS, f"`order` must be one of {', '.join(ORDERS)}, got {self.order!r}.")

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> VRPTWState:
        source, shape, kind = generator.device, (count, self.customers), torch.float64
        nodes = torch.rand(count, 1 + self.customers, 2, generator=generator, device=source, dtype=kind)
        demands = torch.randint(1, LARGEST_DEMAND + 1, shape, generator=generator, device=source)
        demands = torch.nn.functional.pad(demands, (1, 0))
        uniform = torch.rand(3, *shape, generator=generator, device=source, dtype=kind)
        away = (nodes[:, 1:] - nodes[:, :1]).square().sum(-1).sqrt()
        windows, service = drawn_windows(away, uniform)
        capacity = usual_capacity(self.customers) if self.capacity is None else self.capacity
        return self.instances(nodes.to(device), demands.to(device), capacity, windows.to(device), service.to(device))

    def instances(
        self,
        nodes: Float[Tensor, "batch node 2"],
        demands: Tensor,
        capacity: Tensor | int,
        windows: Tensor,
        service: Tensor,
        parts: Tensor | int = 0,
    ) -> VRPTWState:
        """Initial states for given data, the depot first in all of them.

        `windows` (batch, 1 + N, 2): when service may begin, from and until; those of the depot: when vehicles may leave, and until when they must be
        back. `service` (batch, 1 + N): how long it takes. Distances are travel times; with `parts` they are cut down to multiples of 1 / parts.
        `capacity` and `parts` are one number, or one per instance.
        """
        require(
            nodes.dim() == 3 and nodes.shape[1] >= 2 and nodes.shape[2] == 2,
            f"`nodes` must have the shape (instances, 1 + customers >= 2, 2), got {tuple(nodes.shape)}.",
        )
        require(bool(nodes.isfinite().all()), "`nodes` must be finite, got NaN or infinity.")
        count, device, kind = nodes.shape[0], nodes.device, precise(nodes.device)
        for name, given, shape in (
            ("demands", demands, nodes.shape[:2]),
            ("windows", windows, nodes.shape),
            ("service", service, nodes.shape[:2]),
        ):
            require(
                given.shape == shape, f"`{name}` must have the shape {tuple(shape)}, the depot first, got {tuple(given.shape)}."
            )
        demands, nodes = integers("demands", demands, device), nodes.to(kind)
        one = {"capacity": integers("capacity", capacity, device), "parts": integers("parts", parts, device)}
        for name, given in one.items():
            require(given.shape in ((), (count,)), f"`{name}` must be one number or {count}, got shape {tuple(given.shape)}.")
        limit, cut = (each.expand(count).clone() for each in one.values())
        check_demands(demands, limit)
        require(bool((cut >= 0).all()), f"`parts` must be at least 0, got {int(cut.min())}.")
        windows, service = windows.to(device, kind), service.to(device, kind)
        check_windows(windows, service)
        windows = tightened(windows, service, ways(nodes, nodes[:, :1], cut[:, None]))
        return self.restricted(initial(nodes, demands, limit, windows, service, cut))

    def restricted(self, state: VRPTWState) -> VRPTWState:
        """The same state with the restriction to the `nearest` customers, if there is one."""
        if self.nearest is None:
            return state
        return NearestVRPTWState(
            **state.tensors(), nearest=torch.full((state.instance_count,), self.nearest, device=state.device)
        )

    def mask(self, state: VRPTWState) -> Bool[Tensor, "row action"]:
        via_depot, instance = state.choosable, state.instance
        fits = state.demands.index_select(0, instance)[:, 1:] <= state.remaining[:, None]
        until = (state.latest + tolerance(state.windows)[:, None]).index_select(0, instance)[:, 1:]
        direct = via_depot & fits & (state.arrivals() <= until) & (state.current != 0)[:, None]
        return torch.stack([direct, via_depot], -1).flatten(1)

    def done(self, state: VRPTWState) -> Bool[Tensor, " row"]:
        return all_true(state.visited)

    def step(self, state: VRPTWState, action: Int[Tensor, " row"]) -> VRPTWState:
        moving, instance = ~self.done(state), state.instance
        action = action.where(moving, 0)  # customer 0 of a finished row is visited already
        customer, via_depot = action // 2, action % 2 == 1
        node, parts = customer + 1, state.parts[instance]
        here, there, depot = (
            points_at(state.nodes, instance, place) for place in (state.current, node, torch.zeros_like(node))
        )
        way = ways(torch.where(via_depot[:, None], depot, here), there, parts)
        back = ways(here, depot, parts).where(via_depot, 0)
        place = torch.add(node, instance, alpha=state.demands.shape[1])
        ready = torch.where(via_depot, state.earliest[instance, 0], state.time)
        begin = torch.maximum(ready + way, state.earliest[instance, node])
        load = torch.where(via_depot, state.capacity.index_select(0, instance), state.remaining) - state.demands.take(place)
        return replace(
            state,
            current=node.where(moving, state.current),
            remaining=load.where(moving, state.remaining),
            time=(begin + state.service.take(place)).where(moving, state.time),
            visited=state.visited.scatter(1, customer[:, None], True),
            length=state.length + (back + way).where(moving, 0),
        )

    def objective(self, state: VRPTWState) -> Float[Tensor, " row"]:
        here, depot = points_at(state.nodes, state.instance, state.current), state.nodes[state.instance, 0]
        return -(state.length + ways(here, depot, state.parts[state.instance]))

    def horizon(self, state: VRPTWState) -> int:
        return int((~state.visited).sum(1).max())

    def augmentations(self, state: VRPTWState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[VRPTWState]:
        """Forwards and backwards in time, each under some isometry of the square. The tag is 1 backwards."""
        require(not bool(state.visited.any()), "`augmentations` needs initial states.")
        drawn = drawn_apart(seeds, FORMS, ISOMETRIES, count)
        rows = torch.arange(len(drawn), device=state.device).repeat_interleave(drawn.shape[1])
        tag = drawn.flatten() // ISOMETRIES
        return Augmentations(seen(state.rows(rows), tag == 1, drawn.flatten() % ISOMETRIES), tag, drawn.shape[1])

    def inverse_transform(self, state: VRPTWState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        return torch.where((tag == 1)[:, None], backwards(actions), actions)

    def reencoded(
        self, state: VRPTWState, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]
    ) -> ReEncoding[VRPTWState]:
        """Subtours in the order of their directions from the depot, from some direction on, one way round or the other, all of them
        forwards or backwards in time; under some isometry. The last actions are those of neighbouring subtours."""
        require(not bool(state.visited.any()), "`reencoded` needs solutions of initial states.")
        noise = mix(seeds)
        turn = (noise >> 11 & 0xFFFF).to(state.nodes.dtype) * (2 * math.pi / 0x10000)
        subtours = Subtours.of(actions)
        angle = subtours.directions(state.nodes[state.instance]).add(turn[:, None]).remainder(2 * math.pi)
        angle = torch.where((noise & 1 == 1)[:, None], -angle, angle)
        tag = noise >> 4 & 1
        order, begins = subtours.arranged(angle, (tag == 1)[:, None].expand_as(angle))
        return ReEncoding(seen(state, tag == 1, (noise >> 1) % ISOMETRIES), tag, 2 * order + begins)

    def key(self, state: VRPTWState) -> Int[Tensor, "row 2"]:
        """Two independent 64-bit hashes of the visited set, the current node, the remaining capacity and the time."""
        bits = state.time.view(torch.int64 if state.time.element_size() == 8 else torch.int32).long()
        return hash_set(state.visited, state.current, state.remaining, mix(bits))

    def examples(
        self, state: VRPTWState, actions: Int[Tensor, "row depth"], *, generator: torch.Generator
    ) -> Examples[VRPTWState]:
        """A random beginning of each solution, of one random number of customers per minibatch; in half of them time runs backwards.

        Subtours are sorted (`order`).
        """
        rows, customers = actions.shape
        require(
            customers == state.visited.shape[1] and bool((actions >= 0).all()) and not bool(state.visited.any()),
            "`examples` needs complete solutions of full instances.",
        )
        turned = (torch.rand(rows, generator=generator) < 0.5).to(actions.device)
        state = seen(state, turned, torch.zeros_like(state.instance))
        actions = torch.where(turned[:, None], backwards(actions), actions)
        subtours = Subtours.of(actions)
        order, begins = subtours.arranged(self._rank(state, subtours), torch.zeros_like(subtours.begins))
        steps = torch.randint(customers, (), generator=generator).to(actions.device).expand(rows)
        return self.examples_after(state, 2 * order + begins, steps, generator=generator)

    def examples_after(
        self, state: VRPTWState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[VRPTWState]:
        """Where a subtour ends, any other could be next: `order` says which."""
        there, subtours = free(replay(self, state, actions, steps).compact()), Subtours.of(actions)
        rank = self._rank(there, subtours).masked_fill(subtours.first < steps[:, None], torch.inf)
        next_one = subtours.start(rank.argmin(1), torch.zeros_like(subtours.begins))
        action = actions.gather(1, steps[:, None]).squeeze(1)
        form = torch.randint(ISOMETRIES, (len(steps),), generator=generator).to(steps.device)
        example = replace(there, nodes=isometry(there.nodes, form), length=torch.zeros_like(there.length))
        return Examples(example, torch.where(action % 2 == 1, 2 * next_one + 1, action))

    def local_search(
        self, state: VRPTWState, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        """Strings of customers are taken out and put back, `effort` times per customer that may move.

        With `kept` actions the vehicle is on its way: all that is left to do is another instance, in which the node where it stands
        demands what it has loaded, must be served when the vehicle is ready to leave, and stays the first of its subtour.
        """
        require(
            actions.shape[1] == state.visited.shape[1] and not bool(state.visited.any()),
            "`polish` needs complete solutions of full instances.",
        )
        now = replay(self, state, actions, torch.full_like(seeds, kept)).compact()
        depot = torch.zeros_like(actions[:, :1])
        begun = [now.current[:, None]] if kept else []
        places = torch.cat([depot, *begun, actions[:, kept:] // 2 + 1], 1)
        points = now.nodes.gather(1, places[..., None].expand(-1, -1, 2))
        distances = ways(points[:, :, None], points[:, None], now.parts[:, None, None])
        demands, service = now.demands.gather(1, places), now.service.gather(1, places)
        windows = now.windows.gather(1, places[..., None].expand(-1, -1, 2))
        numbers = torch.arange(places.shape[1] - 1, device=places.device)
        via_depot = actions[:, kept:] % 2
        if kept:
            demands[:, 1], service[:, 1] = now.capacity - now.remaining, 0
            windows[:, 1] = now.time[:, None]
            distances[:, 0, 1] = torch.minimum(distances[:, 0, 1], (now.time - windows[:, 0, 0]).clamp(min=0))
            via_depot = torch.cat([torch.ones_like(depot), via_depot], 1)
        given = distances, demands, now.capacity, windows, service, 2 * numbers + via_depot
        better = improve_timed_routes(*given, seeds, effort * len(numbers), under_way=kept > 0)[:, len(begun) :]
        return torch.cat([actions[:, :kept], 2 * (places.gather(1, better // 2 + 1) - 1) + better % 2], 1)

    def _rank(self, state: VRPTWState, subtours: Subtours) -> Float[Tensor, "row subtour"]:
        """In which order to learn subtours, ascending."""
        if self.order == "given":
            return subtours.first.to(state.latest.dtype)
        return state.latest[state.instance].gather(1, 1 + subtours.ends(reverse=False))


def initial(nodes: Tensor, demands: Tensor, capacity: Tensor, windows: Tensor, service: Tensor, parts: Tensor) -> VRPTWState:
    """Vehicles at the depot, one for each instance."""
    count, customers = nodes.shape[0], nodes.shape[1] - 1
    visited = torch.zeros(count, customers, dtype=torch.bool, device=nodes.device)
    index, length = torch.arange(count, device=nodes.device), torch.zeros(count, dtype=nodes.dtype, device=nodes.device)
    given = nodes, demands, capacity, windows, service, parts
    return VRPTWState(index, *given, torch.zeros_like(index), capacity.clone(), windows[:, 0, 0].clone(), visited, length)


def free(state: VRPTWState) -> VRPTWState:
    """The same state without a restriction to the `nearest` customers."""
    return VRPTWState(**{field.name: getattr(state, field.name) for field in fields(VRPTWState)})


def seen(state: VRPTWState, turned: Bool[Tensor, " row"], form: Int[Tensor, " row"]) -> VRPTWState:
    """The same instances under isometries; where they are `turned`, time runs backwards: what must be over at t may begin at -t.

    A subtour that is in time is so backwards, too.
    """
    same = state.compact()
    mirror = same.windows[:, :1].sum(2)  # of the depot
    mirrored = (mirror - same.service)[..., None] - same.windows.flip(2)
    windows = torch.where(turned[:, None, None], mirrored, same.windows)
    begun = windows[:, 0, 0].clone()
    return replace(same, nodes=isometry(same.nodes, form), windows=windows, time=begun)


def first_of(
    value: Float[Tensor, "row customer"], candidates: Bool[Tensor, "row customer"], count: Int[Tensor, " row"]
) -> Bool[Tensor, "row customer"]:
    """The so many candidates with the least values, all of them where there are fewer; among equal ones the first in order."""
    order = value.masked_fill(~candidates, torch.inf).argsort(dim=1, stable=True)
    first = torch.arange(order.shape[1], device=order.device) < count[:, None]
    return torch.zeros_like(candidates).scatter_(1, order, first) & candidates


def backwards(actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
    """The same subtours, each from its end to its beginning, the last one first."""
    begins = torch.cat([actions[:, 1:] % 2, torch.ones_like(actions[:, :1])], 1)  # where the one behind does, backwards
    return (2 * (actions // 2) + begins).flip(1)


def usual_capacity(customers: int) -> int:
    """As in the literature: 30 for up to 20 customers, then one more for each five."""
    return 30 if customers <= 20 else 30 + customers // 5
