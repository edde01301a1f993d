"""A problem small enough to draw, and the trie of a search in it as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import torch
from torch import Tensor

from gumbeldore import Problem, Solutions, State

WIDTH, LEVEL, TOP = 760, 90, 30


@dataclass(frozen=True)
class LeavesState(State):
    """A path from the root, as the number of its node in its level."""

    per_instance: ClassVar[tuple[str, ...]] = ()

    depth: Tensor  # row
    node: Tensor  # row


@dataclass(frozen=True)
class Leaves(Problem[LeavesState]):
    """Binary decisions; every leaf has an objective."""

    objectives: tuple[float, ...] = (0.0, 1.0)

    @property
    def levels(self) -> int:
        return int(math.log2(len(self.objectives)))

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> LeavesState:
        zeros = torch.zeros(count, dtype=torch.long, device=device)
        return LeavesState(torch.arange(count, device=device), zeros, zeros)

    def mask(self, state: LeavesState) -> Tensor:
        return torch.ones(len(state.node), 2, dtype=torch.bool)

    def done(self, state: LeavesState) -> Tensor:
        return state.depth == self.levels

    def step(self, state: LeavesState, action: Tensor) -> LeavesState:
        done = self.done(state)
        node, depth = 2 * state.node + action, state.depth + 1
        return replace(state, node=state.node.where(done, node), depth=state.depth.where(done, depth))

    def objective(self, state: LeavesState) -> Tensor:
        return torch.tensor(self.objectives)[state.node.clamp(max=len(self.objectives) - 1)]

    def horizon(self, state: LeavesState) -> int:
        return self.levels


@dataclass(frozen=True)
class Prefers:
    """A policy that goes left with the same probability everywhere."""

    left: float = 0.5

    def prepare(self, state: LeavesState) -> None:
        return None

    def __call__(self, state: LeavesState, context: None) -> Tensor:
        return torch.tensor([self.left, 1 - self.left]).log().expand(len(state.node), 2)


@dataclass(frozen=True)
class Node:
    """What is drawn of a node: the mass left, and the summed bonus."""

    left: float = 1.0
    bonus: float = 0.0

    @property
    def sampled(self) -> bool:
        """Whether a sequence through it was sampled: some of its mass is gone."""
        return self.left < 1


def visited(trie: Any) -> dict[tuple[int, ...], Node]:
    """The nodes of the first instance's trie, by the actions that lead there."""
    found: dict[tuple[int, ...], Node] = {(): Node(float(trie.left[0, 0, 0].exp()))}
    paths = {(0, 0): ()}
    for depth in range(1, len(trie.count)):
        for node in range(int(trie.count[depth, 0])):
            path = (*paths[depth - 1, int(trie.parent[depth, 0, node])], int(trie.action[depth, 0, node]))
            paths[depth, node] = path
            left, bonus = (field[depth, 0, node].item() for field in (trie.left, trie.bonus))
            found[path] = Node(math.exp(left), bonus)
    return found


def conditional(path: tuple[int, ...], nodes: dict[tuple[int, ...], Node], left: float) -> float:
    """The probability of the last action of a path in the next round: prior, mass left and bonus of both children (eq. 6)."""
    weights = []
    for action in (0, 1):
        child = nodes.get((*path[:-1], action), Node())
        weights.append((left if action == 0 else 1 - left) * child.left * math.exp(child.bonus))
    return weights[path[-1]] / sum(weights) if sum(weights) > 0 else 0.0


def colour(node: Node) -> str:
    if abs(node.bonus) < 1e-9:
        return "#8fa3b8" if not node.sampled else "#33485e"
    return "#2e8b57" if node.bonus > 0 else "#c0504d"


@dataclass(frozen=True)
class Drawing:
    """Shown by notebooks as a picture."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


def draw(problem: Leaves, policy: Prefers, solutions: Solutions | None = None) -> Drawing:
    """The whole tree; what a search sampled of it is dark, and edges are as wide as the policy of the next round has them."""
    nodes = visited(solutions.tries[0]) if solutions is not None else {}
    height = TOP + LEVEL * problem.levels + 60
    shapes = [*edges(problem, policy, nodes), *dots(problem, policy, nodes)]
    body = "\n".join(shapes)
    return Drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>'
    )


def place(path: tuple[int, ...]) -> tuple[float, float]:
    number = int("".join(map(str, path)), 2) if path else 0
    return WIDTH * (number + 0.5) / 2 ** len(path), TOP + LEVEL * len(path)


def paths(levels: int) -> Iterator[tuple[int, ...]]:
    for depth in range(levels + 1):
        yield from product((0, 1), repeat=depth)


def edges(problem: Leaves, policy: Prefers, nodes: dict[tuple[int, ...], Node]) -> Iterator[str]:
    for path in paths(problem.levels):
        if path:
            (x, y), (above, top) = place(path), place(path[:-1])
            share = conditional(path, nodes, policy.left)
            colour_of = "#33485e" if nodes.get(path, Node()).sampled else "#b8c4d0"
            dashes = ' stroke-dasharray="3 4"' if share == 0 else ""
            yield f'<line x1="{above}" y1="{top}" x2="{x}" y2="{y}" stroke="{colour_of}" stroke-width="{1 + 9 * share:.1f}"{dashes}/>'
            yield text((x + above) / 2 + (-14 if path[-1] == 0 else 14), (y + top) / 2, f"{share:.2f}", "#445", halo=True)


def dots(problem: Leaves, policy: Prefers, nodes: dict[tuple[int, ...], Node]) -> Iterator[str]:
    for path in paths(problem.levels):
        x, y = place(path)
        node = nodes.get(path, Node())
        yield f'<circle cx="{x}" cy="{y}" r="17" fill="{colour(node)}"/>'
        yield text(x, y, f"{node.left:.2f}", "#fff")
        if len(path) == problem.levels:
            number = int("".join(map(str, path)), 2)
            chance = math.prod(policy.left if action == 0 else 1 - policy.left for action in path)
            yield text(x, y + 34, f"{problem.objectives[number]:g}", "#000", 15)
            yield text(x, y + 52, f"p = {chance:.3f}", "#667")


def text(x: float, y: float, content: str, fill: str, size: int = 11, halo: bool = False) -> str:
    around = ' paint-order="stroke" stroke="#fff" stroke-width="4"' if halo else ""
    return f'<text x="{x:.0f}" y="{y + size / 3:.0f}" font-size="{size}" text-anchor="middle" fill="{fill}"{around}>{content}</text>'
