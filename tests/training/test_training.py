"""Algorithm 1: the loop itself, on problems small enough to train in seconds."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from gumbeldore.errors import CheckpointError, ContractError, SettingsError
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.search.samplers import BeamSearch, Gumbeldore, StochasticBeamSearch
from gumbeldore.training import (
    Epoch,
    Progress,
    TrainingSettings,
    greedy_objective,
    imitate,
    next_action_loss,
    self_improve,
    self_improve_events,
)
from gumbeldore.training.dataset import Dataset

CITIES = 8
SETTINGS = TrainingSettings(epochs=3, instances=12, batches=8, batch_size=32, learning_rate=3e-3, sampling_batch=5)
SAMPLER = Gumbeldore(beam_width=4, rounds=2)


def fresh_policy(seed: int = 0) -> TSPPolicy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TSPPolicy(d=16, layers=2, heads=2, ff=32)


def validation(count: int = 20):
    return TSP(CITIES).generate(count, generator=torch.Generator().manual_seed(99))


def same_weights(a, b) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_a_few_epochs_improve_the_greedy_tours():
    policy = fresh_policy()
    before = greedy_objective(TSP(CITIES), policy, validation()).mean().item()
    settings = TrainingSettings(epochs=6, instances=40, batches=30, batch_size=64, learning_rate=3e-3)
    *_, last = self_improve(TSP(CITIES), policy, SAMPLER, validation=validation(), settings=settings)
    assert last.best_validation > before + 0.3


def test_a_training_ends_as_soon_as_its_goal_is_reached():
    def trained(goal):
        settings = replace(SETTINGS, epochs=4, goal=goal)
        return list(self_improve(TSP(CITIES), fresh_policy(), SAMPLER, validation=validation(), settings=settings))

    everything = trained(None)
    reached = next(epoch for epoch in everything if epoch.improved)
    stopped = trained(reached.validation)
    assert [epoch.index for epoch in stopped] == list(range(1, reached.index + 1))
    assert len(trained(0.0)) == 4  # no tour has length 0
    assert trained(-100.0) == []  # every tour is shorter


def test_the_best_policy_generates_and_the_dataset_grows_until_it_improves():
    """The dataset's size after each epoch follows from the improvements alone."""
    epochs = list(
        self_improve(
            TSP(CITIES),
            fresh_policy(),
            SAMPLER,
            validation=validation(),
            settings=TrainingSettings(epochs=8, instances=10, batches=2, batch_size=8, learning_rate=0.02),
        )
    )
    size = 0
    for epoch in epochs:
        size += 10
        assert epoch.dataset_size == size
        if epoch.improved:
            size = 0
    assert any(e.improved for e in epochs)
    assert not all(e.improved for e in epochs)
    values = [e.validation for e in epochs if e.improved]
    assert values == sorted(values)
    assert epochs[-1].best_validation == values[-1]


def test_a_window_keeps_the_solutions_of_the_last_epochs_whatever_improves():
    settings = TrainingSettings(epochs=6, instances=10, batches=2, batch_size=8, learning_rate=0.02, replay_window=3)
    epochs = list(self_improve(TSP(CITIES), fresh_policy(), SAMPLER, validation=validation(), settings=settings))
    assert [epoch.dataset_size for epoch in epochs] == [10, 20, 30, 30, 30, 30]
    assert any(epoch.improved for epoch in epochs)
    (group,) = epochs[-1].checkpoint()["dataset"]
    assert group["solution_age"].tolist() == [2] * 10 + [1] * 10 + [0] * 10


def test_a_run_with_a_window_resumes_bit_for_bit():
    def run(policy, settings, resume=None):
        return list(self_improve(TSP(CITIES), policy, SAMPLER, validation=validation(), settings=settings, resume=resume))

    settings, whole, halves = replace(SETTINGS, epochs=4, replay_window=2), fresh_policy(), fresh_policy()
    run(whole, settings)
    saved = copy.deepcopy(run(halves, replace(settings, epochs=2))[-1].checkpoint())
    again = fresh_policy()
    epochs = run(again, settings, saved)
    assert [epoch.dataset_size for epoch in epochs] == [2 * SETTINGS.instances] * 2
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize("wrong", [{"replay_window": 0}, {"replay_window": -1}])
def test_a_window_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(SettingsError, match="`replay_window`"):
        TrainingSettings(**wrong)


