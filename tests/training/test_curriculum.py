"""Tests of stages, of averaged weights, and that both resume bit for bit."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from gumbeldore import Epoch, Gumbeldore, Stage, TrainingSettings, self_improve
from gumbeldore.errors import SettingsError
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.training import greedy_objective

SETTINGS = TrainingSettings(epochs=5, instances=6, batches=2, batch_size=8, learning_rate=1e-3, ema=0.5)


def fresh() -> TSPPolicy:
    torch.manual_seed(0)
    return TSPPolicy(16, 1, 2, 32)


def instances(cities: int, count: int = 5):
    return TSP(cities).generate(count, generator=torch.Generator().manual_seed(9))


def staged(**ends: int) -> list[Stage]:
    return [Stage(TSP(6), instances(6), **ends), Stage(TSP(9), instances(9), learning_rate=5e-4)]


def run(policy: TSPPolicy, stages: list[Stage], settings: TrainingSettings = SETTINGS, resume=None):
    return self_improve(
        TSP(6), policy, Gumbeldore(4, 2), validation=instances(6), settings=settings, stages=stages, resume=resume
    )


def numbers(epoch: Epoch) -> tuple:
    return epoch.index, epoch.stage, epoch.loss, epoch.sampled, epoch.validation, epoch.best_validation, epoch.learning_rate


def test_the_next_stage_has_its_own_instances_and_learning_rate() -> None:
    sizes = {}
    for epoch in run(fresh(), staged(epochs=2)):
        sizes[epoch.index] = [group["coordinates"].shape[1] for group in epoch.checkpoint()["dataset"]]
        assert epoch.stage == (1 if epoch.index <= 2 else 2)
        assert epoch.learning_rate == (1e-3 if epoch.index <= 2 else 5e-4)
        assert epoch.metrics()["stage"] == epoch.stage
        assert -epoch.best_validation > (0 if epoch.stage == 1 else 2.5)  # nine cities need longer tours than six
    assert {size for epoch, found in sizes.items() for size in found if epoch <= 2} <= {6}
    assert {size for epoch, found in sizes.items() for size in found if epoch > 2} <= {9}


def test_a_window_moves_on_into_the_next_stage() -> None:
    settings = TrainingSettings(epochs=4, instances=4, batches=1, batch_size=4, replay_window=2, generating="current")
    sizes = [
        {group["coordinates"].shape[1] for group in epoch.checkpoint()["dataset"]}
        for epoch in run(fresh(), staged(epochs=2), settings)
    ]
    assert sizes == [{6}, {6}, {6, 9}, {9}]


def test_a_stage_ends_when_it_stalls() -> None:
    settings = TrainingSettings(epochs=4, instances=4, batches=1, batch_size=4, learning_rate=1e-12)  # learns nothing
    assert [epoch.stage for epoch in run(fresh(), staged(stalled=2), settings)] == [1, 1, 2, 2]


def test_a_stage_ends_with_its_minutes_and_the_last_one_never() -> None:
    stages = [Stage(TSP(6), instances(6), minutes=1e-9), Stage(TSP(7), instances(7), epochs=1)]
    assert [epoch.stage for epoch in run(fresh(), stages)] == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_curriculum_resumes_bit_for_bit_before_at_and_after_a_change_of_stage(stop: int) -> None:
    whole = [numbers(epoch) for epoch in run(fresh(), staged(epochs=2))]
    *_, last = islice(run(fresh(), staged(epochs=2)), stop)
    saved = last.checkpoint()
    policy = fresh()
    assert [numbers(epoch) for epoch in run(policy, staged(epochs=2), resume=saved)] == whole[stop:]


def test_patience_counts_in_the_last_stage_only() -> None:
    settings = TrainingSettings(epochs=9, instances=4, batches=1, batch_size=4, learning_rate=1e-12, patience=1)
    assert [epoch.stage for epoch in run(fresh(), staged(epochs=3), settings)] == [1, 1, 1, 2]


def test_averaged_weights_are_the_running_mean() -> None:
    settings = TrainingSettings(epochs=1, instances=4, batches=1, batch_size=4, learning_rate=1e-2, ema=0.9)
    policy = fresh()
    (epoch,) = run(policy, [], settings)
    saved, before = epoch.checkpoint(), fresh().state_dict()
    for name, mean in saved["averaged"].items():
        expected = before[name] / 11 + saved["policy"][name] * 10 / 11  # the first step counts ten times the start
        assert torch.allclose(mean, expected, atol=1e-7)
    assert not torch.equal(saved["averaged"]["node_embedding.weight"], saved["policy"]["node_embedding.weight"])


def test_the_averaged_policy_is_the_one_that_is_judged() -> None:
    settings = TrainingSettings(epochs=1, instances=6, batches=4, batch_size=8, learning_rate=1e-2, ema=0.9)
    (epoch,) = run(fresh(), [], settings)
    judged = fresh()
    judged.load_state_dict(epoch.checkpoint()["averaged"])
    with torch.no_grad():
        expected = greedy_objective(TSP(6), judged, instances(6)).mean().item()
    assert epoch.validation == pytest.approx(expected, abs=1e-6)


def test_the_share_of_a_running_mean_must_be_less_than_one() -> None:
    with pytest.raises(SettingsError, match="`ema` must lie in 0"):
        TrainingSettings(ema=1.0)
