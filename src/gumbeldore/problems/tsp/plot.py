"""Tours in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbeldore.figure import fitting, saved_figure


def plot_tours(
    path: str | Path, coordinates: NDArray[np.floating], tours: Sequence[Sequence[int]], titles: Sequence[str]
) -> None:
    """One panel per tour over the same cities; the start is marked."""
    columns = min(4, len(tours))
    rows = -(-len(tours) // columns)
    size = (3.6, 4.2) if len(tours) > 1 else fitting(coordinates)
    with saved_figure(path, rows, columns, size) as axes:
        panels = np.atleast_1d(axes).ravel()
        for panel, tour, title in zip(panels, tours, titles, strict=False):
            closed = coordinates[[*tour, tour[0]]]
            panel.plot(closed[:, 0], closed[:, 1], "-", color="tab:blue", linewidth=1.3, zorder=1)
            dots = max(4.0, 30 - len(coordinates) / 10)
            panel.scatter(coordinates[:, 0], coordinates[:, 1], s=dots, color="black", zorder=2)
            panel.scatter(*coordinates[tour[0]], s=70, color="tab:red", marker="s", zorder=3)
            panel.set(title=title, aspect="equal", xticks=[], yticks=[])
        for panel in panels[len(tours) :]:
            panel.set_visible(False)
