"""Routes of vehicles in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbeldore.figure import colours, fitting, saved_figure


def plot_routes(path: str | Path, nodes: NDArray[np.floating], routes: Sequence[Sequence[int]], title: str) -> None:
    """The subtours of vehicles, each in a colour of its own. Node 0 is the depot, a black square; customer c is node c + 1."""
    width, height = fitting(nodes)
    with saved_figure(path, size=(width, height + 0.5)) as axes:
        dots = max(6.0, 36 - len(nodes) / 8)
        for route, colour in zip(routes, colours(len(routes)), strict=True):
            stops = nodes[[0, *(customer + 1 for customer in route), 0]]
            axes.plot(stops[:, 0], stops[:, 1], "-", color=colour, linewidth=1.4, zorder=1)
            axes.scatter(stops[1:-1, 0], stops[1:-1, 1], s=dots, color=[colour], edgecolors="black", linewidths=0.5, zorder=2)
        axes.scatter(*nodes[0], s=110, color="black", edgecolors="white", marker="s", zorder=3, label="depot")
        axes.set(title=title, aspect="equal", xticks=[], yticks=[])
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0), frameon=False)
