"""A problem that maximises, with solutions of different lengths, as a complete kit in one file: orienteering.

gumbeldore check examples/orienteering.py:KIT
gumbeldore train examples/orienteering.py:KIT --folder runs/orienteering
gumbeldore evaluate examples/orienteering.py:KIT --random 100 --policies runs/orienteering --baselines prize-per-way
gumbeldore solve my-places.txt --problem examples/orienteering.py:KIT --policy runs/orienteering/policy.safetensors

A tour begins and ends at place 0 and may only be so long; it collects the prizes of the places on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import dist
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gumbeldore import Problem, State
from gumbeldore.kits import (
    OWN,
    Architecture,
    Arrays,
    Export,
    Features,
    FormatError,
    Instance,
    InstanceSchema,
    InstanceSet,
    Kit,
    Limit,
    SetPolicy,
    SetSize,
    SolutionFormat,
    Verdict,
    check_generator,
    constructive,
    expert,
    number,
    saved_figure,
    text_format,
)

ROUNDING = 1e-9
"""How much longer than its limit a tour may be, relative to it."""


# --- The problem -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OrienteeringState(State):
    """Tours that stand at `current` and can still go `left`."""

    per_instance: ClassVar[tuple[str, ...]] = ("points", "prizes", "limit")

    points: Tensor  # instance place 2
    prizes: Tensor  # instance place
    limit: Tensor  # instance
    current: Tensor  # row
    visited: Tensor  # row place
    left: Tensor  # row
    prize: Tensor  # row: collected so far


@dataclass(frozen=True)
class Orienteering(Problem[OrienteeringState]):
    """Collect the largest prize on a tour that is no longer than the limit. Action: the next place from which there is still a way back.

    A tour is complete when there is no such place. So solutions differ in length, which needs no padding and no action that says `stop`.
    """

    places: int = 20
    limit: float = 2.0

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> OrienteeringState:
        points = torch.rand(count, self.places, 2, generator=generator, dtype=torch.float64)
        prizes = torch.randint(1, 101, (count, self.places), generator=generator) / 100.0
        prizes[:, 0] = 0
        return initial(points.to(device), prizes.double().to(device), torch.full((count,), self.limit, device=device).double())

    def mask(self, state: OrienteeringState) -> Tensor:
        there, back = ways(state)
        return ~state.visited & (there + back <= state.left[:, None])

    def done(self, state: OrienteeringState) -> Tensor:
        return ~self.mask(state).any(1)

    def step(self, state: OrienteeringState, action: Tensor) -> OrienteeringState:
        moving = ~self.done(state)
        action = action.where(moving, state.current)
        way = ways(state)[0].gather(1, action[:, None]).squeeze(1)
        prize = state.prize + state.prizes[state.instance, action] * moving
        visited = state.visited.scatter(1, action[:, None], True)
        return replace(state, current=action, visited=visited, left=state.left - way, prize=prize)

    def objective(self, state: OrienteeringState) -> Tensor:
        return state.prize  # larger is better

    def horizon(self, state: OrienteeringState) -> int:
        return int((~state.visited).sum(1).max())


def initial(points: Tensor, prizes: Tensor, limit: Tensor) -> OrienteeringState:
    """Tours that have not left place 0 yet."""
    count, nothing = len(points), torch.zeros_like(limit)
    start = torch.zeros(count, dtype=torch.long, device=points.device)
    visited = torch.zeros_like(prizes, dtype=torch.bool)
    visited[:, 0] = True
    rows = torch.arange(count, device=points.device)
    return OrienteeringState(rows, points, prizes, limit, start, visited, limit, nothing)


def ways(state: OrienteeringState) -> tuple[Tensor, Tensor]:
    """How long the ways are from here to every place, and from there back to the start."""
    points = state.points[state.instance]
    here = state.points[state.instance, state.current]
    return (points - here[:, None]).norm(dim=2), (points - points[:, :1]).norm(dim=2)


# --- What a policy sees ----------------------------------------------------------------------------------------------------------


class OrienteeringPolicy(SetPolicy):
    """The places that can still be visited: their prizes, where they lie from here and from the start, and what they leave of the limit."""

    item_features, whole_features = 11, 1

    def features(self, state: OrienteeringState) -> Features:
        points, prizes, (there, back) = state.points[state.instance], state.prizes[state.instance], ways(state)
        left = state.left[:, None] - there - back
        present = ~state.visited & (left >= 0)
        between = torch.cdist(points, points)
        detour = between + back[:, None] - back[:, :, None]  # of a second place (last axis) behind a first one, on the way home
        later = prizes[:, None] * (present[:, None] & (detour <= left[:, :, None]) & (between > 0))
        near = (later * torch.exp(-between / 0.2)).sum(2)
        numbers = torch.stack([prizes, there, back, left, prizes / (there + 0.1) / 5, later.sum(2) / 5, near], -1)
        from_here = points - state.points[state.instance, state.current][:, None]
        return Features(torch.cat([numbers, from_here, points - points[:, :1]], -1), present, state.left[:, None])


# --- Solutions: checked by code that did not build them, recorded, drawn, written and read ---------------------------------------------


def length(instance: Arrays, actions: Sequence[int]) -> float:
    points = instance["points"].tolist()
    return sum(dist(points[a], points[b]) for a, b in pairwise([0, *actions, 0]))


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    """Any tour within the limit is feasible, also one to which something could be added."""
    places, limit = range(1, len(instance["prizes"])), float(instance["limit"])
    if strange := [action for action in actions if action not in places]:
        return Verdict.infeasible(f"there is no place {strange[0]} to visit: places are 1 .. {places[-1]}")
    if len(set(actions)) < len(actions):
        return Verdict.infeasible("a place is visited twice")
    if (found := length(instance, actions)) > limit * (1 + ROUNDING):
        return Verdict.infeasible(f"the tour has the length {found:.6g}, which is more than {limit:.6g}")
    return Verdict(True, float(sum(instance["prizes"][action] for action in actions)))


def record(instance: Arrays, actions: Sequence[int]) -> dict[str, Any]:
    return {"tour": [0, *(int(action) for action in actions)], "length": length(instance, actions)}


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    points, tour = instance["points"], [0, *actions, 0]
    with saved_figure(path) as axes:
        axes.plot(*points[tour].T, color="tab:blue")
        axes.scatter(*points.T, s=10 + 90 * instance["prizes"] / instance["prizes"].max(), color="tab:orange", zorder=2)
        axes.scatter(*points[0], marker="s", color="black", zorder=3)
        axes.set(title=title, xticks=[], yticks=[], aspect="equal")


def written(instance: Instance, actions: Sequence[int]) -> str:
    return "".join(f"{place}\n" for place in (0, *actions))


def read(instance: Instance, text: str) -> list[int]:
    words = text.split()
    if not all(word.isdecimal() for word in words) or words[:1] != ["0"]:
        raise FormatError("A tour must be the numbers of its places, beginning with 0.")
    return [int(word) for word in words[1:]]


# --- Instances: arrays, random ones, and a format of files -------------------------------------------------------------------------


def unit(arrays: Arrays) -> tuple[Arrays, float]:
    """As a policy knows instances: in the unit square, with prizes up to 1. Prizes of the file are those times the largest."""
    corner, largest = arrays["points"].min(0), float(arrays["prizes"].max())
    across = float((arrays["points"].max(0) - corner).max())
    points = (arrays["points"] - corner) / across
    return {"points": points, "prizes": arrays["prizes"] / largest, "limit": arrays["limit"] / across}, largest


SCHEMA = InstanceSchema(
    "orienteering",
    Orienteering(),
    {"points": "instance place 2", "prizes": "instance place", "limit": "instance"},
    frozenset(),
    lambda arrays: initial(*(arrays[name].double() for name in ("points", "prizes", "limit"))),
    verify,
    lambda arrays: {"places": arrays["prizes"].shape[1]},
    unit,
)


@dataclass(frozen=True)
class OrienteeringGenerator:
    """Random places in the unit square, with prizes of 0.01, 0.02, ..., 1."""

    places: int = 20
    limit: float = 2.0
    count: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, places=self.places, seed=self.seed)

    def generate(self) -> InstanceSet:
        draws = np.random.RandomState(self.seed)
        points = draws.uniform(size=(self.count, self.places, 2))
        prizes = draws.randint(1, 101, size=(self.count, self.places)) / 100
        prizes[:, 0] = 0
        return InstanceSet(SCHEMA, {"points": points, "prizes": prizes, "limit": np.full(self.count, self.limit)})


def parse(text: str, stem: str) -> list[Instance]:
    """A line `orienteering LIMIT`, then a line for each place: x, y and the prize. The first place is the start."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines[0]) != 2 or len(lines) < 3 or any(len(line) != 3 for line in lines[1:]):
        raise FormatError("After a line `orienteering LIMIT` there must be x, y and prize of at least two places.")
    limit = number(lines[0][1], "The limit")
    table = np.array([[number(word, f"A number of place {row}") for word in line] for row, line in enumerate(lines[1:])])
    points, prizes = table[:, :2], table[:, 2] * (np.arange(len(table)) > 0)
    if not (np.isfinite(table).all() and (prizes >= 0).all() and prizes.any()):
        raise FormatError("All numbers must be finite, prizes at least 0, and one of them more.")
    if 2 * min(dist(points[0], point) for point in points[1:]) > limit:
        raise FormatError(f"No place can be visited within the limit {limit:g}.")
    arrays = {"points": points, "prizes": prizes, "limit": np.array(limit)}
    return [Instance(arrays, *unit(arrays), name=stem)]


