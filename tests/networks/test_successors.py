"""The auxiliary loss of what follows each token."""

from __future__ import annotations

import pytest
import torch

from gumbeldore.networks.successors import successor_losses


def test_the_loss_is_the_mean_over_tokens_that_have_a_target() -> None:
    scores = torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([[1, 3, -1, -1], [-1, -1, -1, -1]])
    first = -torch.log_softmax(scores[0, 0, [1, 2, 3]], 0)[0]
    second = -torch.log_softmax(scores[0, 1, [0, 2, 3]], 0)[2]
    assert torch.allclose(
        successor_losses(scores, target, torch.ones(2, 4, dtype=torch.bool)),
        torch.stack([(first + second) / 2, torch.zeros_like(first)]),
    )


def test_tokens_that_cannot_follow_take_no_part() -> None:
    scores = torch.randn(1, 3, 3, generator=torch.Generator().manual_seed(0))
    target, allowed = torch.tensor([[2, -1, -1]]), torch.tensor([[False, False, True]])
    assert successor_losses(scores, target, allowed).item() == pytest.approx(0, abs=1e-6)
