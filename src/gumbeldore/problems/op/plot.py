"""A tour that collects prizes, in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbeldore.figure import fitting, saved_figure


def plot_prizes(
    path: str | Path, nodes: NDArray[np.floating], prizes: NDArray[np.floating], tour: Sequence[int], title: str
) -> None:
    """The tour over its nodes; the area of a node is its prize, those left out are white. Node 0 is the depot, a black square."""
    width, height = fitting(nodes)
    with saved_figure(path, size=(width, height + 0.5)) as axes:
        share = np.asarray(prizes, dtype=np.float64) / max(float(np.max(prizes[1:], initial=0)), 1e-300)
        dots = np.clip(share, 0.05, 1) * max(14.0, 90 - len(nodes) / 3)
        stops, out = nodes[[0, *tour, 0]], np.setdiff1d(np.arange(1, len(nodes)), tour)
        style = {"edgecolors": "black", "linewidths": 0.5, "zorder": 2}
        axes.plot(stops[:, 0], stops[:, 1], "-", color="tab:blue", linewidth=1.4, zorder=1)
        axes.scatter(nodes[tour, 0], nodes[tour, 1], s=dots[list(tour)], color="tab:orange", **style)
        axes.scatter(nodes[out, 0], nodes[out, 1], s=dots[out], color="white", **style)
        axes.scatter(*nodes[0], s=110, color="black", edgecolors="white", marker="s", zorder=3, label="depot")
        axes.set(title=title, aspect="equal", xticks=[], yticks=[])
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0), frameon=False)
