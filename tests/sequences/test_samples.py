"""What is estimated from samples, against enumeration."""

from __future__ import annotations

import math

import pytest
import torch
from languages import END, Language, drawn_often

from gumbeldore.sequences import Rounds, Scorer, sample, search
from gumbeldore.sequences.models import as_policy

TIMES = 1500


def value(sequence):
    return float(len(sequence)) + 2.0 * (sequence[-1:] == (1,))


def estimates(language, how, learning):
    problem = language.problem()
    scorers = [Scorer(lambda sequences: [-value(s) for s in sequences]) for _ in range(TIMES)] if learning else None
    found = list(
        search(problem, as_policy(language), problem.start([()] * TIMES), how, torch.arange(TIMES) * 977 + 5, scorers)
    )[-1]
    return [samples.estimate(value) for samples in found]


@pytest.mark.parametrize(("width", "rounds", "sigma"), [(4, 1, 0.0), (3, 3, 0.0), (4, 2, 0.4), (1, 4, 0.0)])
def test_eq_3_is_unbiased_over_all_rounds_whatever_is_learnt(width, rounds, sigma):
    language = Language(4, 3, seed=1)
    truth = sum(p * value(s) for s, p in language.distribution().items())
    found = estimates(language, Rounds(width, rounds, sigma=sigma), sigma > 0)
    unbiased = torch.tensor([each.unbiased for each in found])
    error = float(unbiased.std()) / math.sqrt(TIMES)
    assert abs(float(unbiased.mean()) - truth) < 4 * error
    if width > 1:
        claimed = torch.tensor([each.unbiased_error for each in found]).square().mean()
        assert float(claimed) == pytest.approx(float(unbiased.var()), rel=0.25)


def test_eq_4_has_the_smaller_error_and_says_how_small():
    language = Language(4, 3, seed=1)
    truth = sum(p * value(s) for s, p in language.distribution().items())
    found = estimates(language, Rounds(6, 2, sigma=0.0), False)
    mean = torch.tensor([each.mean for each in found])
    spread = float((mean - truth).square().mean().sqrt())
    assert spread < float(torch.tensor([each.unbiased for each in found]).std())
    claimed = float(torch.tensor([each.error for each in found]).square().mean().sqrt())
    assert claimed == pytest.approx(spread, rel=0.35)


def test_an_exhausted_search_knows_expectations_exactly():
    language = Language(4, 3, seed=1)
    truth = sum(p * value(s) for s, p in language.distribution().items())
    for width, rounds in ((500, 1), (5, 30)):
        estimate = drawn_often(as_policy(language), language.problem(), Rounds(width, rounds, sigma=0.0), 1)[0].estimate(value)
        assert estimate.mean == pytest.approx(truth)
        assert estimate.unbiased == pytest.approx(truth)
        assert estimate.error == estimate.unbiased_error == 0


def test_a_beam_of_one_cannot_say_how_sure_it_is():
    found = sample(Language(4, 3), end=END, max_length=3, beam_width=1, rounds=1)
    assert math.isnan(found.estimate(len).error)


def test_samples_are_in_the_order_of_rounds_and_of_noise():
    found = sample(Language(5, 5), end=END, max_length=5, beam_width=6, rounds=3)
    assert found.round.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    for number in range(3):
        assert found.perturbed[found.round == number].diff().max() <= 0
    assert float(found.log_prob.exp().sum()) + found.remaining_mass == pytest.approx(1)
    assert [c.tokens for c in found.best(2)] == [
        found.sequences[i] for i in found.log_prob.argsort(descending=True)[:2].tolist()
    ]
