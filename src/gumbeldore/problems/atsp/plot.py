"""Matrices in the order of tours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.figure import saved_figure

_MOST = 98
"""Colours end at this percentile: one edge that nobody may use would hide all others."""


def plot_matrices(
    path: str | Path, matrix: NDArray[np.number[Any]], tours: Sequence[Sequence[int]], titles: Sequence[str]
) -> None:
    """One panel per tour: the matrix with rows and columns in its order, so that its edges are beside the diagonal, marked, and the last one in the corner.

    The better a tour, the darker what is marked.
    """
    columns = min(3, len(tours))
    rows = -(-len(tours) // columns)
    others = matrix[~np.eye(len(matrix), dtype=bool)]
    with saved_figure(path, rows, columns, (4.6, 4.4)) as axes:
        panels = np.atleast_1d(axes).ravel()
        for panel, tour, title in zip(panels, tours, titles, strict=False):
            ordered = np.array(matrix, dtype=np.float64)[np.ix_(tour, tour)]
            np.fill_diagonal(ordered, np.nan)
            low, high = float(others.min()), float(np.percentile(others, _MOST))
            shown = panel.imshow(ordered, cmap="viridis", vmin=low, vmax=max(high, low + 1e-9), interpolation="nearest")
            place = np.arange(len(tour))
            panel.scatter(
                np.roll(place, -1),
                place,
                s=max(3.0, 900 / len(tour)),
                marker="s",
                facecolors="none",
                edgecolors="tab:red",
                linewidths=0.8,
            )
            panel.set(title=title, xlabel="to, in the order of the tour", ylabel="from")
            panel.figure.colorbar(shown, ax=panel, shrink=0.8, label="distance")
        for panel in panels[len(tours) :]:
            panel.set_visible(False)
