"""Schedules as text and as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from gumbeldore.kits.kit import Instance
from gumbeldore.problems.jssp.verify import build_schedule
from gumbeldore.problems.schedule_files import Slot, schedule_exports


def build(given: Instance, actions: Sequence[int]) -> list[Slot]:
    intervals = build_schedule(given.arrays["times"].tolist(), given.arrays["machines"].tolist(), actions)
    return [Slot(*interval) for interval in intervals]


def _jobs(given: Instance, slots: Sequence[Slot]) -> list[int]:
    """The jobs in the order in which their operations start, which gives a schedule that ends no later."""
    return [slot.job for slot in slots]


EXPORTS = schedule_exports(build, _jobs)
