"""Lengths of the best tours known of the standard sets."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray


def reference_lengths(name: str) -> NDArray[np.float64]:
    """Of each instance of a set, in order."""
    text = files("gumbeldore.problems.atsp").joinpath("reference_lengths.csv").read_text(encoding="utf-8")
    header, *rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]
    return np.array([float(row[header.index(name)]) for row in rows if row[header.index(name)]])
