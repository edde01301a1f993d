"""The generic policy for items in sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from routing import awake, check_all_weights_learn, check_paths_agree, check_rows_are_independent, partial, seeded

from gumbeldore import Greedy, Gumbeldore, TrainingSettings, self_improve
from gumbeldore.errors import ContractError
from gumbeldore.networks import SequenceFeatures, SequencePolicy
from gumbeldore.networks.layers import Block
from gumbeldore.problems import JSSP
from gumbeldore.problems.jssp.problem import JSSPState

STEPS = torch.tensor([0, 5, 9, 2, 11])
PROBLEM = JSSP(4, 3)


class ShopPolicy(SequencePolicy):
    """A job shop: operations by their time, and when their job could go on."""

    step_features, whole_features = 2, 1
    grouped: ClassVar[bool] = True

    def features(self, state: JSSPState) -> SequenceFeatures:
        times, machines = (each[state.instance] for each in (state.times, state.machines))
        starts = state.next_starts().float()
        behind = (starts - starts.masked_fill(~state.unfinished, torch.inf).amin(1, keepdim=True)).where(state.unfinished, 0)
        steps = torch.stack([times / 100, (behind / 100)[:, :, None].expand_as(times)], -1)
        present = torch.arange(state.operations) >= state.scheduled[:, :, None]
        whole = state.scheduled.sum(1, keepdim=True) / times[0].numel()
        return SequenceFeatures(steps, present, machines if self.grouped else None, whole)


class Ungrouped(ShopPolicy):
    grouped = False


def small(kind: type[SequencePolicy] = ShopPolicy, **sizes: int) -> SequencePolicy:
    torch.manual_seed(0)
    policy = awake(kind(**{"d": 16, "layers": 2, "heads": 2, "ff": 32, **sizes}))
    assert isinstance(policy, SequencePolicy)
    return policy.eval()


def logits(policy: SequencePolicy, state: Any) -> torch.Tensor:
    with torch.no_grad():
        return policy(state, policy.prepare(state))


@pytest.mark.parametrize("kind", [ShopPolicy, Ungrouped])
@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_different_lengths_do_not_influence_each_other(kind: type[SequencePolicy], gradients: bool) -> None:
    check_rows_are_independent(PROBLEM, small(kind), partial(PROBLEM, 5, STEPS), gradients=gradients)


@pytest.mark.parametrize("kind", [ShopPolicy, Ungrouped])
def test_inference_computes_what_training_computes(kind: type[SequencePolicy]) -> None:
    check_paths_agree(PROBLEM, small(kind), partial(PROBLEM, 5, STEPS))


def test_compiled_blocks_compute_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    state = partial(PROBLEM, 5, STEPS)
    expected = logits(small(), state)
    monkeypatch.setattr(Block, "compiled", property(lambda self: False))
    torch.testing.assert_close(logits(small(), state), expected, rtol=0, atol=1e-5)


def test_every_parameter_gets_a_gradient() -> None:
    check_all_weights_learn(PROBLEM, small(), partial(PROBLEM, 5, STEPS))


def test_a_permutation_of_the_sequences_permutes_the_logits() -> None:
    state, order = partial(PROBLEM, 3, 4), torch.tensor([2, 0, 3, 1])
    available = torch.cat([state.job_available[:, order], state.machine_available], 1)
    shuffled = replace(
        state,
        times=state.times[:, order],
        machines=state.machines[:, order],
        scheduled=state.scheduled[:, order],
        available=available,
    )
    torch.testing.assert_close(logits(small(), shuffled), logits(small(), state)[:, order])


def test_the_order_within_a_sequence_matters_and_so_do_groups() -> None:
    state = PROBLEM.generate(2, generator=seeded(0))
    turned = replace(state, times=state.times.flip(2), machines=state.machines.flip(2))
    assert not torch.allclose(logits(small(Ungrouped), turned), logits(small(Ungrouped), state))
    other = replace(state, machines=state.machines.roll(1, 2))
    ignoring, seeing = small(Ungrouped), small()
    first = state.scheduled  # availability is 0 everywhere, so only groups can tell the two apart
    assert not bool(first.any())
    torch.testing.assert_close(logits(ignoring, other), logits(ignoring, state))
    assert not torch.allclose(logits(seeing, other), logits(seeing, state), atol=1e-4)


def test_sequences_that_are_done_have_a_logit_of_zero() -> None:
    state = partial(PROBLEM, 5, STEPS)
    assert bool((~state.unfinished).any())
    assert not bool(logits(small(), state)[~state.unfinished].any())


def test_it_learns_from_its_own_samples() -> None:
    problem = JSSP(4, 3)
    torch.manual_seed(0)
    policy = ShopPolicy(d=16, layers=1, heads=2, ff=32)
    validation = problem.generate(40, generator=seeded(9))
    settings = TrainingSettings(epochs=3, instances=32, batches=25, batch_size=32, learning_rate=3e-3, sampling_batch=32)
    before = Greedy()(problem, policy, validation, seeds=torch.zeros(40, dtype=torch.long)).best_objective.mean().item()
    epochs = list(self_improve(problem, policy, Gumbeldore(8, 2), validation=validation, settings=settings))
    assert epochs[-1].best_validation > before + 10


def test_other_numbers_of_features_than_it_says_are_one_line() -> None:
    class Wrong(ShopPolicy):
        whole_features = 0

    with pytest.raises(ContractError, match=r"`Wrong.whole_features` must be the number that `features` returns, got 0 and 1"):
        Wrong(16, 1, 2, 16)(PROBLEM.generate(1, generator=seeded(0)))