class Recording(StochasticBeamSearch):
    """Remembers the weights of every policy that it samples from."""

    def __call__(self, problem, policy, state, **options):
        self.seen.append(copy.deepcopy(policy.state_dict()))
        return super().__call__(problem, policy, state, **options)


@pytest.mark.parametrize("with_best", [True, False])
def test_sampling_uses_the_best_policy_unless_told_otherwise(monkeypatch, with_best):
    """No epoch counts as an improvement here, so the best policy stays the initial one."""
    monkeypatch.setattr("gumbeldore.training.Training.judge", lambda self, value: False)
    seen = []
    monkeypatch.setattr(Recording, "seen", seen, raising=False)
    policy = fresh_policy()
    initial = copy.deepcopy(policy.state_dict())
    settings = TrainingSettings(
        epochs=2,
        instances=4,
        batches=3,
        batch_size=8,
        learning_rate=0.1,
        generating="best" if with_best else "current",
        replay_window=None if with_best else 1,
    )
    epochs = list(self_improve(TSP(CITIES), policy, Recording(4, 1), validation=validation(), settings=settings))
    unchanged = all(torch.equal(initial[name], seen[-1][name]) for name in initial)
    assert unchanged == with_best
    assert [e.dataset_size for e in epochs] == ([4, 8] if with_best else [4, 4])


def test_a_resumed_run_continues_bit_for_bit():
    def run(policy, settings, resume=None):
        return list(self_improve(TSP(CITIES), policy, SAMPLER, validation=validation(), settings=settings, resume=resume))

    whole = fresh_policy()
    expected = run(whole, SETTINGS)
    saved = None
    for epoch in self_improve(TSP(CITIES), fresh_policy(), SAMPLER, validation=validation(), settings=SETTINGS):
        saved = copy.deepcopy(epoch.checkpoint())
        if epoch.index == 2:
            break
    resumed = fresh_policy(seed=7)  # other weights, to be replaced
    (third,) = run(resumed, SETTINGS, saved)
    assert same_weights(whole, resumed)
    assert (third.loss, third.sampled, third.validation) == (expected[2].loss, expected[2].sampled, expected[2].validation)
    assert third.dataset_size == expected[2].dataset_size


def test_resuming_with_other_settings_is_refused_by_name():
    saved = next(self_improve(TSP(CITIES), fresh_policy(), SAMPLER, validation=validation(), settings=SETTINGS)).checkpoint()
    other = TrainingSettings(epochs=3, instances=12, batches=9, batch_size=32, learning_rate=3e-3, sampling_batch=5)
    with pytest.raises(CheckpointError, match="batches"):
        next(self_improve(TSP(CITIES), fresh_policy(), SAMPLER, validation=validation(), settings=other, resume=saved))


def test_results_do_not_depend_on_the_sampling_batch():
    outcomes = []
    for size in (1, 5, 12):
        settings = TrainingSettings(epochs=1, instances=12, batches=1, batch_size=4, learning_rate=1e-3, sampling_batch=size)
        epoch = next(self_improve(TSP(CITIES), fresh_policy(), SAMPLER, validation=validation(), settings=settings))
        outcomes.append(epoch.sampled)
    assert outcomes[0] == pytest.approx(outcomes[1], abs=1e-6)
    assert outcomes[0] == pytest.approx(outcomes[2], abs=1e-6)


def test_the_sampler_may_depend_on_the_epoch():
    asked = []

    def schedule(epoch):
        asked.append(epoch)
        return SAMPLER

    list(self_improve(TSP(CITIES), fresh_policy(), schedule, validation=validation(), settings=SETTINGS))
    assert asked == [1, 2, 3]


