"""Pictures of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gumbeldore.figure import colours, saved_figure
from gumbeldore.problems.intervals import Interval

_LABELLED = 20
"""Up to so many jobs the bars carry their job's number, if they are long enough for it."""


def plot_schedule(path: str | Path, schedule: Sequence[Interval], title: str) -> None:
    """A Gantt chart: one row per machine, one bar per operation, one colour per job."""
    jobs, machines = (1 + max(getattr(interval, name) for interval in schedule) for name in ("job", "machine"))
    end = max(interval.end for interval in schedule)
    colour = colours(jobs)
    with saved_figure(path, size=(9, 1.4 + 0.32 * machines)) as axes:
        for machine in range(machines):
            here = [interval for interval in schedule if interval.machine == machine]
            axes.broken_barh(
                [(interval.start, interval.end - interval.start) for interval in here],
                (machine - 0.42, 0.84),
                facecolors=[colour[interval.job] for interval in here],
                edgecolors="black",
                linewidth=0.4,
            )
            for interval in here:
                if jobs <= _LABELLED and interval.end - interval.start > 0.018 * end:
                    middle = (interval.start + interval.end) / 2
                    axes.text(middle, machine, str(interval.job), ha="center", va="center", fontsize=7)
        axes.axvline(end, color="tab:red", linewidth=2)
        axes.set(title=title, xlabel="time (bars carry the number of their job)" if jobs <= _LABELLED else "time")
        axes.set(ylabel="machine", yticks=range(machines), xlim=(0, 1.01 * end), ylim=(machines - 0.4, -0.6))
