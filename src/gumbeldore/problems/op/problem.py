"""The orienteering problem: a tour from the depot and back that collects as much prize as its length allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import mix
from gumbeldore.local_search.prizes import improve_prizes
from gumbeldore.problem import Augmentations, Examples, Problem, ReEncoding, State, precise
from gumbeldore.problems.geometry import ISOMETRIES, drawn_first, isometry
from gumbeldore.problems.op.prizes import KINDS, drawn_prizes, usual_budget

SLACK = 1e-9
"""So much of the budget a tour may be longer, because sums of distances are rounded."""
END = 0
"""The action that goes back to the depot."""


@dataclass(frozen=True)
class OPState(State):
    """Partial tours that stand at node `current` after a way of `length`. Node 0 is the depot, visited once the tour has ended."""

    per_instance: ClassVar[tuple[str, ...]] = ("nodes", "prizes", "budget", "home")

    nodes: Float[Tensor, "batch node 2"]
    prizes: Float[Tensor, "batch node"]  # that of the depot is collected by every tour
    budget: Float[Tensor, " batch"]
    home: Float[Tensor, "batch node"]  # how far each node is from the depot
    current: Int[Tensor, " row"]
    visited: Bool[Tensor, "row node"]
    length: Float[Tensor, " row"]
    prize: Float[Tensor, " row"]  # collected so far

    @cached_property
    def ways(self) -> Float[Tensor, "row node"]:
        """From where the tour stands to every node."""
        points = self.nodes[self.instance]
        return lengths(points - points.gather(1, self.current[:, None, None].expand(-1, 1, 2)))

    @property
    def remaining(self) -> Float[Tensor, " row"]:
        """What is left of the budget."""
        return self.budget[self.instance] - self.length

    @cached_property
    def choosable(self) -> Bool[Tensor, "row node"]:
        """The nodes that may come next: not visited, and near enough that the way home is within the budget."""
        budget = self.budget[self.instance][:, None]
        reached = self.length[:, None] + self.ways + self.home[self.instance] <= budget * (1 + SLACK)
        free = ~self.visited & reached & ~self.visited[:, :1]
        free[:, END] = False
        return free


@dataclass(frozen=True)
class ListedOPState(OPState):
    """Partial tours by distances that somebody has listed, those of a file with a rule of its own, say."""

    per_instance: ClassVar[tuple[str, ...]] = (*OPState.per_instance, "distances")

    distances: Num[Tensor, "batch node another"]

    @cached_property
    def ways(self) -> Float[Tensor, "row node"]:
        return self.distances[self.instance, self.current].to(self.length.dtype)


@dataclass(frozen=True)
class OP(Problem[OPState]):
    """Visit some customers on a tour that begins and ends at the depot and is no longer than a budget, so that their prizes add up to the most.

    - Instances: depot and `customers` points, uniform in the unit square; prizes by one of the recipes of Kool et al. (2019): "constant", "uniform" in
      0.01 .. 1, or growing with the "distance" from the depot; the budget, by default theirs: 2, 3, 4 for 20, 50, 100 customers.
      `instances` takes data of any size, and distances of any kind.
    - Action: the next node, 1 .. N; 0 ends the tour at the depot. Allowed are nodes from which the depot can still be reached, and the end.
    - Objective: the sum of the prizes.
    """

    customers: int = 100
    prizes: str = "distance"
    budget: float | None = None

    def __post_init__(self) -> None:
        require(self.customers >= 1, f"`customers` must be at least 1, got {self.customers}.")
        require(self.prizes in KINDS, f"`prizes` must be one of {', '.join(KINDS)}, got {self.prizes!r}.")
        given = self.budget
        require(given is None or 0 < given < float("inf"), f"`budget` must be positive and finite, or left out, got {given}.")

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> OPState:
        source = generator.device
        nodes = torch.rand(count, 1 + self.customers, 2, generator=generator, device=source, dtype=precise(source))
        random = torch.rand(count, self.customers, generator=generator, device=source, dtype=precise(source))
        prizes = torch.zeros_like(nodes[..., 0])
        prizes[:, 1:] = drawn_prizes(self.prizes, lengths(nodes[:, 1:] - nodes[:, :1]), random)
        budget = usual_budget(self.customers) if self.budget is None else self.budget
        return self.instances(nodes.to(device), prizes.to(device), torch.full((count,), budget, device=device))

    def instances(
        self,
        nodes: Float[Tensor, "batch node 2"],
        prizes: Num[Tensor, "batch node"],
        budget: Num[Tensor, "..."] | float,
        distances: Num[Tensor, "batch node another"] | None = None,
    ) -> OPState:
        """Initial states for given data: `nodes` and `prizes` (batch, 1 + N) begin with the depot, whose prize every tour collects.

        `budget` is one number, or one per instance. `distances` are those of the plane unless they are given; they must be alike in both directions.
        """
        kind = precise(nodes.device)
        nodes, prizes = nodes.to(kind), prizes.to(kind)
        budget = torch.as_tensor(budget, dtype=kind, device=nodes.device)
        check_instances(nodes, prizes, budget, distances)
        count, size = prizes.shape
        zeros, zero = (
            torch.zeros(count, dtype=torch.long, device=nodes.device),
            torch.zeros(count, dtype=kind, device=nodes.device),
        )
        visited = torch.zeros(count, size, dtype=torch.bool, device=nodes.device)
        home = lengths(nodes - nodes[:, :1]) if distances is None else distances[:, 0].to(kind)
        own = torch.arange(count, device=nodes.device)
        plain = (own, nodes, prizes, budget.expand(count).clone(), home, zeros, visited, zero, prizes[:, END].clone())
        return OPState(*plain) if distances is None else ListedOPState(*plain, distances)

    def mask(self, state: OPState) -> Bool[Tensor, "row node"]:
        allowed = state.choosable.clone()
        allowed[:, END] = True
        return allowed

    def done(self, state: OPState) -> Bool[Tensor, " row"]:
        return state.visited[:, END].clone()

    def step(self, state: OPState, action: Int[Tensor, " row"]) -> OPState:
        moving = ~self.done(state)
        action, place = action.where(moving, END), action.where(moving, END)[:, None]
        way = state.ways.gather(1, place).squeeze(1).where(moving, 0)
        return replace(
            state,
            current=action.where(moving, state.current),
            visited=state.visited.scatter(1, place, True),
            length=state.length + way,
            prize=state.prize + state.prizes[state.instance, action].where(action != END, 0),
        )

    def objective(self, state: OPState) -> Float[Tensor, " row"]:
        return state.prize

    def horizon(self, state: OPState) -> int:
        """In the plane nobody comes nearer by a detour, so what is out of reach now is so for good."""
        left = ~state.visited if isinstance(state, ListedOPState) else state.choosable
        return int((left.sum(1) + 1).max())

    def augmentations(self, state: OPState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[OPState]:
        """The instance under the symmetries of the square. The tag is which of them."""
        drawn = drawn_first(seeds, ISOMETRIES, count)
        count = drawn.shape[1]
        rows = torch.arange(len(drawn), device=state.device).repeat_interleave(count)
        same, tag = state.rows(rows).compact(), drawn.flatten()
        return Augmentations(replace(same, nodes=isometry(same.nodes, tag)), tag, count)

    def inverse_transform(self, state: OPState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        """Nodes keep their numbers."""
        return actions

    def reencoded(
        self, state: OPState, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]
    ) -> ReEncoding[OPState]:
        """The tour one way round or the other, under some isometry."""
        same, noise = state.compact(), mix(seeds)
        seen = replace(same, nodes=isometry(same.nodes, (noise >> 1) % ISOMETRIES))
        return ReEncoding(seen, torch.zeros_like(seeds), turned(actions, noise & 1 == 1))

    def examples(self, state: OPState, actions: Int[Tensor, "row depth"], *, generator: torch.Generator) -> Examples[OPState]:
        """A random prefix of each tour, one way round or the other. The end is never the target: it comes when nothing else is left."""
        coins = torch.rand(len(actions), generator=generator).to(actions.device) < 0.5
        choices = ((actions >= 0).sum(1) - 1).clamp(min=1)
        steps = (torch.rand(len(choices), generator=generator, dtype=torch.float64).to(choices.device) * choices).long()
        return self.examples_after(state, turned(actions, coins), steps, generator=generator)

    def examples_after(
        self, state: OPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[OPState]:
        """Under some isometry. Where a tour ends although a node is within reach, it goes on to the one with the most prize per way."""
        there = self.prefix(state, actions, steps)
        target = actions.gather(1, steps[:, None]).squeeze(1)
        worth = (there.prizes / there.ways.clamp(min=1e-300)).masked_fill(~there.choosable, -1)
        target = torch.where((target == END) & there.choosable.any(1), worth.argmax(1), target)
        which = torch.randint(ISOMETRIES, (len(steps),), generator=generator).to(steps.device)
        return Examples(replace(there, nodes=isometry(there.nodes, which)), target)

    def prefix(self, state: OPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"]) -> OPState:
        """What `replay` does from the depot, many times faster, for prefixes that do not end the tour."""
        same = state.compact()
        passed = torch.arange(actions.shape[1], device=actions.device) < steps[:, None]
        stops = torch.nn.functional.pad(actions.where(passed, END), (1, 0))  # from the depot on
        legs = self._legs(same, stops).masked_fill(~passed, 0)
        return replace(
            same,
            current=stops.gather(1, steps[:, None]).squeeze(1),
            visited=torch.zeros_like(same.visited)
            .scatter_(1, stops, True)
            .index_fill_(1, torch.tensor([END], device=steps.device), False),
            length=legs.sum(1),
            prize=same.prizes.gather(1, stops).where(stops != END, 0).sum(1) + same.prizes[:, END],
        )

    def _legs(self, state: OPState, stops: Int[Tensor, "row stop"]) -> Float[Tensor, "row leg"]:
        """The ways between stops that follow each other, of rows that have an instance each."""
        if isinstance(state, ListedOPState):
            rows = state.instance[:, None]
            return state.distances[rows, stops[:, :-1], stops[:, 1:]].to(state.length.dtype)
        points = state.nodes.gather(1, stops[..., None].expand(-1, -1, 2))
        return lengths(points[:, 1:] - points[:, :-1])

    def local_search(
        self, state: OPState, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row longest"]:
        """Nodes are taken out of the tour and others put in, `effort` times per customer."""
        require(not bool(state.visited.any()), "`local_search` needs complete tours of initial states.")
        if isinstance(state, ListedOPState):
            distances = state.distances[state.instance].to(state.length.dtype)
        else:
            points = state.nodes[state.instance]
            distances = lengths(points[:, :, None] - points[:, None])
        prizes, budget = state.prizes[state.instance], state.budget[state.instance]
        return improve_prizes(distances, prizes, budget, actions, seeds, effort * (prizes.shape[1] - 1), kept)


def lengths(vectors: Float[Tensor, "*axes 2"]) -> Float[Tensor, "*axes"]:
    x, y = vectors.unbind(-1)
    return (x * x + y * y).sqrt()


def turned(actions: Int[Tensor, "row depth"], where: Bool[Tensor, " row"]) -> Int[Tensor, "row depth"]:
    """Tours the other way round in some rows; the end stays the end."""
    stops = (actions > END).sum(1, keepdim=True)
    place = torch.arange(actions.shape[1], device=actions.device).expand_as(actions)
    back = torch.where(place < stops, stops - 1 - place, place)
    return torch.where(where[:, None], actions.gather(1, back), actions)


def check_instances(nodes: Tensor, prizes: Tensor, budget: Tensor, distances: Tensor | None) -> None:
    """Raises where data are none of an instance."""
    require(
        nodes.dim() == 3 and nodes.shape[1] >= 2 and nodes.shape[2] == 2,
        f"`nodes` must have the shape (instances, 1 + customers >= 2, 2), got {tuple(nodes.shape)}.",
    )
    require(
        prizes.shape == nodes.shape[:2],
        f"`prizes` must have the shape {tuple(nodes.shape[:2])}, the depot first, got {tuple(prizes.shape)}.",
    )
    require(
        budget.shape in ((), nodes.shape[:1]), f"`budget` must be one number or {len(nodes)}, got shape {tuple(budget.shape)}."
    )
    for name, values in (("nodes", nodes), ("prizes", prizes), ("budget", budget)):
        require(bool(values.isfinite().all()), f"`{name}` must be finite, got NaN or infinity.")
    require(bool((prizes >= 0).all()), f"`prizes` must be at least 0, got {float(prizes.min()):g}.")
    require(bool((budget >= 0).all()), f"`budget` must be at least 0, got {float(budget.min()):g}.")
    if distances is not None:
        shape = (*nodes.shape[:2], nodes.shape[1])
        require(distances.shape == shape, f"`distances` must have the shape {shape}, got {tuple(distances.shape)}.")
        require(bool((distances >= 0).all()) and bool(distances.isfinite().all()), "`distances` must be finite and at least 0.")
        require(bool((distances == distances.transpose(1, 2)).all()), "`distances` must be alike in both directions.")
