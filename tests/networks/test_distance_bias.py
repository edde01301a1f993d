"""Tests of the windows with which attention may begin."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear

from gumbeldore.errors import SettingsError
from gumbeldore.networks.distance_bias import DistanceBias, betas, square
from gumbeldore.policies import CVRPPolicy, TSPPolicy
from gumbeldore.problems import TSP


def test_scores_begin_as_minus_beta_times_the_squared_distance_up_to_a_constant_of_the_query() -> None:
    torch.manual_seed(0)
    points = torch.rand(6, 2, dtype=torch.float64)
    policy = TSPPolicy(32, 2, 4, 64, features=(DistanceBias(),)).double()
    x = policy.node_embedding(torch.cat([points, square(points)], -1))
    attention = policy.graph_encoder.blocks[1].self_attn
    q, k, _ = linear(x, attention.in_proj_weight, attention.in_proj_bias).view(6, 3, 4, 8).permute(1, 2, 0, 3)
    for head, beta in enumerate(betas(4)):
        if beta > 0:
            scores = q[head, :, :3] @ k[head, :, :3].T / 8**0.5
            expected = -beta * torch.cdist(2 * points, 2 * points).square()
            rest = scores - expected
            assert torch.allclose(rest, rest[:, :1].expand_as(rest), atol=1e-9)


def test_windows_reach_from_wide_to_narrow_and_leave_a_quarter_of_the_heads_free() -> None:
    assert betas(8)[:2] == [0, 0]
    assert betas(8)[2:] == sorted(betas(8)[2:])
    assert betas(4).count(0) == 1
    assert betas(2) == [0, 2]


def test_networks_without_windows_keep_the_weights_of_the_paper() -> None:
    for policy in (TSPPolicy(16, 1, 2, 32), CVRPPolicy(16, 1, 2, 32)):
        assert all(block.resweight.item() == 0 for block in policy.graph_encoder.blocks)
    assert TSPPolicy(16, 1, 2, 32).node_embedding.in_features == 2
    assert CVRPPolicy(16, 1, 2, 32).node_embedding.in_features == 4


def test_a_distance_biased_network_does_not_depend_on_the_order_of_cities() -> None:
    torch.manual_seed(0)
    policy, points = TSPPolicy(32, 2, 4, 64, features=(DistanceBias(),)), torch.rand(3, 7, 2)
    shuffled = [0, 4, 2, 6, 1, 5, 3]
    with torch.no_grad():
        state, other = TSP(7).instances(points), TSP(7).instances(points[:, shuffled])
        assert torch.allclose(policy(state)[:, shuffled], policy(other), atol=1e-5)


def test_heads_that_are_too_narrow_for_a_window_are_refused() -> None:
    with pytest.raises(
        SettingsError, match="The feature `distance-bias` needs heads of a width of at least 3, got `d` / `heads` = 2"
    ):
        TSPPolicy(16, 1, 8, 32, features=(DistanceBias(),))
