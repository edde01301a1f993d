"""What is known about the makespans of public job shops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbeldore.problems.best_known import best_known
from gumbeldore.problems.jssp.taillard import Benchmark, taillard, taillard_benchmarks
from gumbeldore.problems.text import is_number

TAILLARD = "table of best known values (ScheduleOpt/benchmarks, 2026-08-19)"


class Known(NamedTuple):
    """The best known makespan, if there is one, who says so, and the name that the instance turned out to have."""

    cost: float | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    name: str = ""


def known_makespan(times: NDArray[Any], machines: NDArray[Any], header: Sequence[str], *names: str) -> Known:
    """By Taillard's seeds in a header, by name, or by an upper bound in such a header."""
    for index, benchmark in enumerate(taillard_benchmarks(), 1):
        seeds = [str(value) for value in (benchmark.jobs, benchmark.machines, benchmark.time_seed, benchmark.machine_seed)]
        by_name = benchmark.name in [name.lower() for name in names]
        if list(header[:4]) == seeds or (by_name and times.shape == (benchmark.jobs, benchmark.machines)):
            return _taillard(index, benchmark, times, machines)
    best, source = best_known("jssp", {"jobs": times.shape[0], "machines": times.shape[1]}, *names)
    if best is None and len(header) == 6 and is_number(header[4]) and float(header[4]) > 0:
        best, source = float(header[4]), "the file's header"
    return Known(best, source)


def _taillard(index: int, benchmark: Benchmark, times: NDArray[Any], machines: NDArray[Any]) -> Known:
    """Faulty copies are about, so the file is compared with what Taillard's generator gives."""
    original = taillard(index)
    wrong = int((original.times[0].numpy() != times).sum() + (original.machines[0].numpy() != machines).sum())
    if not wrong:
        return Known(float(benchmark.upper_bound), TAILLARD, name=benchmark.name)
    note = f"This is not Taillard's {benchmark.name}: {wrong} numbers differ, so its best known makespan does not apply."
    return Known(notes=(note,))


def taillard_makespans(jobs: int, machines: int) -> NDArray[np.float64]:
    """The best known makespans of Taillard's ten instances of a size, in order."""
    sizes = [b for b in taillard_benchmarks() if (b.jobs, b.machines) == (jobs, machines)]
    return np.array([b.upper_bound for b in sizes], dtype=np.float64)
