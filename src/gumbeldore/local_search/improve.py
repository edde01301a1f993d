"""Compiled local search that makes many tours, routes or schedules of equal size better at once, as training needs it.

Deterministic: what becomes of an instance depends on its solution, its seed and the number of rounds alone.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, Num
from numpy.typing import NDArray
from torch import Tensor

from gumbeldore.local_search.compiling import Numbers, code, plain

HOT, COLD = 0.1, 0.001
"""The temperatures between which routes are annealed, in lengths of the unit square."""


def improve_tours(
    points: Float[Tensor, "batch city 2"], tours: Int[Tensor, "batch city"], seeds: Int[Tensor, " batch"], rounds: int
) -> Int[Tensor, "batch city"]:
    """Tours that are not longer: 2-opt and Or-opt, then `rounds` of double bridges with the same."""
    return _improved_tours(points, tours, seeds, rounds, is_open=False)


def improve_paths(
    points: Float[Tensor, "batch city 2"], paths: Int[Tensor, "batch city"], seeds: Int[Tensor, " batch"], rounds: int
) -> Int[Tensor, "batch city"]:
    """Paths through all cities that are not longer and keep their ends, by the same."""
    return paths if paths.shape[1] <= 3 else _improved_tours(points, paths, seeds, rounds, is_open=True)


def _improved_tours(points: Tensor, tours: Tensor, seeds: Tensor, rounds: int, *, is_open: bool) -> Tensor:
    result = _copied(tours)
    code().improve_tours(plain(points, torch.float32), plain(seeds, torch.int64), rounds, is_open, result)
    return torch.from_numpy(result).to(tours)


def improve_routes(
    points: Float[Tensor, "batch node 2"],
    demands: Int[Tensor, "batch node"],
    capacity: Int[Tensor, " batch"],
    actions: Int[Tensor, "batch customer"],
    seeds: Int[Tensor, " batch"],
    rounds: int,
    under_way: bool = False,
) -> Int[Tensor, "batch customer"]:
    """Routes that are not longer: `rounds` of taking strings of customers out and putting them back. Actions are those of `CVRP`.

    `under_way`: the first route has begun at the first customer, who stays where it is.
    """
    result = _copied(actions)
    loads = (plain(each, torch.int64) for each in (demands, capacity, seeds))
    code().improve_routes(plain(points, torch.float32), *loads, rounds, HOT, COLD, under_way, result)
    return torch.from_numpy(result).to(actions)


def improve_timed_routes(
    distances: Float[Tensor, "batch node another"],
    demands: Int[Tensor, "batch node"],
    capacity: Int[Tensor, " batch"],
    windows: Float[Tensor, "batch node 2"],
    service: Float[Tensor, "batch node"],
    actions: Int[Tensor, "batch customer"],
    seeds: Int[Tensor, " batch"],
    rounds: int,
    under_way: bool = False,
) -> Int[Tensor, "batch customer"]:
    """The same within time windows; distances are travel times. Actions are those of `VRPTW`."""
    result = _copied(actions)
    ways, times = plain(distances, torch.float64), (plain(each, torch.float64) for each in (windows, service))
    code().improve_timed_routes(
        ways,
        plain(demands, torch.int64),
        plain(capacity, torch.int64),
        *times,
        plain(seeds, torch.int64),
        rounds,
        under_way,
        result,
    )
    return torch.from_numpy(result).to(actions)


def improve_schedules(
    times: Num[Tensor, "batch job operation"],
    machines: Int[Tensor, "batch job operation"],
    actions: Int[Tensor, "batch depth"],
    seeds: Int[Tensor, " batch"],
    rounds: int,
    kept: int = 0,
) -> Int[Tensor, "batch depth"]:
    """Active schedules that are not longer, by `rounds` of tabu search, in the one order of `problems/jssp/active.py`. Actions are those of
    `JSSP`; the first `kept` of them stay."""
    result = _copied(actions)
    shop = plain(times, torch.float64), plain(machines, torch.int32), plain(seeds, torch.int64)
    code().improve_schedules(*shop, rounds, kept, result)
    return torch.from_numpy(result).to(actions)


def _copied(actions: Tensor) -> NDArray[Numbers]:
    return actions.to("cpu", torch.int64, copy=True).contiguous().numpy()
