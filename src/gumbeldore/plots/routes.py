"""Tours in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbeldore.plots.figure import colours, saved_figure


def plot_tours(
    path: str | Path, coordinates: NDArray[np.floating], tours: Sequence[Sequence[int]], titles: Sequence[str]
) -> None:
    """One panel per tour over the same cities; the start is marked."""
    columns = min(4, len(tours))
    rows = -(-len(tours) // columns)
    with saved_figure(path, rows, columns, (3.6, 4.2)) as axes:
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


def plot_routes(path: str | Path, nodes: NDArray[np.floating], routes: Sequence[Sequence[int]], title: str) -> None:
    """The subtours of vehicles, each in a colour of its own. Node 0 is the depot, a black square; customer c is node c + 1."""
    with saved_figure(path, size=(5.2, 5.4)) as axes:
        dots = max(6.0, 36 - len(nodes) / 8)
        for route, colour in zip(routes, colours(len(routes)), strict=True):
            stops = nodes[[0, *(customer + 1 for customer in route), 0]]
            axes.plot(stops[:, 0], stops[:, 1], "-", color=colour, linewidth=1.4, zorder=1)
            axes.scatter(stops[1:-1, 0], stops[1:-1, 1], s=dots, color=[colour], edgecolors="black", linewidths=0.5, zorder=2)
        axes.scatter(*nodes[0], s=110, color="black", edgecolors="white", marker="s", zorder=3, label="depot")
        axes.set(title=title, aspect="equal", xticks=[], yticks=[])
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0), frameon=False)
