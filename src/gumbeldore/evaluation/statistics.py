"""What samples of instances say about the mean over all: bootstrap intervals and standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from jaxtyping import Float

RESAMPLES, LEVEL, BLOCK = 2000, 0.95, 1 << 22


@dataclass(frozen=True)
class Estimate:
    """A mean with its bootstrap interval, which is NaN for a single value."""

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


def standard_error(means: Float[np.ndarray, " repeat"]) -> float:
    """Of the mean over repeats; NaN for a single one."""
    return float(means.std(ddof=1) / sqrt(len(means))) if len(means) > 1 else nan


def gaps(
    costs: Float[np.ndarray, "repeat instance"], reference: Float[np.ndarray, " instance"]
) -> Float[np.ndarray, "repeat instance"]:
    """How much worse than the reference, as a fraction of it; 0 where both are 0."""
    size = np.abs(reference)
    return np.divide(costs - reference, size, out=np.where(costs == reference, 0.0, np.inf), where=size > 0)
