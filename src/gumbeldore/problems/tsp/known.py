"""Optimal lengths of the standard test sets tsp200, tsp500 and tsp1000."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray


def optimal_lengths(name: str) -> NDArray[np.float64]:
    """The optimal length of each instance of a set, in order."""
    text = files("gumbeldore.problems.tsp").joinpath("optimal_lengths.csv").read_text(encoding="utf-8")
    header, *rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]
    return np.array([float(row[header.index(name)]) for row in rows])
