"""Tests of what a network sees from where it stands."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from gumbeldore.networks.distance_bias import DistanceBias
from gumbeldore.networks.frame import centroid, in_frame, turned
from gumbeldore.networks.routes import CanonicalFrame, RouteFeature
from gumbeldore.policies import CVRPPolicy, TSPPolicy
from gumbeldore.problem import replay
from gumbeldore.problems import CVRP, TSP


def moved(points: Float[Tensor, "*axes 2"]) -> Float[Tensor, "*axes 2"]:
    """Turned, mirrored and moved."""
    axis = torch.tensor([math.cos(1.2), math.sin(1.2)], dtype=points.dtype)
    return turned(points, axis.expand_as(points)) * torch.tensor([1.0, -1.0], dtype=points.dtype) + 0.25


def drawn(rows: int = 40, tokens: int = 9) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    points = torch.rand(rows, tokens, 2, generator=generator, dtype=torch.float64)
    candidates = torch.rand(rows, tokens, generator=generator) < 0.7
    candidates[:, 0] = candidates[:, -1] = False
    candidates[:, 1] = True
    return points, candidates


def test_points_that_are_moved_turned_and_mirrored_look_the_same() -> None:
    points, candidates = drawn()
    seen = in_frame(points, points[:, 0], points[:, -1], candidates)
    again = in_frame(moved(points), moved(points[:, 0]), moved(points[:, -1]), candidates)
    torch.testing.assert_close(seen, again, rtol=0, atol=1e-7)


def test_the_current_node_and_the_goal_lie_on_the_first_axis_around_the_centre() -> None:
    points, candidates = drawn()
    (seen, _) = in_frame(points, points[:, 0], points[:, -1], candidates)
    half = torch.full_like(seen[:, 0, 1], 0.5)
    torch.testing.assert_close(seen[:, 0, 1], half)
    torch.testing.assert_close(seen[:, -1, 1], half)
    torch.testing.assert_close((seen[:, 0] + seen[:, -1]) / 2, torch.stack([half, half], 1))
    assert bool((seen[:, 0, 0] < seen[:, -1, 0]).all())


def test_distances_are_those_of_the_seen_points() -> None:
    points, candidates = drawn()
    seen, distances = in_frame(points, points[:, 0], points[:, -1], candidates)
    for index, place in enumerate((0, -1)):
        torch.testing.assert_close(distances[..., index], 2 * (seen - seen[:, place, None]).norm(dim=-1))


def test_a_tour_that_has_just_begun_is_seen_the_same_too() -> None:
    points, candidates = drawn()
    here = points[:, 0]
    seen = in_frame(points, here, here, candidates)
    torch.testing.assert_close(seen, in_frame(moved(points), moved(here), moved(here), candidates), rtol=0, atol=1e-5)


def test_points_that_all_coincide_are_seen_as_finite_numbers() -> None:
    points = torch.full((2, 4, 2), 0.3)
    seen, distances = in_frame(points, points[:, 0], points[:, -1], torch.tensor([[False, True, True, False]] * 2))
    assert bool((seen == 0.5).all())
    assert bool((distances == 0).all())


def test_the_centroid_is_the_same_to_the_last_bit_whatever_else_is_in_a_row() -> None:
    points, candidates = drawn(rows=200, tokens=33)
    wide = torch.cat([points.float(), torch.rand(200, 40, 2)], 1)
    padded = torch.nn.functional.pad(candidates, (0, 40))
    assert torch.equal(centroid(points.float(), candidates), centroid(wide, padded))
    wanted = (points * candidates[..., None]).sum(1) / candidates.sum(1, keepdim=True)
    torch.testing.assert_close(centroid(points, candidates), wanted, rtol=0, atol=1e-9)


def test_what_is_seen_of_a_row_is_the_same_to_the_last_bit_whatever_other_rows_there_are() -> None:
    points, candidates = drawn(rows=64, tokens=17)
    points = points.float()
    seen, distances = in_frame(points, points[:, 0], points[:, -1], candidates)
    for row in range(64):
        only = slice(row, row + 1)
        alone = in_frame(points[only], points[only, 0], points[only, -1], candidates[only])
        assert torch.equal(alone[0], seen[only])
        assert torch.equal(alone[1], distances[only])


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_framed_policy_of_the_tsp_answers_alike_for_alike_instances(steps: int) -> None:
    problem, policy = TSP(12), TSPPolicy(16, 2, 2, 32, features=(DistanceBias(), CanonicalFrame())).double()
    state = problem.generate(6, generator=torch.Generator().manual_seed(0))
    state = replace(state, coordinates=state.coordinates.double())
    walked = replay(problem, state, torch.arange(1, 12).expand(6, -1), torch.full((6,), steps))
    other = replace(walked, coordinates=moved(walked.coordinates))
    torch.testing.assert_close(policy(walked, None), policy(other, None), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_framed_policy_of_the_cvrp_answers_alike_for_alike_instances(steps: int) -> None:
    problem, policy = CVRP(12, 20), CVRPPolicy(16, 2, 2, 32, features=(DistanceBias(), CanonicalFrame())).double()
    state = problem.generate(6, generator=torch.Generator().manual_seed(0))
    state = replace(state, nodes=state.nodes.double())
    walked = replay(problem, state, (2 * torch.arange(12) + 1).expand(6, -1), torch.full((6,), steps))
    other = replace(walked, nodes=moved(walked.nodes))
    torch.testing.assert_close(policy(walked, None), policy(other, None), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("features", [(CanonicalFrame(),), (DistanceBias(), CanonicalFrame())])
def test_rows_of_a_framed_policy_do_not_depend_on_each_other(features: tuple[RouteFeature, ...]) -> None:
    problem, policy = TSP(15), TSPPolicy(32, 2, 2, 64, features=features)
    state = problem.generate(8, generator=torch.Generator().manual_seed(1))
    steps = torch.tensor([0, 3, 9, 1, 12, 5, 5, 2])
    walked = replay(problem, state, torch.arange(1, 15).expand(8, -1), steps)
    with torch.inference_mode():
        context = policy.prepare(walked)
        together = policy(walked, context)
        for row in range(8):
            alone = policy(walked.rows(torch.tensor([row])), context)
            allowed = ~walked.visited[row]
            torch.testing.assert_close(alone[0, allowed], together[row, allowed], rtol=0, atol=1e-6)
