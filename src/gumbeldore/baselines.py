"""Solutions by solvers that are not ours, for comparison. They need the extra `pip install "gumbeldore[solvers]"`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import GumbeldoreError

SCALE = 1e6  # CP-SAT needs integer distances


@dataclass(frozen=True)
class ExactTour:
    """A tour and whether the solver proved it optimal (for distances rounded to six decimals)."""

    tour: list[int]
    length: float
    optimal: bool


def solve_tsp(coordinates: NDArray[np.floating], seconds: float = 60.0) -> ExactTour:
    """A provably shortest tour by OR-Tools CP-SAT with a circuit constraint; fit for some dozens of cities."""
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise GumbeldoreError('The exact solver needs OR-Tools: pip install "gumbeldore[solvers]".') from error
    points = np.asarray(coordinates, dtype=np.float64)
    distances = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    model = cp_model.CpModel()
    count = len(points)
    arcs = [(i, j, model.new_bool_var("")) for i in range(count) for j in range(count) if i != j]
    model.add_circuit(arcs)
    model.minimize(sum(int(round(distances[i, j] * SCALE)) * chosen for i, j, chosen in arcs))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.linearization_level = 2
    status = solver.solve(model)
    successor = {i: j for i, j, chosen in arcs if solver.value(chosen)}
    tour = [0]
    while len(tour) < count:
        tour.append(successor[tour[-1]])
    length = float(distances[tour, np.roll(tour, -1)].sum())
    return ExactTour(tour, length, status == cp_model.OPTIMAL)


def solve_tsps(instances: Sequence[NDArray[np.floating]], workers: int = 2) -> Iterator[ExactTour]:
    """`solve_tsp` for many instances, in order, in parallel processes."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(solve_tsp, instances, chunksize=4)
