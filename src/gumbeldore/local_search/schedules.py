"""Anytime local search for job shops (`compiled/schedule_search.cpp`): tabu search over insertions on a critical path."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int, Num

from gumbeldore.local_search.compiling import code
from gumbeldore.local_search.distances import indices
from gumbeldore.local_search.limits import limits


class ScheduleSearch:
    """A search that can be run again and again, and goes on where it was. What it finds depends on the work done and the seed alone.

    Operation i of a job takes `times[job, i]` on `machines[job, i]`. A schedule is the jobs whose next operations are appended one by one; without one the search
    begins with the jobs that have the most work left. One unit of work is a move.
    """

    def __init__(self, times: Num[np.ndarray, "job operation"], machines: Any, *, seed: int, schedule: Any = None) -> None:
        self.work, self._size = 0, int(np.size(times))
        self._whole = bool((np.trunc(times) == times).all())
        start = None if schedule is None else indices(schedule)
        given = np.ascontiguousarray(times, np.float64), np.ascontiguousarray(machines, np.int32)
        self._search = code().schedule_search(*given, seed, start)

    def run(self, *, work: int | None = None, seconds: float | None = None) -> int:
        """Searches on until either is used up, the schedule is optimal, or `stop` is called. Returns the work done."""
        done = code().run_schedules(self._search, *limits(work, seconds))
        self.work += done
        return done

    @property
    def best(self) -> Int[np.ndarray, " operation"]:
        """The shortest schedule so far; it is active."""
        return self._best()[0]

    @property
    def cost(self) -> float | int:
        """Its makespan."""
        return self._best()[1]

    @property
    def optimal(self) -> bool:
        """Whether the search knows that there is nothing shorter."""
        return code().schedule_is_optimal(self._search)

    def _best(self) -> tuple[Int[np.ndarray, " operation"], float | int]:
        schedule = np.empty(self._size, np.int64)
        cost = code().best_schedule(self._search, schedule)
        return schedule, round(cost) if self._whole else cost

    def offer(self, schedule: Any) -> bool:
        """Goes on from this schedule, if it is shorter than the best so far; says whether it is."""
        return code().offer_schedule(self._search, indices(schedule))

    def stop(self) -> None:
        """From another thread: `run` returns at once."""
        code().stop_schedules(self._search)
