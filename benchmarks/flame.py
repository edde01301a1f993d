"""Draws what py-spy recorded as flame graphs, one below the other, so that before and after can be compared.

    py-spy record -F -f raw -o after.raw -- python benchmarks/ours.py --case tsp50-small --threads 1 --seconds 15
    python benchmarks/flame.py before=before.raw after=after.raw --below Search.round --out flame.png

py-spy (github.com/benfred/py-spy) is not a dependency of this package.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

Stacks = Counter[tuple[str, ...]]
WITHIN = {"policies": "#d9824b", "torch": "#b5b5b5"}
OTHER = "#5b8db8"


def read(path: Path, below: str) -> Stacks:
    """Samples by stack, from the function `below` on; other samples are left out."""
    stacks: Stacks = Counter()
    for line in path.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        frames = [frame for frame in stack.split(";") if not re.search(r"listcomp|genexpr|_call_impl|OpOverload", frame)]
        names = [frame.split(" (")[0] for frame in frames]
        if below in names:
            frames = frames[names.index(below) :]
            stacks[tuple(frames)] += int(count)
    if not stacks:
        raise SystemExit(f"{path} has no sample within {below}.")
    return stacks


def draw(axes: Axes, stacks: Stacks, deepest: int) -> None:
    """One rectangle for each function at each depth, as wide as its share of the samples."""
    total = sum(stacks.values())

    def children(group: Stacks, left: float, depth: int) -> None:
        if depth >= deepest:
            return
        by_frame: dict[str, Stacks] = {}
        for stack, count in group.items():
            if len(stack) > depth:
                by_frame.setdefault(stack[depth], Counter())[stack] += count
        for frame, inner in sorted(by_frame.items(), key=lambda item: -sum(item[1].values())):
            width = sum(inner.values()) / total
            if width > 0.004:
                colour = next((colour for part, colour in WITHIN.items() if f"{part}/" in frame), OTHER)
                axes.add_patch(Rectangle((left, depth), width, 0.94, facecolor=colour, edgecolor="white", linewidth=0.6))
                label = f"{frame.split(' (')[0]} {100 * width:.0f} %"
                if width > 0.0075 * len(label):
                    axes.text(left + width / 2, depth + 0.47, label, ha="center", va="center", fontsize=7, clip_on=True)
                elif width > 0.02:
                    axes.text(left + width / 2, depth + 0.47, f"{100 * width:.0f}", ha="center", va="center", fontsize=6)
                children(inner, left, depth + 1)
            left += width

    children(stacks, 0.0, 0)
    axes.set(xlim=(0, 1), ylim=(deepest, 0), xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="+", help="TITLE=FILE, raw recordings of py-spy")
    parser.add_argument("--below", default="Search.round", help="the function that is the whole")
    parser.add_argument("--depth", type=int, default=13)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    titled = [recording.split("=", 1) for recording in options.recordings]
    figure = Figure(figsize=(13, 0.5 + 0.24 * options.depth * len(titled)), layout="constrained")
    for place, (title, path) in enumerate(titled):
        axes = figure.add_subplot(len(titled), 1, place + 1)
        axes.set_title(title, loc="left", fontsize=10)
        draw(axes, read(Path(path), options.below), options.depth)
    figure.savefig(options.out, dpi=110)


if __name__ == "__main__":
    main()
