"""Intervals that cover what they promise, and differences with the right sign."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gumbeldore.evaluation.statistics import (
    bootstrap_mean,
    difference_of_runs,
    gaps,
    mean_of_runs,
    paired_difference,
    standard_error,
    student_quantile,
)


def coverage(draw, truth: float, count: int, trials: int = 400) -> float:
    random = np.random.Generator(np.random.PCG64(1))
    hits = 0
    for trial in range(trials):
        estimate = bootstrap_mean(draw(random, count), resamples=300, seed=trial)
        hits += estimate.low <= truth <= estimate.high
    return hits / trials


@pytest.mark.parametrize(
    ("draw", "truth"),
    [(lambda random, n: random.normal(2.0, 3.0, n), 2.0), (lambda random, n: random.exponential(1.0, n), 1.0)],
    ids=["normal", "exponential"],
)
def test_the_interval_covers_the_true_mean_about_as_often_as_it_promises(draw, truth):
    """A share of 0.95 has a standard error of 0.011 over 400 trials; the percentile method is a little short for skewed values."""
    assert 0.89 < coverage(draw, truth, 50) < 0.99


def test_a_lower_level_gives_a_narrower_interval():
    values = np.random.Generator(np.random.PCG64(2)).normal(size=40)
    wide, narrow = bootstrap_mean(values, level=0.95), bootstrap_mean(values, level=0.5)
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high


def test_the_interval_is_that_of_a_normal_mean_for_many_values():
    values = np.random.Generator(np.random.PCG64(3)).normal(5.0, 2.0, 4_000)
    estimate, error = bootstrap_mean(values, resamples=1000), values.std() / math.sqrt(len(values))
    assert estimate.mean == pytest.approx(values.mean())
    assert estimate.low == pytest.approx(values.mean() - 1.96 * error, abs=0.3 * error)
    assert estimate.high == pytest.approx(values.mean() + 1.96 * error, abs=0.3 * error)


def test_a_single_value_has_no_interval_and_equal_values_have_an_empty_one():
    alone = bootstrap_mean(np.array([3.0]))
    assert alone.mean == 3.0
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)
    same = bootstrap_mean(np.full(9, 4.0))
    assert (same.low, same.high) == (4.0, 4.0)


def test_pairs_show_a_difference_that_unpaired_intervals_hide():
    random = np.random.Generator(np.random.PCG64(4))
    hard = random.normal(0.0, 10.0, 60)  # how hard an instance is, for both
    better, worse = hard + random.normal(0.0, 0.1, 60), hard + 0.2 + random.normal(0.0, 0.1, 60)
    difference = paired_difference(better, worse)
    assert -0.3 < difference.low < difference.mean < difference.high < 0
    assert paired_difference(worse, better).low > 0
    assert bootstrap_mean(better).high > bootstrap_mean(worse).low


def test_the_standard_error_is_that_of_the_mean_over_repeats():
    assert standard_error(np.array([1.0, 2.0, 3.0, 6.0])) == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 3 / 4))
    assert math.isnan(standard_error(np.array([1.0])))


def test_gaps_are_fractions_of_the_reference_whatever_its_sign():
    costs = np.array([[11.0, -9.0, 0.0, 1.0]])
    assert gaps(costs, np.array([10.0, -10.0, 0.0, 0.0])).tolist() == [[pytest.approx(0.1), pytest.approx(0.1), 0.0, math.inf]]


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.7062), (2, 4.3027), (4, 2.7764), (9, 2.2622), (1000, 1.9623)])
def test_students_quantiles_are_those_of_the_tables(freedom, quantile):
    assert student_quantile(freedom) == pytest.approx(quantile, abs=2e-4)


def test_the_interval_of_few_runs_covers_the_true_mean_as_often_as_it_promises():
    """Where a bootstrap of three values covers it in about 70 % of all cases. 2,000 trials: a standard error of 0.005."""
    random = np.random.Generator(np.random.PCG64(5))
    found = [mean_of_runs(random.normal(2.0, 3.0, 3)) for _ in range(2000)]
    assert 0.93 < np.mean([estimate.low <= 2.0 <= estimate.high for estimate in found]) < 0.97


def test_runs_that_are_not_paired_have_the_interval_of_welch():
    """By hand: means 2 and 7, squared errors 1/3 and 4/3, (5/3)^2 / ((1/9 + 16/9) / 2) = 2.941 degrees of freedom."""
    found = difference_of_runs(np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 9.0]))
    arm = student_quantile(50 / 17) * math.sqrt(5 / 3)
    assert (found.mean, found.low, found.high) == (-5.0, pytest.approx(-5 - arm), pytest.approx(-5 + arm))


def test_a_single_run_has_no_interval():
    assert math.isnan(mean_of_runs(np.array([1.0])).low)
    assert math.isnan(difference_of_runs(np.array([1.0]), np.array([1.0, 2.0])).low)
