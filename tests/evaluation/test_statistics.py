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

TRIALS = 2000
"""A share of 0.95 has a standard error of 0.005 over so many trials; 2 % are four of them."""


def coverage(estimate, truth: float) -> float:
    """How often an interval, of data drawn anew, holds the truth."""
    random = np.random.Generator(np.random.PCG64(1))
    found = [estimate(random, trial) for trial in range(TRIALS)]
    return float(np.mean([each.low <= truth <= each.high for each in found]))


def shared(random, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two methods on the same instances, 0.5 apart, where instances differ much more."""
    hard = random.normal(10.0, 5.0, count)
    return hard + random.normal(0.5, 1.0, count), hard + random.normal(0.0, 1.0, count)


COVERED = {
    "bootstrap, normal": (lambda r, n: bootstrap_mean(r.normal(2.0, 3.0, 100), resamples=250, seed=n), 2.0),
    "bootstrap, uniform": (lambda r, n: bootstrap_mean(r.uniform(0.0, 1.0, 60), resamples=250, seed=n), 0.5),
    "bootstrap, exponential": (lambda r, n: bootstrap_mean(r.exponential(1.0, 200), resamples=250, seed=n), 1.0),
    "bootstrap, rare": (lambda r, n: bootstrap_mean(r.binomial(1, 0.3, 200).astype(float), resamples=250, seed=n), 0.3),
    "paired": (lambda r, n: paired_difference(*shared(r, 200), seed=n), 0.5),
    "student, 3 runs": (lambda r, n: mean_of_runs(r.normal(2.0, 3.0, 3)), 2.0),
    "student, 5 runs": (lambda r, n: mean_of_runs(r.normal(-1.0, 0.1, 5)), -1.0),
    "welch, 3 and 5 runs": (lambda r, n: difference_of_runs(r.normal(2.0, 1.0, 3), r.normal(1.0, 1.0, 5)), 1.0),
    "welch, unequal spreads": (lambda r, n: difference_of_runs(r.normal(2.0, 3.0, 5), r.normal(1.0, 1.0, 5)), 1.0),
}


@pytest.mark.parametrize("name", COVERED)
def test_an_interval_of_95_percent_covers_the_truth_that_often(name: str) -> None:
    assert coverage(*COVERED[name]) == pytest.approx(0.95, abs=0.02)


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


def test_runs_that_are_not_paired_have_the_interval_of_welch():
    """By hand: means 2 and 7, squared errors 1/3 and 4/3, (5/3)^2 / ((1/9 + 16/9) / 2) = 2.941 degrees of freedom."""
    found = difference_of_runs(np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 9.0]))
    arm = student_quantile(50 / 17) * math.sqrt(5 / 3)
    assert (found.mean, found.low, found.high) == (-5.0, pytest.approx(-5 - arm), pytest.approx(-5 + arm))


def test_a_single_run_has_no_interval():
    assert math.isnan(mean_of_runs(np.array([1.0])).low)
    assert math.isnan(difference_of_runs(np.array([1.0]), np.array([1.0, 2.0])).low)
