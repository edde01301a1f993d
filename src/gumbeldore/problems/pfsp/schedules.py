"""Orders of jobs as text, and their schedules as text and as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from gumbeldore.io.text import integer
from gumbeldore.kits.kit import Export, Instance
from gumbeldore.problems.pfsp.verify import build_schedule
from gumbeldore.problems.schedule_files import Slot, schedule_exports


def build(given: Instance, actions: Sequence[int]) -> list[Slot]:
    return [Slot(*interval) for interval in build_schedule(given.arrays["times"].tolist(), [int(job) for job in actions])]


def _jobs(given: Instance, slots: Sequence[Slot]) -> list[int]:
    """The order in which jobs begin on the machines, which gives a schedule that ends no later."""
    begins: dict[int, list[tuple[float, float]]] = {}
    for slot in sorted(slots, key=lambda slot: slot.machine):
        begins.setdefault(slot.job, []).append((slot.start, slot.end))
    return sorted(begins, key=lambda job: begins[job])


def _write_order(given: Instance, actions: Sequence[int]) -> str:
    """The jobs in order, from 0, in one line."""
    return " ".join(map(str, actions)) + "\n"


def _read_order(given: Instance, text: str) -> list[int]:
    return [integer(word, "A job") for word in text.split()]


EXPORTS = {"order": Export(".order.txt", _write_order, _read_order), **schedule_exports(build, _jobs)}
