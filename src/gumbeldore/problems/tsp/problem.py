"""The Euclidean travelling salesman problem (paper, appendix "Traveling Salesman Problem")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import hash_set, mix
from gumbeldore.local_search.improve import improve_paths, improve_tours
from gumbeldore.problem import Augmentations, Examples, Problem, ReEncoding, State, precise
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


@dataclass(frozen=True)
class TSPState(State):
    """Paths from `start` to `current`, where the tour must return to `start` (the destination)."""

    per_instance: ClassVar[tuple[str, ...]] = ("coordinates",)

    coordinates: Float[Tensor, "batch city 2"]
    start: Int[Tensor, " row"]
    current: Int[Tensor, " row"]
    visited: Bool[Tensor, "row city"]
    length: Float[Tensor, " row"]  # of the path so far

    @property
    def choosable(self) -> Bool[Tensor, "row city"]:
        """The cities that may come next: those the mask allows and a network looks at."""
        return ~self.visited


@dataclass(frozen=True)
class NearestTSPState(TSPState):
    """Paths that may go on only to one of the `nearest` unvisited cities around `current`."""

    per_instance: ClassVar[tuple[str, ...]] = ("coordinates", "nearest")

    nearest: Int[Tensor, " batch"]

    @property
    def choosable(self) -> Bool[Tensor, "row city"]:
        points, count = self.coordinates[self.instance], self.nearest[self.instance]
        return nearest_candidates(self.coordinates[self.instance, self.current], points, ~self.visited, count)


@dataclass(frozen=True)
class TSP(Problem[TSPState]):
    """Visit every city once and return to the start, on the shortest tour.

    - Instances: `cities` points, uniform in the unit square; `instances` takes coordinates of any size.
    - Action: the index of the next city. Cities not yet visited are allowed.
    - A tour of N cities takes N - 1 actions; the return to the start is implied.
    - Objective: minus the length of the closed tour.
    - `nearest=k` allows only the k nearest unvisited cities of the current one, and shows only those to the network. It is
      for inference on large instances: states from `generate` and `instances` carry it, training examples do not.
    """

    cities: int = 100
    nearest: int | None = None

    def __post_init__(self) -> None:
        require(self.cities >= 3, f"`cities` must be at least 3, got {self.cities}.")
        check_nearest(self.nearest)

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> TSPState:
        return self.instances(torch.rand(count, self.cities, 2, generator=generator, device=generator.device).to(device))

    def instances(self, coordinates: Float[Tensor, "batch city 2"], start: int = 0) -> TSPState:
        """Initial states for given coordinates; tours begin at city `start`."""
        require(
            coordinates.dim() == 3 and coordinates.shape[1] >= 3 and coordinates.shape[2] == 2,
            f"`coordinates` must have the shape (instances, cities >= 3, 2), got {tuple(coordinates.shape)}.",
        )
        require(bool(coordinates.isfinite().all()), "`coordinates` must be finite, got NaN or infinity.")
        count, cities, _ = coordinates.shape
        require(0 <= start < cities, f"`start` must be a city in 0 .. {cities - 1}, got {start}.")
        device = coordinates.device
        begin = torch.full((count,), start, device=device)
        visited = torch.zeros(count, cities, dtype=torch.bool, device=device)
        visited[:, start] = True
        length = torch.zeros(count, dtype=precise(device), device=device)
        state = TSPState(torch.arange(count, device=device), coordinates, begin, begin, visited, length)
        return self.restricted(state)

    def restricted(self, state: TSPState) -> TSPState:
        """The same state with the restriction to the `nearest` cities, if there is one."""
        if self.nearest is None:
            return state
        return NearestTSPState(
            **state.tensors(), nearest=torch.full((state.instance_count,), self.nearest, device=state.device)
        )

    def mask(self, state: TSPState) -> Bool[Tensor, "row city"]:
        return state.choosable

    def done(self, state: TSPState) -> Bool[Tensor, " row"]:
        return all_true(state.visited)

    def step(self, state: TSPState, action: Int[Tensor, " row"]) -> TSPState:
        action = action.where(~self.done(state), state.current)
        length = state.length + self._distance(state, state.current, action)
        return replace(state, current=action, visited=state.visited.scatter(1, action[:, None], True), length=length)

    def objective(self, state: TSPState) -> Float[Tensor, " row"]:
        return -(state.length + self._distance(state, state.current, state.start))

    def horizon(self, state: TSPState) -> int:
        return int((~state.visited).sum(1).max())

    def key(self, state: TSPState) -> Int[Tensor, "row 2"]:
        """Two independent 64-bit hashes of the visited set, the current city and the one to return to."""
        return hash_set(state.visited, state.current, state.start)

    def examples(self, state: TSPState, actions: Int[Tensor, "row depth"], *, generator: torch.Generator) -> Examples[TSPState]:
        """A random contiguous segment of each tour, in either direction, of one random length for the whole minibatch.

        Its first city is the origin, its last the destination, its second the target; the cities outside count as visited.
        The length counts cities and is uniform in 4 .. N + 1, where N + 1 is the closed tour (origin = destination).
        """
        rows, cities = actions.shape[0], actions.shape[1] + 1
        require(state.visited.shape[1] == cities, "`examples` needs complete tours of full instances.")
        device = actions.device
        tour = torch.cat([state.start[:, None], actions], 1)
        length = int(torch.randint(min(4, cities + 1), cities + 2, (), generator=generator))
        first = torch.randint(cities, (rows, 1), generator=generator).to(device)
        direction = torch.randint(2, (rows, 1), generator=generator).to(device) * 2 - 1
        segment = tour.gather(1, (first + direction * torch.arange(length, device=device)) % cities)
        visited = torch.ones_like(state.visited).scatter_(1, segment[:, 1:-1], False)
        coordinates = augment(state.coordinates[state.instance], generator)
        example = TSPState(
            instance=torch.arange(rows, device=device),
            coordinates=coordinates,
            start=segment[:, -1],
            current=segment[:, 0],
            visited=visited,
            length=torch.zeros_like(state.length),
        )
        return Examples(example, segment[:, 1])

    def examples_after(
        self, state: TSPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[TSPState]:
        """The way there does not matter, so it is not replayed."""
        tour = torch.cat([state.start[:, None], actions], 1)
        behind = torch.arange(tour.shape[1], device=tour.device) <= steps[:, None]
        example = TSPState(
            instance=torch.arange(len(tour), device=tour.device),
            coordinates=augment(state.coordinates[state.instance], generator),
            start=state.start,
            current=tour.gather(1, steps[:, None]).squeeze(1),
            visited=torch.zeros_like(state.visited).scatter_(1, tour, behind),
            length=torch.zeros_like(state.length),
        )
        return Examples(example, actions.gather(1, steps[:, None]).squeeze(1))

    def local_search(
        self, state: TSPState, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        """2-opt and Or-opt, iterated with double bridges, `effort` of them per city that may move."""
        require(state.visited.shape[1] == actions.shape[1] + 1, "`polish` needs complete tours of full instances.")
        points, tours = state.coordinates[state.instance], torch.cat([state.start[:, None], actions], 1)
        if kept == 0:
            return _begun_at(improve_tours(points, tours, seeds, effort * tours.shape[1]), state.start)
        path = torch.cat([tours[:, kept:], state.start[:, None]], 1)  # from the current city back to the start
        order = torch.arange(path.shape[1], device=path.device).expand_as(path)
        order = improve_paths(points.gather(1, path[..., None].expand(-1, -1, 2)), order, seeds, effort * path.shape[1])
        return torch.cat([actions[:, :kept], path.gather(1, order)[:, 1:-1]], 1)

    def augmentations(self, state: TSPState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[TSPState]:
        """Other cities to begin with, each under some isometry of the square. The tag is that city."""
        require(bool((state.visited.sum(1) == 1).all()), "`augmentations` needs initial states.")
        cities = state.visited.shape[1]
        drawn = drawn_apart(seeds, cities, ISOMETRIES, count)
        count = drawn.shape[1]
        rows = torch.arange(len(drawn), device=state.device).repeat_interleave(count)
        begin = (state.start[rows] + drawn.flatten() // ISOMETRIES) % cities
        return Augmentations(self._seen(state.rows(rows), begin, drawn.flatten() % ISOMETRIES), begin, count)

    def _seen(self, state: TSPState, start: Int[Tensor, " row"], form: Int[Tensor, " row"]) -> TSPState:
        """Initial states, with these cities to begin with, under these isometries."""
        same = state.compact()
        visited = torch.zeros_like(same.visited).scatter_(1, start[:, None], True)
        return replace(same, coordinates=isometry(same.coordinates, form), start=start, current=start, visited=visited)

    def inverse_transform(self, state: TSPState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        return _begun_at(torch.cat([tag[:, None], actions], 1), state.start)

    def reencoded(
        self, state: TSPState, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]
    ) -> ReEncoding[TSPState]:
        """The tour from another city on, in either direction, under some isometry. Its last actions are a stretch of it."""
        require(bool((state.visited.sum(1) == 1).all()), "`reencoded` needs solutions of initial states.")
        tour, noise = torch.cat([state.start[:, None], actions], 1), mix(seeds)
        tour = torch.where((noise & 1 == 1)[:, None], tour.flip(1), tour)
        start = tour.gather(1, ((noise >> 8) % tour.shape[1])[:, None]).squeeze(1)
        return ReEncoding(self._seen(state, start, (noise >> 1) % ISOMETRIES), start, _begun_at(tour, start))

    def _distance(self, state: TSPState, a: Int[Tensor, " row"], b: Int[Tensor, " row"]) -> Float[Tensor, " row"]:
        here, there = (points_at(state.coordinates, state.instance, city).to(state.length.dtype) for city in (a, b))
        return (here - there).square_().sum(1).sqrt_()


def _begun_at(tours: Int[Tensor, "row city"], start: Int[Tensor, " row"]) -> Int[Tensor, "row depth"]:
    """The actions of closed tours from another city on."""
    first = (tours == start[:, None]).int().argmax(1, keepdim=True)
    return tours.gather(1, (first + torch.arange(1, tours.shape[1], device=tours.device)) % tours.shape[1])
