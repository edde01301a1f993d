"""Objectives are sums in float64 of coordinates as given, whatever their scale."""

from __future__ import annotations

import pytest
import torch
from answers import generator
from exact import ExactPolicy

from gumbeldore.problems import CVRP, TSP
from gumbeldore.problems.geometry import isometry
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.samplers import BeamSearch

SCALES = [(1e-3, 0.0), (1e-5, 0.0), (1.0, 0.0), (1e4, 0.0), (1.0, 1000.0)]


def lengths(points: torch.Tensor, stops: torch.Tensor) -> torch.Tensor:
    """Of closed tours through these points, in float64."""
    path = points.double().gather(1, stops[..., None].expand(-1, -1, 2))
    return (path - path.roll(-1, 1)).square().sum(-1).sqrt().sum(1)


@pytest.mark.parametrize("sampler", [BeamSearch(3, augmentations=16), Adaptive(effort=20)], ids=["beam", "adaptive"])
@pytest.mark.parametrize(("scale", "shift"), SCALES)
def test_tours_are_as_long_as_their_edges(scale: float, shift: float, sampler) -> None:
    problem = TSP(8)
    state = problem.instances(torch.rand(5, 8, 2, generator=generator(1)) * scale + shift)
    found = sampler(problem, ExactPolicy(problem), state, seeds=torch.arange(5))
    tours = torch.cat([torch.zeros(5, 1, dtype=torch.long), found.best_actions], 1)
    # float32 points that are reflected are rounded at their own scale
    torch.testing.assert_close(found.best_objective, -lengths(state.coordinates, tours), rtol=3e-7, atol=1e-7 * shift)


@pytest.mark.parametrize(("scale", "shift"), SCALES)
def test_without_augmentations_they_are_exact(scale: float, shift: float) -> None:
    problem = TSP(8)
    state = problem.instances(torch.rand(5, 8, 2, generator=generator(1)) * scale + shift)
    found = BeamSearch(3)(problem, ExactPolicy(problem), state, seeds=torch.arange(5))
    tours = torch.cat([torch.zeros(5, 1, dtype=torch.long), found.best_actions], 1)
    torch.testing.assert_close(found.best_objective, -lengths(state.coordinates, tours), rtol=1e-14, atol=0)
    routes = CVRP(3, 9)  # one route: there and back
    nodes = torch.rand(5, 4, 2, generator=generator(2)) * scale + shift
    there = routes.instances(nodes, torch.tensor([[0, 3, 3, 3]]).expand(5, -1), torch.tensor(9))
    given = torch.tensor([[1, 2, 4]]).expand(5, -1)
    for action in given.unbind(1):
        there = routes.step(there, action)
    stops = torch.tensor([[0, 1, 2, 3]]).expand(5, -1)
    torch.testing.assert_close(routes.objective(there), -lengths(nodes, stops), rtol=1e-14, atol=0)


@pytest.mark.parametrize(("scale", "shift"), SCALES)
def test_isometries_keep_distances_at_every_scale(scale: float, shift: float) -> None:
    points = (torch.rand(1, 6, 2, generator=generator(3)) * scale + shift).expand(8, -1, -1)
    seen = isometry(points, torch.arange(8))
    one, other = (torch.cdist(each.double(), each.double()) for each in (points, seen))
    torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6 * scale + 2e-7 * shift)
    assert len({tuple(each.flatten().tolist()) for each in seen}) == 8
    unit = torch.rand(4, 6, 2, generator=generator(4))
    assert torch.equal(isometry(unit, torch.full((4,), 6)), 1 - unit)
