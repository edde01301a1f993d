"""Lower bounds of paths by spanning trees (Held and Karp 1971): compiled (`compiled/trees.cpp`), and by their definition.

A path is a spanning tree, so a shortest spanning tree is not longer. A price on every node, paid by each edge that ends there, changes the
lengths of all paths alike, but not those of all trees: prices that rise where a tree has more edges than a path, and fall where it has fewer, make the tree
more and more like a shortest path, and its length a bound that is about one per cent below. Bounds of the paths that go to some node first tell which one to go to
(strong branching, Applegate, Bixby, Chvatal and Cook 1995).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.local_search.compiling import chosen, code, plain

_STRIDE = 1.2
"""How much an edge too many raises a price at first, in mean edges of the first tree. It falls to 0."""
TRIAL_ROUNDS, TRIAL_STRIDE = 20, 0.6
"""The same for trees of paths that go to some node first."""
_FORBIDDEN = torch.inf
_LEAST_EDGE = 1e-9


class PathBounds(NamedTuple):
    """What the trees say of each node. Lengths are in mean edges of the first tree, `scale`."""

    price: Float[Tensor, "row node"]
    ahead: Float[Tensor, "row node"]  # by how much the last tree grows with an edge to the first node of the path
    behind: Float[Tensor, "row node"]  # ... to its last node
    degree: Float[Tensor, "row node"]  # how many more edges it has in the last tree than on a path
    first: Float[Tensor, "row node"]  # how often it is beside the first node, as a share of the later half of all trees
    last: Float[Tensor, "row node"]  # ... beside the last one
    tried: Float[Tensor, "row node"]  # 1 where a bound of paths was computed that go there first
    regret: Float[Tensor, "row node"]  # how much larger that is than the least of them
    scale: Float[Tensor, " row"]


def bound_paths(
    points: Float[Tensor, "row node 2"],
    counts: Int[Tensor, " row"],
    *,
    rounds: int,
    tries: int = 0,
) -> PathBounds:
    """Of paths from a row's first point through all others to its last one, which is at `counts` - 1. What follows it means nothing.

    There are `rounds` trees, each at other prices. The `tries` nodes that seem best to go to first are tried.
    """
    found = chosen(_compiled, defined)(points.detach().cpu().float(), counts.cpu(), rounds, tries)
    return PathBounds(*(each.to(points) for each in found))


def _compiled(points: Tensor, counts: Tensor, rounds: int, tries: int) -> PathBounds:
    rows, places, _ = points.shape
    result, scale = torch.empty(rows, places, len(PathBounds._fields) - 1), torch.empty(rows)
    given, trials = (plain(points, torch.float32), plain(counts, torch.int32)), (tries, TRIAL_ROUNDS, TRIAL_STRIDE)
    code().bound_paths(*given, rounds, _STRIDE, *trials, torch.get_num_threads(), result.numpy(), scale.numpy())
    return PathBounds._make([*result.unbind(-1), scale])


@torch.no_grad()
def defined(points: Float[Tensor, "row node 2"], counts: Tensor, rounds: int, tries: int) -> PathBounds:
    """The definition, for all rows at once."""
    paths = _Paths(points, counts.long())
    price, half = points.new_zeros(points.shape[:2]), rounds // 2
    first, last = torch.zeros_like(price), torch.zeros_like(price)
    for index in range(rounds):
        tree = paths.tree(price)
        if index == 0:
            scale = paths.mean_edge(tree)
        if index >= half:
            first += tree.edge[:, 0] / (rounds - half)
            last += tree.edge[paths.row, paths.end] / (rounds - half)
        if index + 1 < rounds:
            price = price + (_STRIDE * scale * (1 - index / rounds) ** 2)[:, None] * tree.excess
    unit = scale[:, None]
    ahead, behind = (lost / unit for lost in paths.lost(tree, price))
    liked = (first - ahead / (1 + ahead)).masked_fill(~paths.between, -torch.inf)
    regret = paths.tried(liked, tries, price, TRIAL_STRIDE * scale) / unit
    tried = regret.isfinite()
    found = (price / unit, ahead, behind, tree.excess, first, last, tried.float(), regret.where(tried, 0))
    return PathBounds._make([*(each.where(paths.real, 0) for each in found), scale])


class _Tree(NamedTuple):
    """Trees of all rows."""

    order: Int[Tensor, "row step"]  # the nodes in the order in which they joined; the first one again and again after the last
    parent: Int[Tensor, "row node"]
    edge: Bool[Tensor, "row node node"]
    excess: Float[Tensor, "row node"]

    def length(self, weight: Float[Tensor, "row node node"]) -> Float[Tensor, " row"]:
        """Summed in double precision, so that no rounding depends on how many other nodes there are."""
        return (weight.double().where(self.edge, 0).sum((1, 2)) / 2).to(weight.dtype)


class _Paths:
    """Points, of which the first `counts` of a row are the nodes of its path."""

    def __init__(self, points: Float[Tensor, "row node 2"], counts: Int[Tensor, " row"]) -> None:
        rows, nodes, _ = points.shape
        self.row, self.end = torch.arange(rows), counts - 1
        self.real = torch.arange(nodes) < counts[:, None]
        self.between = self.real.clone()
        self.between[:, 0] = self.between[self.row, self.end] = False
        x, y = (points[:, :, None] - points[:, None]).unbind(-1)
        self.open = (x * x + y * y).sqrt()
        self.begin(torch.zeros_like(counts))

    def begin(self, root: Int[Tensor, " row"]) -> None:
        """Paths begin there; if that is not the first node, they leave it out."""
        nodes = self.end + 1 - (root > 0).long()
        self.root, self.distance = root, self.open.clone()
        closed = self.row[nodes > 2]
        ends = root[closed], self.end[closed]
        self.distance[closed, ends[0], ends[1]] = self.distance[closed, ends[1], ends[0]] = _FORBIDDEN
        self.steps = nodes - 1
        self.wanted = torch.full(self.real.shape, 2)
        self.wanted[:, 0] = 0
        self.wanted[self.row, root] = self.wanted[self.row, self.end] = 1

    def weight(self, price: Float[Tensor, "row node"]) -> Float[Tensor, "row node node"]:
        """Of the edge from a node, the second axis, that has joined a tree to another one."""
        return self.distance + price[:, :, None] + price[:, None]

    def tree(self, price: Float[Tensor, "row node"]) -> _Tree:
        """The shortest ones (Prim 1957)."""
        weight, row, node = self.weight(price), self.row, self.root
        key, parent = torch.full_like(price, torch.inf), torch.zeros_like(self.wanted)
        edge, order, outside = torch.zeros_like(weight, dtype=torch.bool), [node], self.real.clone()
        outside[:, 0] = outside[row, node] = False
        for step in range(1, price.shape[1]):
            nearer = outside & (weight[row, node] < key)
            key, parent = weight[row, node].where(nearer, key), node[:, None].where(nearer, parent)
            joins = step <= self.steps
            node = key.masked_fill(~outside, torch.inf).argmin(1).where(joins, self.root)
            ends = row[joins], node[joins], parent[row, node][joins]
            edge[ends] = edge[ends[0], ends[2], ends[1]] = True
            outside[row, node] = False
            order.append(node)
        return _Tree(torch.stack(order, 1), parent, edge, (edge.sum(2) - self.wanted).to(price.dtype))

    def mean_edge(self, tree: _Tree) -> Float[Tensor, " row"]:
        return (tree.length(self.distance) / self.end).clamp(min=_LEAST_EDGE)

    def lost(self, tree: _Tree, price: Float[Tensor, "row node"]) -> tuple[Tensor, Tensor]:
        """By how much trees grow with edges to the first node, and to the last: the new edge without the heaviest that it makes superfluous."""
        weight, row, parent = self.weight(price), self.row, tree.parent
        ahead, behind = torch.full_like(price, -torch.inf), torch.full_like(price, torch.inf)
        behind[row, self.end] = -torch.inf
        node = self.end
        while bool((node > 0).any()):
            above = parent[row, node]
            heaviest = torch.maximum(behind[row, node], weight[row, node, above])
            behind[row, above] = heaviest.where(node > 0, behind[row, above])
            node = above.where(node > 0, 0)
        for node in tree.order[:, 1:].unbind(1):
            above = parent[row, node]
            for heaviest, unknown in ((ahead, node > 0), (behind, (node > 0) & (behind[row, node] == torch.inf))):
                through = torch.maximum(heaviest[row, above], weight[row, node, above])
                heaviest[row, node] = through.where(unknown, heaviest[row, node])
        both = (weight[:, :, 0] - ahead, weight[row, :, self.end] - behind)
        return both[0].clamp(min=0).where(self.between, 0), both[1].clamp(min=0).where(self.between, 0)

    def tried(
        self, liked: Float[Tensor, "row node"], tries: int, price: Float[Tensor, "row node"], size: Float[Tensor, " row"]
    ) -> Float[Tensor, "row node"]:
        """How much larger bounds are for paths that go first to the nodes that are liked best than the least of these; not finite for all others."""
        bounds = torch.full_like(liked, torch.inf)
        for node in liked.argsort(dim=1, descending=True, stable=True)[:, :tries].unbind(1):
            bound = self._bound_by(node, price, size)
            bounds[self.row, node] = bound.where(self.between[self.row, node], torch.inf)
        return bounds - bounds.amin(1, keepdim=True)

    def _bound_by(self, node: Int[Tensor, " row"], price: Float[Tensor, "row node"], size: Tensor) -> Float[Tensor, " row"]:
        best = torch.full_like(size, -torch.inf)
        self.begin(node)
        for index in range(TRIAL_ROUNDS):
            tree = self.tree(price)
            paid = (self.wanted * price).double().where(self.real, 0).sum(1)
            best = torch.maximum(best, (tree.length(self.weight(price)).double() - paid).to(price.dtype))
            price = price + (size * (1 - index / TRIAL_ROUNDS) ** 2)[:, None] * tree.excess.where(self.real, 0)
        self.begin(torch.zeros_like(node))
        return best + self.open[self.row, 0, node]
