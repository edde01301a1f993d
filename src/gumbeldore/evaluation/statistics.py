"""What samples of instances, or a few runs, say about the mean over all: intervals and standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, pi, sqrt

import numpy as np
from jaxtyping import Float

RESAMPLES, LEVEL, BLOCK = 2000, 0.95, 1 << 22


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval, which is NaN for a single value."""

    mean: float
    low: float
    high: float


def bootstrap_mean(
    values: Float[np.ndarray, " instance"], *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """The mean and its percentile interval over means of instances drawn with replacement (Efron, 1979)."""
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Estimate(mean, nan, nan)
    random = np.random.Generator(np.random.PCG64(seed))
    means = np.empty(resamples)
    step = max(1, BLOCK // count)
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        means[start:stop] = values[random.integers(count, size=(stop - start, count))].mean(1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(mean, float(low), float(high))


def paired_difference(
    values: Float[np.ndarray, " instance"], others: Float[np.ndarray, " instance"], *, level: float = LEVEL, seed: int = 0
) -> Estimate:
    """The mean of `values - others`, instance by instance: what both find hard cancels."""
    return bootstrap_mean(values - others, level=level, seed=seed)


def mean_of_runs(values: Float[np.ndarray, " run"], *, level: float = LEVEL) -> Estimate:
    """The mean and Student's interval, for the few values for which a bootstrap is too narrow."""
    return _student(float(values.mean()), standard_error(values), len(values) - 1, level)


def difference_of_runs(
    values: Float[np.ndarray, " run"], others: Float[np.ndarray, " other"], *, level: float = LEVEL
) -> Estimate:
    """The mean of `values` minus that of `others`, which are not paired, and Welch's interval."""
    mean, variances = float(values.mean() - others.mean()), [standard_error(runs) ** 2 for runs in (values, others)]
    spread = sum(v**2 / (len(runs) - 1) for v, runs in zip(variances, (values, others), strict=True) if len(runs) > 1)
    freedom = sum(variances) ** 2 / spread if spread else 1.0
    return _student(mean, sqrt(sum(variances)), freedom, level)


def _student(mean: float, error: float, freedom: float, level: float) -> Estimate:
    if freedom < 1:
        return Estimate(mean, nan, nan)
    arm = student_quantile(freedom, level) * error
    return Estimate(mean, mean - arm, mean + arm)


def student_quantile(freedom: float, level: float = LEVEL) -> float:
    """The t within which, on both sides of 0, Student's distribution has this mass. With t = sqrt(freedom) tan(a) its density is cos(a)^(freedom - 1)."""
    angles = np.linspace(0, pi / 2, 1 << 16)
    density = np.cos(angles) ** (freedom - 1)
    mass = np.append(0, np.cumsum(density[1:] + density[:-1]))
    return float(sqrt(freedom) * np.tan(np.interp(level, mass / mass[-1], angles)))


def standard_error(means: Float[np.ndarray, " repeat"]) -> float:
    """Of the mean over repeats; NaN for a single one."""
    return float(means.std(ddof=1) / sqrt(len(means))) if len(means) > 1 else nan


def gaps(
    costs: Float[np.ndarray, "repeat instance"], reference: Float[np.ndarray, " instance"]
) -> Float[np.ndarray, "repeat instance"]:
    """How much worse than the reference, as a fraction of it; 0 where both are 0."""
    size = np.abs(reference)
    return np.divide(costs - reference, size, out=np.where(costs == reference, 0.0, np.inf), where=size > 0)
