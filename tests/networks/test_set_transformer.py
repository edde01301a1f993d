"""The generic policy: what it sees, and that it has no order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from routing import awake, seeded

from gumbeldore.errors import ContractError
from gumbeldore.networks.layers import FoldedStack
from gumbeldore.networks.set_transformer import Features, SetPolicy
from gumbeldore.problem import State


@dataclass(frozen=True)
class Items(State):
    """Items with two features, some of them gone, and a number for the whole."""

    per_instance: ClassVar[tuple[str, ...]] = ()

    values: torch.Tensor
    present: torch.Tensor
    whole: torch.Tensor


class Scorer(SetPolicy):
    item_features, whole_features = 2, 1

    def features(self, state: Items) -> Features:
        return Features(state.values, state.present, state.whole)


class WithoutWhole(SetPolicy):
    item_features = 2

    def features(self, state: Items) -> Features:
        return Features(state.values, state.present)


def items(rows: int = 3, count: int = 7) -> Items:
    values = torch.randn(rows, count, 2, generator=seeded(1))
    present = torch.rand(rows, count, generator=seeded(2)) < 0.7
    present[:, 0] = True
    return Items(torch.arange(rows), values, present, torch.randn(rows, 1, generator=seeded(3)))


def scorer(kind: type[SetPolicy] = Scorer) -> SetPolicy:
    torch.manual_seed(0)
    return awake(kind(d=16, layers=2, heads=2, ff=32)).eval()


def logits(policy: SetPolicy, state: Items) -> torch.Tensor:
    with torch.no_grad():
        return policy(state, policy.prepare(state))


def test_a_permutation_of_the_items_permutes_the_logits():
    state, order = items(), torch.randperm(7, generator=seeded(4))
    shuffled = Items(state.instance, state.values[:, order], state.present[:, order], state.whole)
    torch.testing.assert_close(logits(scorer(), shuffled), logits(scorer(), state)[:, order])


def test_items_that_are_gone_are_not_looked_at():
    state = items()
    changed = state.values.where(state.present[..., None], torch.tensor(99.0))
    other = Items(state.instance, changed, state.present, state.whole)
    torch.testing.assert_close(logits(scorer(), other), logits(scorer(), state))
    assert bool((logits(scorer(), state)[~state.present] == 0).all())


def test_the_whole_matters_only_to_a_policy_that_asks_for_it():
    state = items()
    other = Items(state.instance, state.values, state.present, state.whole + 1)
    assert not torch.allclose(logits(scorer(), state), logits(scorer(), other))
    assert torch.equal(logits(scorer(WithoutWhole), state), logits(scorer(WithoutWhole), other))


def test_a_row_gets_the_same_logits_alone_and_among_others():
    state = items(5)
    for row in range(5):
        alone = logits(scorer(), state.rows(torch.tensor([row])))
        torch.testing.assert_close(alone[0], logits(scorer(), state)[row], atol=1e-6, rtol=1e-5)


def test_the_prepared_blocks_give_what_the_definition_gives():
    policy, state = scorer(), items()
    with torch.no_grad():
        prepared = policy.prepare(state)
        if not isinstance(prepared, FoldedStack):
            pytest.skip("the blocks are not compiled here")
        plain = policy(state, policy.blocks)
    torch.testing.assert_close(logits(policy, state), plain, atol=1e-5, rtol=1e-4)


def test_other_numbers_of_features_than_it_says_are_one_line():
    class Wrong(WithoutWhole):
        item_features = 5

    with pytest.raises(
        ContractError, match=r"`Wrong.item_features` must be the number that `features` returns, got 5 and 2 features"
    ):
        Wrong(16, 1, 2, 16)(items())


def test_gradients_reach_every_weight():
    policy = scorer().train()
    policy(items()).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in policy.parameters())
