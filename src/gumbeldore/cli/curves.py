"""Training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gumbeldore.figure import saved_figure


def plot_training(path: str | Path, metrics: Sequence[Mapping[str, Any]], cost: str = "cost") -> None:
    """Loss, and the sampled and greedy objective as a cost (smaller is better), by epoch; dots mark improvements,
    dotted lines the stages of a curriculum."""
    metrics = [line for line in metrics if _whole(line)]
    if not metrics:
        return
    epochs = [line["epoch"] for line in metrics]
    with saved_figure(path, 1, 2, (5.2, 3.8)) as (left, right):
        left.plot(epochs, [line["loss"] for line in metrics], color="tab:blue")
        left.set(title="Loss (next-action cross-entropy)", xlabel="epoch")
        if all(isinstance(line.get("sampled"), int | float) for line in metrics):
            right.plot(epochs, [-line["sampled"] for line in metrics], color="tab:orange", label="best sampled (training)")
        right.plot(epochs, [-line["validation"] for line in metrics], color="tab:green", label="greedy (validation)")
        better = [line for line in metrics if line.get("improved")]
        right.scatter([b["epoch"] for b in better], [-b["validation"] for b in better], s=14, color="tab:green")
        right.set(title=f"Mean {cost}", xlabel="epoch")
        right.legend()
        stages = [line.get("stage", 1) for line in metrics]
        begins = [epoch for epoch, stage, last in zip(epochs[1:], stages[1:], stages, strict=False) if stage != last]
        for panel in (left, right):
            panel.grid(alpha=0.3)
            for begin in begins:
                panel.axvline(begin - 0.5, color="gray", linestyle=":")


def _whole(line: Mapping[str, Any]) -> bool:
    """Whether a line has what is drawn; a damaged file may hold others."""
    return all(isinstance(line.get(name), int | float) for name in ("loss", "validation"))
