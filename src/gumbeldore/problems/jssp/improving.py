"""Local search of one job shop."""

from __future__ import annotations

from collections.abc import Sequence

from gumbeldore.kits.improving import WHOLE
from gumbeldore.kits.kit import Instance
from gumbeldore.local_search.schedules import ScheduleSearch


class ScheduleImprovement:
    """Schedules as actions: the jobs whose next operations are appended."""

    anneals = True  # in a way: a few schedules grow better together, and the best one comes of them late

    def __init__(self, given: Instance, seed: int, begin: Sequence[int] | None) -> None:
        times, machines = given.arrays["times"], given.arrays["machines"]
        self.search = ScheduleSearch(times, machines, seed=seed, schedule=None if begin is None else list(begin))

    @property
    def actions(self) -> list[int]:
        return self.search.best.tolist()

    @property
    def optimal(self) -> bool:
        return self.search.optimal

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] = WHOLE) -> None:
        self.search.run(work=work, seconds=seconds)

    def offer(self, actions: Sequence[int]) -> None:
        self.search.offer(list(actions))
