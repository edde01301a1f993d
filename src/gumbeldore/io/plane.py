"""Points of files: what they must be, and how a policy sees them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError

LARGEST = 1e12
"""Coordinates are at most this, so that sums of rounded distances are exact."""


def check_points(points: NDArray[np.float64], one: str = "node") -> None:
    """Every coordinate must be a number of sensible size."""
    wrong = ~(np.abs(points) <= LARGEST).all(1)  # also where there is a NaN
    if wrong.any():
        row = int(wrong.argmax())
        raise FormatError(
            f"The coordinates of {one} {row + 1} are {', '.join(f'{value:g}' for value in points[row])}, "
            f"but must be finite and at most {LARGEST:g} in size."
        )


def unit_square(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Points moved and scaled into the unit square (one factor for both axes), and the factor that undoes the scaling.

    Points that fill at least half of its width or height already stay where they are.
    """
    low, high = points.min(0), points.max(0)
    size = float((high - low).max())
    if low.min() >= 0 and high.max() <= 1 and size >= 0.5:
        return points, 1.0
    size = size or 1.0
    return np.clip((points - low) / size, 0.0, 1.0), size


def duplicates(points: NDArray[np.float64], one: str = "node", many: str = "nodes") -> tuple[str, ...]:
    """A note if several points are the same, otherwise nothing."""
    _, first, place = np.unique(points, axis=0, return_index=True, return_inverse=True)
    extra = len(points) - len(first)
    if not extra:
        return ()
    original = first[place.reshape(-1)]
    second = int((original != np.arange(len(points))).argmax())
    kinds = f"{extra} {one if extra == 1 else many}"
    return (f"{kinds} at the place of another one, first {one} {second + 1} at that of {int(original[second]) + 1}.",)
