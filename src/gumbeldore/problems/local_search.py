"""Compiled local search that makes routes and schedules shorter (`compiled/`, C++ without any dependency, called through ctypes).

Deterministic: what becomes of an instance depends on its solution, its seed and the number of rounds alone.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from gumbeldore.errors import SettingsError

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
    given = _plain(points, torch.float32), _plain(seeds, torch.int64)
    _code().gumbeldore_polish_tours(*map(_address, given), count, cities, rounds, int(is_open), _address(result))
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
    given = (_plain(points, torch.float32), *(_plain(each, torch.int32) for each in (demands, capacity)))
    random = _plain(seeds, torch.int64)
    heat = ctypes.c_double(HOT), ctypes.c_double(COLD)
    sizes = count, nodes, rounds
    _code().gumbeldore_polish_routes(*map(_address, given), _address(random), *sizes, *heat, int(under_way), _address(result))
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
    given = _plain(times, torch.float64), _plain(machines, torch.int32), _plain(seeds, torch.int64)
    _code().gumbeldore_polish_shops(*map(_address, given), count, jobs, operations, rounds, kept, _address(result))
    return result.to(actions)


def available() -> bool:
    """Whether the compiled code was installed."""
    return _library() is not None


@functools.cache
def _library() -> Any | None:
    try:
        module = importlib.import_module("gumbeldore.problems._local_search")
    except ImportError:
        return None
    code = ctypes.CDLL(str(module.__file__))
    for name in ("tours", "routes", "shops"):
        getattr(code, f"gumbeldore_polish_{name}").restype = None
    return code


def _code() -> Any:
    code = _library()
    if code is None:
        raise SettingsError(
            "Local search is not compiled on this machine. With a C++ compiler (g++ or clang++) installed, install this package again; "
            "or leave `polish` out."
        )
    return code


def _plain(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.detach().to("cpu", dtype).contiguous()


def _address(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())