def test_events_report_every_phase_to_its_end():
    events = list(self_improve_events(TSP(CITIES), fresh_policy(), SAMPLER, validation=validation(), settings=SETTINGS))
    phases = [e.phase for e in events if isinstance(e, Progress) and e.epoch == 1 and e.done == e.total]
    assert phases == ["sampling", "training", "validating"]
    assert sum(isinstance(e, Epoch) for e in events) == 3


def test_patience_stops_a_stalled_run():
    settings = TrainingSettings(epochs=50, instances=2, batches=1, batch_size=2, learning_rate=1e-12, patience=2)
    epochs = list(self_improve(TSP(CITIES), fresh_policy(), SAMPLER, validation=validation(), settings=settings))
    stalls = [e.index for e in epochs if not e.improved]
    assert len(epochs) < 50
    assert stalls[-2:] == [len(epochs) - 1, len(epochs)]


def test_the_learning_rate_decays_only_when_asked_to():
    assert TrainingSettings(epochs=10).learning_rate_at(10) == TrainingSettings().learning_rate_at(1) == 2e-4
    decaying = TrainingSettings(epochs=11, learning_rate=1.0, final_learning_rate=0.1)
    assert decaying.learning_rate_at(1) == pytest.approx(1.0)
    assert decaying.learning_rate_at(6) == pytest.approx(0.55)
    assert decaying.learning_rate_at(11) == pytest.approx(0.1)


def test_the_loss_is_the_mean_negative_log_probability_of_the_targets():
    problem, policy = TSP(CITIES), fresh_policy()
    state = validation(6)
    tours = BeamSearch(2)(problem, policy, state, seeds=torch.zeros(6, dtype=torch.long)).best_actions
    examples = problem.examples(state, tours, generator=torch.Generator().manual_seed(0))
    logits = policy(examples.state, None).masked_fill(~problem.mask(examples.state), -torch.inf)
    expected = torch.nn.functional.cross_entropy(logits, examples.action)
    assert next_action_loss(problem, policy, examples).item() == pytest.approx(expected.item(), abs=1e-6)


def test_a_diverged_policy_is_reported_before_hours_are_lost():
    policy = fresh_policy()
    torch.nn.init.constant_(policy.policy_linear_out.weight, float("nan"))
    with pytest.raises(ContractError, match="not finite"):
        next(self_improve(TSP(CITIES), policy, SAMPLER, validation=validation(), settings=SETTINGS))


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch_size": 0}, {"learning_rate": -1.0}, {"patience": 0}])
def test_settings_out_of_range_are_named(wrong):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        TrainingSettings(**wrong)


def test_supervised_training_imitates_good_solutions():
    problem, policy = TSP(CITIES), fresh_policy()
    state = TSP(CITIES).generate(60, generator=torch.Generator().manual_seed(3))
    experts = StochasticBeamSearch(64, 4)(problem, policy, state, generator=torch.Generator().manual_seed(0))
    dataset = Dataset()
    dataset.add(state, experts.best_actions)
    before = greedy_objective(problem, policy, validation()).mean().item()
    settings = TrainingSettings(epochs=4, instances=1, batches=40, batch_size=64, learning_rate=3e-3)
    *_, last = imitate(problem, policy, dataset, validation=validation(), settings=settings)
    assert last.best_validation > before + 0.3
    assert last.sampled is None
    assert last.dataset_size == 60
    assert last.checkpoint()["dataset"] == []


def test_a_dataset_keeps_sizes_apart_and_survives_saving():
    dataset = Dataset()
    generator = torch.Generator().manual_seed(0)
    for cities in (5, 7, 5):
        state = TSP(cities).generate(3, generator=generator)
        dataset.add(state, torch.arange(1, cities).expand(3, -1))
    assert len(dataset) == 9
    assert [len(group.actions) for group in dataset.groups] == [6, 3]
    again = Dataset.from_plain(dataset.to_plain(), type(dataset.groups[0].state), "cpu")
    assert torch.equal(again.groups[0].state.coordinates, dataset.groups[0].state.coordinates)
    sizes = {again.sample(TSP(), 4, generator).state.coordinates.shape[1] for _ in range(30)}
    assert sizes == {5, 7}
