"""Compiled local search that makes routes and schedules shorter (`compiled/`, C++ without any dependency, called through ctypes).

Deterministic: what becomes of an instance depends on its solution, its seed and the number of rounds alone.
"""

from __future__ import annotations

import ctypes

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from gumbeldore.local_search.compiling import address, code, compiled, plain

HOT, COLD = 0.1, 0.001
"""The temperatures between which routes are annealed, in lengths of the unit square."""


def polish_tours(
    points: Float[Tensor, "batch city 2"], tours: Int[Tensor, "batch city"], seeds: Int[Tensor, " batch"], rounds: int
) -> Int[Tensor, "batch city"]:
    """Tours that are not longer: 2-opt and Or-opt, then `rounds` of double bridges with the same."""
    return _polished_tours(points, tours, seeds, rounds, is_open=False)


def polish_paths(
    points: Float[Tensor, "batch city 2"], paths: Int[Tensor, "batch city"], seeds: Int[Tensor, " batch"], rounds: int
) -> Int[Tensor, "batch city"]:
    """Paths through all cities that are not longer and keep their ends, by the same."""
    return paths if paths.shape[1] <= 3 else _polished_tours(points, paths, seeds, rounds, is_open=True)


def _polished_tours(points: Tensor, tours: Tensor, seeds: Tensor, rounds: int, *, is_open: bool) -> Tensor:
    result = tours.to("cpu", torch.int32, copy=True).contiguous()
    count, cities = result.shape
    given = plain(points, torch.float32), plain(seeds, torch.int64)
    code().gumbeldore_polish_tours(*map(address, given), count, cities, rounds, int(is_open), address(result))
    return result.to(tours)


def polish_routes(
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
    result = actions.to("cpu", torch.int32, copy=True).contiguous()
    count, nodes = demands.shape
    given = (plain(points, torch.float32), *(plain(each, torch.int32) for each in (demands, capacity)))
    random = plain(seeds, torch.int64)
    heat = ctypes.c_double(HOT), ctypes.c_double(COLD)
    sizes = count, nodes, rounds
    code().gumbeldore_polish_routes(*map(address, given), address(random), *sizes, *heat, int(under_way), address(result))
    return result.to(actions)


def polish_schedules(
    times: Num[Tensor, "batch job operation"],
    machines: Int[Tensor, "batch job operation"],
    actions: Int[Tensor, "batch depth"],
    seeds: Int[Tensor, " batch"],
    rounds: int,
    kept: int = 0,
) -> Int[Tensor, "batch depth"]:
    """Active schedules that are not longer, by `rounds` of tabu search, in the one order of `problems/jssp/active.py`. Actions are those of
    `JSSP`; the first `kept` of them stay."""
    result = actions.to("cpu", torch.int32, copy=True).contiguous()
    count, jobs, operations = times.shape
    given = plain(times, torch.float64), plain(machines, torch.int32), plain(seeds, torch.int64)
    code().gumbeldore_polish_shops(*map(address, given), count, jobs, operations, rounds, kept, address(result))
    return result.to(actions)


def available() -> bool:
    """Whether the compiled code was installed."""
    return compiled() is not None
