"""Schedules as text and as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from gumbeldore.errors import FormatError
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.fjsp.experts import actions_by_start
from gumbeldore.problems.fjsp.verify import build_schedule, operations
from gumbeldore.problems.intervals import Interval
from gumbeldore.problems.schedule_files import Slot, schedule_exports


def build(given: Instance, actions: Sequence[int]) -> list[Slot]:
    times = given.arrays["times"]
    return [Slot(*interval) for interval in build_schedule(operations(times), [divmod(a, times.shape[2]) for a in actions])]


def read(given: Instance, slots: Sequence[Slot]) -> list[int]:
    """The actions in the order in which operations start, which gives a schedule that ends no later."""
    machines = given.arrays["times"].shape[2]
    for slot in slots:
        if not 0 <= slot.machine < machines:
            raise FormatError(
                f"Operation {slot.operation} of job {slot.job} runs on machine {slot.machine}, but machines are 0 .. {machines - 1}."
            )
    return actions_by_start([Interval(*slot) for slot in slots], machines)


EXPORTS = schedule_exports(build, read)
