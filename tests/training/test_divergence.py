"""A loss or gradient that is no number: training stops and says where, and the step can be computed again."""

from __future__ import annotations

import pytest
import torch

from gumbeldore.errors import CheckpointError
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.search.samplers import Gumbeldore
from gumbeldore.training import TrainingSettings, self_improve
from gumbeldore.training.checkpoint import load_state, save_state
from gumbeldore.training.divergence import DivergenceError, examined

PROBLEM = TSP(6)


def small_policy() -> TSPPolicy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TSPPolicy(d=16, layers=1, heads=2, ff=32)


def diverged(policy: TSPPolicy, workers: int = 0, **settings: float) -> DivergenceError:
    """The error that a short training ends with."""
    validation = PROBLEM.generate(4, generator=torch.Generator().manual_seed(1))
    chosen = TrainingSettings(**{"epochs": 2, "instances": 4, "batches": 3, "batch_size": 8, **settings})
    with pytest.raises(DivergenceError) as caught:
        list(self_improve(PROBLEM, policy, Gumbeldore(4, 1), validation=validation, settings=chosen, workers=workers))
    return caught.value


@pytest.mark.parametrize("workers", [0, 1])
def test_a_policy_that_explodes_stops_with_epoch_and_batch_and_what_to_do(workers):
    """A huge step leaves weights whose logits are not finite in the next one."""
    error = diverged(small_policy(), workers, learning_rate=1e30)
    assert "epoch 1, batch 2" in str(error)
    assert "lower `learning_rate`" in str(error)
    assert "largest weight is 1e+30" in str(error)
    assert (error.reproducer["epoch"], error.reproducer["batch"]) == (1, 2)


def test_a_gradient_that_is_no_number_stops_although_the_loss_is_one(monkeypatch):
    monkeypatch.setattr("gumbeldore.training.state.can_be_cut", lambda policy: False)  # so that the hook is called
    policy = small_policy()
    policy.policy_linear_out.weight.register_hook(lambda gradient: gradient * torch.nan)
    error = diverged(policy)
    assert "epoch 1, batch 1: loss 1." in str(error)
    assert "gradient norm nan" in str(error)


def test_the_step_is_saved_and_computed_again(tmp_path):
    save_state(tmp_path / "diverged.pt", diverged(small_policy(), learning_rate=1e30).reproducer)
    again = examined(PROBLEM, small_policy(), load_state(tmp_path / "diverged.pt"))
    assert again.failed
    assert "not finite" in again.fault
    assert again.largest_weight == pytest.approx(1e30, rel=1e-3)


def test_a_healthy_step_is_found_healthy():
    error = diverged(small_policy(), learning_rate=1e30)
    healthy = examined(PROBLEM, small_policy(), {**error.reproducer, "policy": small_policy().state_dict()})
    assert not healthy.failed
    assert 0.5 < healthy.loss < 3


def test_parameters_whose_gradient_is_not_finite_are_named():
    error = diverged(small_policy(), learning_rate=1e30)
    policy = small_policy()
    policy.policy_linear_out.bias.register_hook(lambda gradient: gradient * torch.nan)
    found = examined(PROBLEM, policy, {**error.reproducer, "policy": policy.state_dict()})
    assert found.failed
    assert found.parameters == ["policy_linear_out.bias"]
    assert found.rows == []


def test_other_files_are_refused():
    with pytest.raises(CheckpointError, match=r"diverged\.pt"):
        examined(PROBLEM, small_policy(), {"epoch": 1})
