"""Lower bounds of paths by spanning trees, against other code, enumeration and their definition."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor

from gumbeldore.local_search.compiling import compiled
from gumbeldore.problems.tsp import trees
from gumbeldore.problems.tsp.trees import PathBounds, bound_paths

needs_compiler = pytest.mark.skipif(compiled() is None, reason="the bounds are not compiled")
ROUNDS = 40


def points_of(rows: int, nodes: int, seed: int = 0) -> Tensor:
    return torch.rand(rows, nodes, 2, generator=torch.Generator().manual_seed(seed))


def bounds_of(points: Tensor, rounds: int = ROUNDS, tries: int = 0) -> PathBounds:
    rows, nodes, _ = points.shape
    return bound_paths(points, torch.full((rows,), nodes), rounds=rounds, tries=tries)


def weights(points: Tensor, found: PathBounds, row: int) -> np.ndarray:
    """Of all edges at the last prices, by other code; that between the ends of a path is forbidden."""
    price = (found.price[row] * found.scale[row]).double().numpy()
    table = torch.cdist(points[row].double(), points[row].double()).numpy() + price[:, None] + price
    table[0, -1] = table[-1, 0] = 1e6
    return table


def tree_length(table: np.ndarray) -> float:
    shifted = table + 10 - np.diag(table.diagonal() + 10)  # weights may be negative; 0 would be no edge
    return float(minimum_spanning_tree(shifted).sum()) - 10 * (len(table) - 1)


def shortest_path(points: Tensor) -> float:
    table = torch.cdist(points.double(), points.double()).numpy()
    inner, last = range(1, len(points) - 1), len(points) - 1
    return min(sum(table[a, b] for a, b in zip((0, *way), (*way, last), strict=True)) for way in permutations(inner))


def test_prices_give_a_bound_that_is_close_and_never_too_long() -> None:
    """The last tree at the last prices, without the prices that a path pays."""
    points, shares = points_of(40, 8), []
    found = bounds_of(points)
    for row in range(len(points)):
        price = (found.price[row] * found.scale[row]).double().numpy()
        paid = 2 * price.sum() - price[0] - price[-1]
        bound, shortest = tree_length(weights(points, found, row)) - paid, shortest_path(points[row])
        assert bound <= shortest + 1e-5
        shares.append(bound / shortest)
    assert np.mean(shares) > 0.99
    plain = [tree_length(weights(points, bounds_of(points, rounds=1), row)) / shortest_path(points[row]) for row in range(10)]
    assert np.mean(plain) < 0.95


@pytest.mark.parametrize("end", [0, -1])
def test_what_a_tree_loses_by_an_edge_is_what_other_code_finds(end: int) -> None:
    points = points_of(5, 12)
    found = bounds_of(points)
    lost = found.ahead if end == 0 else found.behind
    for row in range(len(points)):
        table = weights(points, found, row)
        shortest = tree_length(table)
        for node in range(1, 11):
            forced = table.copy()
            forced[end, node] = forced[node, end] = -5  # lighter than all others
            grown = tree_length(forced) + 5 + table[end, node] - shortest
            assert lost[row, node].item() * found.scale[row].item() == pytest.approx(grown, abs=1e-5)


def test_bounds_of_paths_that_go_somewhere_first_tell_where_to_go() -> None:
    """The city with the least bound is the next one of a shortest path, or next to as good, far more often than the nearest one is."""
    points = points_of(60, 8, seed=3)
    found = bounds_of(points, tries=3)
    assert bool((found.tried.sum(1) == 3).all())
    assert bool((found.regret.masked_fill(found.tried == 0, 1).amin(1) == 0).all())
    chosen = found.regret.masked_fill(found.tried == 0, torch.inf).argmin(1)
    near = torch.cdist(points[:, :1], points)[:, 0, 1:-1].argmin(1) + 1
    lost = {
        name: [loss_by(points[row], int(node)) for row, node in enumerate(nodes)]
        for name, nodes in (("bound", chosen), ("near", near))
    }
    assert np.mean(lost["bound"]) < 0.002 < 0.02 < np.mean(lost["near"])


def loss_by(points: Tensor, node: int) -> float:
    """How much longer the shortest path is that goes to a node first, as a share."""
    rest = torch.cat([points[node : node + 1], points[1:node], points[node + 1 :]])
    return (torch.dist(points[0], points[node]).item() + shortest_path(rest)) / shortest_path(points) - 1


def test_a_path_that_is_plain_to_see_is_found() -> None:
    """Points on a line, in some order: all trees are that path."""
    place = torch.tensor([0, 3, 1, 2, 4]).double()
    found = bounds_of(torch.stack([place, 0 * place], 1)[None])
    assert found.scale.item() == 1
    assert found.first[0].tolist() == pytest.approx([0, 0, 1, 0, 0])
    assert found.last[0].tolist() == pytest.approx([0, 1, 0, 0, 0])
    assert found.ahead[0].tolist() == [0, 2, 0, 1, 0]
    assert found.degree[0].tolist() == [0, 0, 0, 0, 0]


@needs_compiler
@pytest.mark.parametrize("nodes", [2, 3, 10, 33])
def test_compiled_code_computes_what_is_defined(nodes: int) -> None:
    drawn = torch.Generator().manual_seed(nodes)
    points, counts = points_of(24, nodes), torch.randint(2, nodes + 1, (24,), generator=drawn).int()
    for ours, theirs in zip(trees._compiled(points, counts, ROUNDS, 3), trees.defined(points, counts, ROUNDS, 3), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("code", ["compiled", "defined"])
def test_a_row_is_the_same_to_the_last_bit_whatever_other_rows_and_padding_there_are(code: str) -> None:
    function = trees._compiled if code == "compiled" and compiled() else trees.defined
    points, counts = points_of(9, 20), torch.arange(4, 21, 2).int()
    together = function(points, counts, 12, 2)
    for row, count in enumerate(counts.tolist()):
        alone = function(points[row : row + 1, :count].contiguous(), counts[row : row + 1], 12, 2)
        for ours, theirs in zip(alone[:-1], together[:-1], strict=True):
            assert torch.equal(ours[0], theirs[row, :count])


def test_equal_points_make_no_trouble() -> None:
    for found in bounds_of(torch.full((2, 6, 2), 0.5), tries=3):
        assert bool(found.isfinite().all())


@pytest.mark.parametrize("code", ["compiled", "defined"])
def test_the_size_of_a_map_does_not_matter(code: str) -> None:
    """All but the scale stays the same, to the last bit: a power of two changes no rounding."""
    function = trees._compiled if code == "compiled" and compiled() else trees.defined
    points, counts = points_of(6, 15), torch.full((6,), 15).int()
    small, large = (function(points * factor, counts, 12, 2) for factor in (1, 2**24))
    for one, other in zip(small[:-1], large[:-1], strict=True):
        assert torch.equal(one, other)
    assert torch.equal(small.scale * 2**24, large.scale)
