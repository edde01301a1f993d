"""One way to open and save a figure, without a screen and without global state."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from gumbeldore.files import write_atomically


@contextmanager
def saved_figure(path: str | Path, rows: int = 1, columns: int = 1, size: tuple[float, float] = (5, 5)) -> Iterator[Any]:
    """Yields the figure's axes (an array if there are several) and saves the figure afterwards."""
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    FigureCanvasAgg(figure)
    yield figure.subplots(rows, columns)
    kind = Path(path).suffix[1:] or "png"
    try:
        write_atomically(Path(path), lambda temporary: figure.savefig(temporary, dpi=110, format=kind))
    finally:
        figure.clear()
        FigureCanvasBase(figure)  # in place of the one that drew, whose megabytes live as long as anybody has the axes
        gc.collect()  # thousands of objects that refer to each other, which a long training would gather otherwise


def fitting(points: Float[np.ndarray, "point 2"], area: float = 26.0) -> tuple[float, float]:
    """The width and height of a picture in inches that shows points in the plane without empty margins; at most three times as long as wide."""
    across, up = np.ptp(points, axis=0).astype(np.float64) + 1e-9
    ratio = float(np.clip(across / up, 1 / 3, 3))
    return (area * ratio) ** 0.5, (area / ratio) ** 0.5 + 0.4  # a title


def colours(count: int) -> list[Any]:
    """As many different colours; neighbours are easy to tell apart up to 20."""
    from matplotlib import colormaps

    if count > 20:
        return list(colormaps["turbo"](np.linspace(0.03, 0.97, count)))
    return list(colormaps["tab10" if count <= 10 else "tab20"](np.arange(count)))
