"""The travelling salesman problem on a matrix: the way back need not be as long as the way there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.hashing import hash_set, mix
from gumbeldore.local_search.matrix_tours import improve_matrix_tours
from gumbeldore.problem import Augmentations, Examples, Problem, ReEncoding, State, precise
from gumbeldore.problems.geometry import all_true, drawn_apart

_FORMS = 2
"""The matrix itself, and transposed: tours of one are tours of the other, read backwards."""


@dataclass(frozen=True)
class ATSPState(State):
    """Paths from `start` to `current`, where the tour must return to `start`."""

    per_instance: ClassVar[tuple[str, ...]] = ("distances",)

    distances: Float[Tensor, "batch city another"]  # from the row's city to the column's
    start: Int[Tensor, " row"]
    current: Int[Tensor, " row"]
    visited: Bool[Tensor, "row city"]
    length: Float[Tensor, " row"]  # of the path so far


@dataclass(frozen=True)
class ATSP(Problem[ATSPState]):
    """Visit every city once and return to the start, on the shortest tour, by distances that depend on the direction.

    - Instances: `cities` cities, distances uniform in 0 .. 1, then the shortest ways by them, so that no detour is shorter (the triangle closure of
      Kwon et al. 2021); `instances` takes matrices of any size, with or without triangle inequality. The diagonal is not looked at.
    - Action: the index of the next city. Cities not yet visited are allowed.
    - A tour of N cities takes N - 1 actions; the return to the start is implied.
    - Objective: minus the length of the closed tour.
    """

    cities: int = 100

    def __post_init__(self) -> None:
        require(self.cities >= 3, f"`cities` must be at least 3, got {self.cities}.")

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> ATSPState:
        shape = count, self.cities, self.cities
        drawn = torch.rand(shape, generator=generator, device=generator.device, dtype=precise(generator.device))
        return self.instances(closed(drawn).to(device))

    def instances(self, distances: Num[Tensor, "batch city another"]) -> ATSPState:
        """Initial states for given matrices; tours begin at city 0."""
        require(
            distances.dim() == 3 and distances.shape[1] == distances.shape[2] >= 3,
            f"`distances` must have the shape (instances, cities >= 3, cities), got {tuple(distances.shape)}.",
        )
        require(bool(distances.isfinite().all()), "`distances` must be finite, got NaN or infinity.")
        count, cities, _ = distances.shape
        device = distances.device
        matrices = distances.to(precise(device)) * (1 - torch.eye(cities, dtype=precise(device), device=device))
        begin = torch.zeros(count, dtype=torch.int64, device=device)
        visited = torch.zeros(count, cities, dtype=torch.bool, device=device)
        visited[:, 0] = True
        length = torch.zeros(count, dtype=precise(device), device=device)
        return ATSPState(torch.arange(count, device=device), matrices, begin, begin, visited, length)

    def mask(self, state: ATSPState) -> Bool[Tensor, "row city"]:
        return ~state.visited

    def done(self, state: ATSPState) -> Bool[Tensor, " row"]:
        return all_true(state.visited)

    def step(self, state: ATSPState, action: Int[Tensor, " row"]) -> ATSPState:
        action = action.where(~self.done(state), state.current)
        length = state.length + state.distances[state.instance, state.current, action]
        return replace(state, current=action, visited=state.visited.scatter(1, action[:, None], True), length=length)

    def objective(self, state: ATSPState) -> Float[Tensor, " row"]:
        return -(state.length + state.distances[state.instance, state.current, state.start])

    def horizon(self, state: ATSPState) -> int:
        return int((~state.visited).sum(1).max())

    def key(self, state: ATSPState) -> Int[Tensor, "row 2"]:
        """Two independent 64-bit hashes of the visited set, the current city and the one to return to."""
        return hash_set(state.visited, state.current, state.start)

    def examples(
        self, state: ATSPState, actions: Int[Tensor, "row depth"], *, generator: torch.Generator
    ) -> Examples[ATSPState]:
        """A random contiguous segment of each tour, of one random length for the whole minibatch; of some read backwards, with the matrix transposed.

        Its first city is the origin, its last the destination, its second the target; the cities outside count as visited.
        The length counts cities and is uniform in 4 .. N + 1, where N + 1 is the closed tour (origin = destination).
        """
        rows, cities = actions.shape[0], actions.shape[1] + 1
        require(state.visited.shape[1] == cities, "`examples` needs complete tours of full instances.")
        device = actions.device
        tour = torch.cat([state.start[:, None], actions], 1)
        length = int(torch.randint(min(4, cities + 1), cities + 2, (), generator=generator))
        first = torch.randint(cities, (rows, 1), generator=generator).to(device)
        turned = (torch.rand(rows, generator=generator) < 0.5).to(device)
        direction = torch.where(turned[:, None], -1, 1)
        segment = tour.gather(1, (first + direction * torch.arange(length, device=device)) % cities)
        example = ATSPState(
            instance=torch.arange(rows, device=device),
            distances=_turned(state.distances[state.instance], turned),
            start=segment[:, -1],
            current=segment[:, 0],
            visited=torch.ones_like(state.visited).scatter_(1, segment[:, 1:-1], False),
            length=torch.zeros_like(state.length),
        )
        return Examples(example, segment[:, 1])

    def examples_after(
        self, state: ATSPState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[ATSPState]:
        """The way there does not matter, so it is not replayed."""
        tour = torch.cat([state.start[:, None], actions], 1)
        behind = torch.arange(tour.shape[1], device=tour.device) <= steps[:, None]
        example = ATSPState(
            instance=torch.arange(len(tour), device=tour.device),
            distances=state.distances[state.instance],
            start=state.start,
            current=tour.gather(1, steps[:, None]).squeeze(1),
            visited=torch.zeros_like(state.visited).scatter_(1, tour, behind),
            length=torch.zeros_like(state.length),
        )
        return Examples(example, actions.gather(1, steps[:, None]).squeeze(1))

    def local_search(
        self, state: ATSPState, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        """Segments put elsewhere, none of them turned round, iterated with `effort` double bridges per city that may move."""
        require(state.visited.shape[1] == actions.shape[1] + 1, "`polish` needs complete tours of full instances.")
        nodes = torch.cat([state.start[:, None], actions], 1)[:, kept:]
        if nodes.shape[1] <= 2:
            return actions
        matrices = state.distances[state.instance[:, None, None], nodes[:, :, None], nodes[:, None]]
        back = state.distances[state.instance[:, None], nodes, state.start[:, None]]
        matrices = torch.cat([back[:, :, None], matrices[:, :, 1:]], 2)  # what is left is a smaller instance
        order = improve_matrix_tours(matrices, seeds, effort * nodes.shape[1])
        return torch.cat([actions[:, :kept], nodes.gather(1, order[:, 1:])], 1)

    def augmentations(self, state: ATSPState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[ATSPState]:
        """Other cities to begin with, in either direction. The tag is city * 2 + direction."""
        require(bool((state.visited.sum(1) == 1).all()), "`augmentations` needs initial states.")
        cities = state.visited.shape[1]
        drawn = drawn_apart(seeds, cities, _FORMS, count)
        count = drawn.shape[1]
        rows = torch.arange(len(drawn), device=state.device).repeat_interleave(count)
        begin = (state.start[rows] + drawn.flatten() // _FORMS) % cities
        tag = begin * _FORMS + drawn.flatten() % _FORMS
        return Augmentations(self._seen(state.rows(rows), tag), tag, count)

    def _seen(self, state: ATSPState, tag: Int[Tensor, " row"]) -> ATSPState:
        """Initial states as their tags say."""
        same, start = state.compact(), tag // _FORMS
        visited = torch.zeros_like(same.visited).scatter_(1, start[:, None], True)
        distances = _turned(same.distances, tag % _FORMS == 1)
        return replace(same, distances=distances, start=start, current=start, visited=visited)

    def inverse_transform(self, state: ATSPState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        tour = torch.cat([(tag // _FORMS)[:, None], actions], 1)
        return begun_at(torch.where((tag % _FORMS == 1)[:, None], tour.flip(1), tour), state.start)

    def reencoded(
        self, state: ATSPState, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]
    ) -> ReEncoding[ATSPState]:
        """The tour from another city on, in either direction. Its last actions are a stretch of it."""
        require(bool((state.visited.sum(1) == 1).all()), "`reencoded` needs solutions of initial states.")
        tour, noise = torch.cat([state.start[:, None], actions], 1), mix(seeds)
        turned = noise & 1
        tour = torch.where((turned == 1)[:, None], tour.flip(1), tour)
        start = tour.gather(1, ((noise >> 8) % tour.shape[1])[:, None]).squeeze(1)
        tag = start * _FORMS + turned
        return ReEncoding(self._seen(state, tag), tag, begun_at(tour, start))


def closed(distances: Float[Tensor, "*batch city another"]) -> Float[Tensor, "*batch city another"]:
    """The lengths of the shortest ways, over any cities (Floyd 1962); 0 on the diagonal."""
    cities = distances.shape[-1]
    found = distances * (1 - torch.eye(cities, dtype=distances.dtype, device=distances.device))
    for over in range(cities):
        found = torch.minimum(found, found[..., :, over, None] + found[..., over, None, :])
    return found


def begun_at(tours: Int[Tensor, "row city"], start: Int[Tensor, " row"]) -> Int[Tensor, "row depth"]:
    """The actions of closed tours from another city on."""
    first = (tours == start[:, None]).int().argmax(1, keepdim=True)
    return tours.gather(1, (first + torch.arange(1, tours.shape[1], device=tours.device)) % tours.shape[1])


def _turned(distances: Float[Tensor, "row city another"], turned: Bool[Tensor, " row"]) -> Tensor:
    return torch.where(turned[:, None, None], distances.transpose(1, 2), distances)
