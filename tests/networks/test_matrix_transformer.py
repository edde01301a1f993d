"""The generic policy for items with a matrix between them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from routing import awake, check_all_weights_learn, check_paths_agree, check_rows_are_independent, partial, seeded

from gumbeldore import Greedy, Gumbeldore, TrainingSettings, check_problem, load_policy, save_policy, self_improve
from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.networks import MatrixSize

sys.path.append(str(Path(__file__).parents[2] / "examples"))
from asymmetric_tour import KIT, AsymmetricPolicy, AsymmetricTour

STEPS = torch.tensor([0, 3, 3, 6, 7])


def small(**sizes: int) -> AsymmetricPolicy:
    torch.manual_seed(0)
    policy = awake(AsymmetricPolicy(**{"d": 16, "layers": 3, "heads": 2, "ff": 32, "biased": 2, **sizes}))
    assert isinstance(policy, AsymmetricPolicy)
    return policy.eval()


def logits(policy: AsymmetricPolicy, state: Any) -> torch.Tensor:
    with torch.no_grad():
        return policy(state, policy.prepare(state))


def test_the_example_keeps_the_contract() -> None:
    check_problem(AsymmetricTour(7))


def test_its_verifier_confirms_its_objective() -> None:
    problem = AsymmetricTour(8)
    state = problem.generate(3, generator=seeded(0))
    found = Greedy()(problem, small(), state, seeds=torch.zeros(3, dtype=torch.long))
    for row in range(3):
        assert KIT.solution_format.verify is not None
        verdict = KIT.solution_format.verify({"times": state.times[row].numpy()}, found.best_actions[row].tolist())
        assert verdict.objective == pytest.approx(found.best_objective[row].item())


@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_different_lengths_do_not_influence_each_other(gradients: bool) -> None:
    problem = AsymmetricTour(9)
    check_rows_are_independent(problem, small(), partial(problem, 5, STEPS), gradients=gradients)


@pytest.mark.parametrize("biased", [1, 2, 3])
def test_inference_computes_what_training_computes(biased: int) -> None:
    problem = AsymmetricTour(9)
    check_paths_agree(problem, small(biased=biased), partial(problem, 5, STEPS))


def test_every_parameter_gets_a_gradient() -> None:
    problem = AsymmetricTour(9)
    check_all_weights_learn(problem, small(), partial(problem, 5, STEPS))


def test_a_permutation_of_the_items_permutes_the_logits() -> None:
    state = partial(AsymmetricTour(7), 3, 2)
    order = torch.cat([torch.tensor([0]), 1 + torch.randperm(6, generator=seeded(4))])
    where = order.argsort()
    shuffled = replace(
        state, times=state.times[:, order][:, :, order], current=where[state.current], visited=state.visited[:, order]
    )
    torch.testing.assert_close(logits(small(), shuffled), logits(small(), state)[:, order])


def test_it_sees_what_is_between_two_items_that_are_left() -> None:
    state = AsymmetricTour(5).generate(1, generator=seeded(0))
    times = state.times.clone()
    times[0, 2, 3] += 1  # neither from the current city nor to the start
    changed = logits(small(), replace(state, times=times)) - logits(small(), state)
    assert bool((changed.abs() > 1e-4).any())


def test_what_is_between_items_that_are_gone_does_not_matter() -> None:
    state = partial(AsymmetricTour(7), 1, 3)
    gone = state.visited[0].nonzero().flatten()
    gone = gone[(gone != state.current[0]) & (gone != 0)]
    times = state.times.clone()
    times[0, gone] = times[0, :, gone] = 5.0
    torch.testing.assert_close(logits(small(), replace(state, times=times)), logits(small(), state))


def test_it_learns_from_its_own_samples() -> None:
    problem, policy = AsymmetricTour(8), AsymmetricPolicy(d=16, layers=2, heads=2, ff=32, biased=1)
    validation = problem.generate(40, generator=seeded(9))
    settings = TrainingSettings(epochs=4, instances=32, batches=25, batch_size=32, learning_rate=3e-3, sampling_batch=32)
    before = Greedy()(problem, policy, validation, seeds=torch.zeros(40, dtype=torch.long)).best_objective.mean().item()
    epochs = list(self_improve(problem, policy, Gumbeldore(8, 2), validation=validation, settings=settings))
    assert epochs[-1].best_validation > before + 0.1


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    policy, state = small(), partial(AsymmetricTour(6), 2, 1)
    save_policy(tmp_path / "mine.safetensors", policy)
    assert torch.equal(logits(load_policy(tmp_path / "mine.safetensors", AsymmetricPolicy), state), logits(policy, state))  # type: ignore[arg-type]


def test_other_numbers_of_features_than_it_says_are_one_line() -> None:
    class Wrong(AsymmetricPolicy):
        item_features = 3

    class Flat(AsymmetricPolicy):
        pair_features = 1

    state = AsymmetricTour(4).generate(1, generator=seeded(0))
    with pytest.raises(ContractError, match=r"`Wrong.item_features` must be the number that `features` returns, got 3 and 2"):
        Wrong(16, 1, 2, 16, 1)(state)
    with pytest.raises(ContractError, match=r"`Flat.pair_features` must be the number that `features` returns, got 1 and 2"):
        Flat(16, 1, 2, 16, 1)(state)


def test_more_biased_layers_than_layers_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"`biased` must lie in 1 .. `layers`, got 4 with `layers` = 3"):
        MatrixSize(biased=4)
