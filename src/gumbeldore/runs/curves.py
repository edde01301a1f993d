"""Training curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gumbeldore.figure import saved_figure
from gumbeldore.kits.measure import COST, Measure

POINTS = 1000
"""A curve has at most so many, more than its panel has pixels in a row. With more epochs a point is the mean of several."""

Point = tuple[float, ...]  # epoch, loss, validation and, if all of its epochs have it, what was sampled


@dataclass
class Curves:
    """What is drawn of a training, in memory that does not grow with the number of its epochs, but for improvements and stages."""

    points: list[Point] = field(default_factory=list)
    better: list[tuple[int, float]] = field(default_factory=list)  # epochs that improved, and their validation
    begins: list[int] = field(default_factory=list)  # the first epochs of later stages
    _each: int = 1  # epochs of a point
    _next: list[Point] = field(default_factory=list)  # the epochs of the next one so far
    _stage: Any = None

    @classmethod
    def of(cls, metrics: Iterable[Mapping[str, Any]]) -> Curves:
        """Of lines of metrics, without those that lack what is drawn; a damaged file may hold some."""
        curves = cls()
        for line in metrics:
            if _whole(line):
                curves._add(line)
        if curves._next:
            curves.points.append(_mean(curves._next))
        return curves

    def _add(self, line: Mapping[str, Any]) -> None:
        epoch, stage = line["epoch"], line.get("stage", 1)
        if self._stage not in (None, stage):
            self.begins.append(epoch)
        self._stage = stage
        if line.get("improved"):
            self.better.append((epoch, line["validation"]))
        if not self._next and len(self.points) == POINTS:
            self.points = [_mean(pair) for pair in zip(self.points[::2], self.points[1::2], strict=True)]
            self._each *= 2
        sampled = line.get("sampled")
        self._next.append((epoch, line["loss"], line["validation"], *([sampled] if isinstance(sampled, int | float) else [])))
        if len(self._next) == self._each:
            self.points.append(_mean(self._next))
            self._next = []


def plot_training(path: str | Path, metrics: Iterable[Mapping[str, Any]], measure: Measure = COST) -> None:
    """Loss, and the sampled and greedy cost or value, by epoch; dots mark improvements,
    dotted lines the stages of a curriculum."""
    curves = Curves.of(metrics)
    if not curves.points:
        return
    epochs, losses, validations, *sampled = zip(*_level(curves.points), strict=True)
    with saved_figure(path, 1, 2, (5.2, 3.8)) as (left, right):
        left.plot(epochs, losses, color="tab:blue")
        left.set(title="Loss (next-action cross-entropy)", xlabel="epoch")
        for values in sampled:  # none in supervised training
            right.plot(epochs, [measure.shown(value) for value in values], color="tab:orange", label="best sampled (training)")
        right.plot(epochs, [measure.shown(value) for value in validations], color="tab:green", label="greedy (validation)")
        right.scatter(
            [epoch for epoch, _ in curves.better], [measure.shown(value) for _, value in curves.better], s=14, color="tab:green"
        )
        right.set(title=f"Mean {measure.name}", xlabel="epoch")
        right.legend()
        for panel in (left, right):
            panel.grid(alpha=0.3)
            for begin in curves.begins:
                panel.axvline(begin - 0.5, color="gray", linestyle=":")


def _whole(line: Mapping[str, Any]) -> bool:
    """Whether a line has what is drawn."""
    return all(isinstance(line.get(name), int | float) for name in ("loss", "validation"))


def _level(points: Sequence[Point]) -> list[Point]:
    """All as long as the shortest."""
    width = min(map(len, points))
    return [point[:width] for point in points]


def _mean(points: Sequence[Point]) -> Point:
    return points[0] if len(points) == 1 else tuple(sum(values) / len(values) for values in zip(*_level(points), strict=True))
