"""What is known about the makespans of public job shops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.io.best_known import Known, fingerprint, published
from gumbeldore.io.text import is_number
from gumbeldore.problems.jssp.taillard import taillard, taillard_benchmarks

_TAILLARD = "table of best known values (ScheduleOpt/benchmarks 2026-08-19"


def known_makespan(times: NDArray[Any], machines: NDArray[Any], header: Sequence[str], *names: str) -> Known:
    """The best known makespan, if it is a published instance; or a header like Taillard's may give an upper bound."""
    jobs, count = times.shape
    for index, benchmark in enumerate(taillard_benchmarks(), 1):
        if (benchmark.jobs, benchmark.machines) == (jobs, count) and _is_taillard(index, times, machines):
            return Known(float(benchmark.upper_bound), f"{_TAILLARD}, {benchmark.name})", name=benchmark.name)
    known = published("jssp", fingerprint("jssp", times, machines), {"jobs": jobs, "machines": count}, *names)
    notes = (*known.notes, *_impostor(names, jobs, count))
    if known.cost is None and len(header) == 6 and is_number(header[4]) and float(header[4]) > 0:
        return Known(float(header[4]), "the file's header", notes)
    return known._replace(notes=notes)


def _is_taillard(index: int, times: NDArray[Any], machines: NDArray[Any]) -> bool:
    original = taillard(index)
    return bool((original.times[0].numpy() == times).all() and (original.machines[0].numpy() == machines).all())


def _impostor(names: Sequence[str], jobs: int, machines: int) -> tuple[str, ...]:
    """A note about an instance that has the name and size of one of Taillard's, but is not: faulty copies are about."""
    for benchmark in taillard_benchmarks():
        if benchmark.name in [name.lower()[:4] for name in names] and (benchmark.jobs, benchmark.machines) == (jobs, machines):
            return (f"This differs from Taillard's {benchmark.name}, so the best known makespan of that does not apply.",)
    return ()


def taillard_makespans(jobs: int, machines: int) -> NDArray[np.float64]:
    """The best known makespans of Taillard's ten instances of a size, in order."""
    sizes = [b for b in taillard_benchmarks() if (b.jobs, b.machines) == (jobs, machines)]
    return np.array([b.upper_bound for b in sizes], dtype=np.float64)