FILES = text_format("orienteering", (".txt",), lambda lines: bool(lines) and lines[0].split()[:1] == ["orienteering"], parse)


# --- Something to compare with, and to learn from ----------------------------------------------------------------------------------


def prize_per_way(instance: Arrays) -> list[int]:
    """The rule: on to the place with the most prize for the way there, as long as there is a way back."""
    points, prizes, tour = instance["points"].tolist(), instance["prizes"], [0]
    left = float(instance["limit"])

    def reachable() -> list[int]:
        back = (place for place in range(len(points)) if place not in tour)
        return [place for place in back if dist(points[tour[-1]], points[place]) + dist(points[place], points[0]) <= left]

    while places := reachable():
        tour.append(max(places, key=lambda place: prizes[place] / (dist(points[tour[-1]], points[place]) + ROUNDING)))
        left -= dist(points[tour[-2]], points[tour[-1]])
    return tour[1:]


def rebuilt(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """The expert: a part of the tour is taken out, and places are put in where they bring the most for their detour; `limit.work` times per place."""
    draws = np.random.RandomState(seed)
    best = filled(instance, [0])
    for _ in range(int((limit.work or 20) * len(instance["prizes"]))):
        begin, count = draws.randint(1, len(best) + 1), draws.randint(1, 2 + len(best) // 2)
        tour = filled(instance, best[:begin] + best[begin + count :], draws.uniform(0.5, 1.5, len(instance["prizes"])))
        best = max(tour, best, key=lambda each: (instance["prizes"][each].sum(), -length(instance, each[1:])))
    return best[1:]


def filled(instance: Arrays, tour: list[int], taste: Any = 1.0) -> list[int]:
    """A tour with as many places put in as its limit allows, the best prize for the detour first."""
    points, worth = instance["points"], instance["prizes"] * taste
    ways = np.linalg.norm(points[:, None] - points, axis=2)
    while True:
        after, before = tour, [*tour[1:], 0]
        detour = ways[:, after] + ways[:, before] - ways[after, before]  # place, position
        detour[tour] = np.inf
        position = detour.argmin(1)
        least = detour.min(1).clip(ROUNDING)
        fits = least <= float(instance["limit"]) - ways[after, before].sum()
        if not fits.any():
            return tour
        place = int(np.where(fits, worth / least, -1).argmax())
        tour = [*tour[: position[place] + 1], place, *tour[position[place] + 1 :]]


# --- The kit -----------------------------------------------------------------------------------------------------------------------

KIT = Kit(
    "orienteering",
    "orienteering",
    problem=Orienteering(),
    architectures={"set": Architecture(OrienteeringPolicy, SetSize(d=32, layers=2, ff=64))},
    cost="prize",
    maximises=True,
    presets=Path(__file__).parent / "presets",
    solution_format=SolutionFormat(verify, record, draw, "tour.png"),
    instances=SCHEMA,
    generator=OrienteeringGenerator,
    standard={"orienteering20": OrienteeringGenerator(count=100, seed=1234)},
    baselines={"prize-per-way": constructive("the most prize for the way there", prize_per_way)},
    experts={OWN: expert(rebuilt)},
    formats=(FILES,),
    exports={"tour": Export(".tour", written, read)},
)
