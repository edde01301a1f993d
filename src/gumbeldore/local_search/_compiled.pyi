# What `compiled/module.cpp` offers. Arrays are contiguous; what they hold is checked there.
import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float32]
_Doubles = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Longs = NDArray[np.int64]

def improve_tours(points: _Floats, seeds: _Longs, rounds: int, open: bool, tours: _Longs, /) -> None: ...
def improve_routes(
    points: _Floats,
    demands: _Longs,
    capacity: _Longs,
    seeds: _Longs,
    rounds: int,
    hot: float,
    cold: float,
    under_way: bool,
    actions: _Longs,
    /,
) -> None: ...
def improve_timed_routes(
    distances: _Doubles,
    demands: _Longs,
    capacity: _Longs,
    windows: _Doubles,
    service: _Doubles,
    seeds: _Longs,
    rounds: int,
    under_way: bool,
    actions: _Longs,
    /,
) -> None: ...
def improve_schedules(times: _Doubles, machines: _Ints, seeds: _Longs, rounds: int, kept: int, actions: _Longs, /) -> None: ...
def improve_flexible(times: _Doubles, seeds: _Longs, rounds: int, kept: int, actions: _Longs, /) -> None: ...
def improve_permutations(times: _Doubles, seeds: _Longs, rounds: int, kept: int, orders: _Longs, /) -> None: ...
def insert_jobs(times: _Doubles, orders: _Longs, /) -> None: ...
def bound_paths(
    points: _Floats,
    counts: _Ints,
    rounds: int,
    stride: float,
    tries: int,
    more_rounds: int,
    more_stride: float,
    threads: int,
    result: _Floats,
    scales: _Floats,
    /,
) -> None: ...
def look_ahead_by_savings(
    points: _Floats,
    demands: _Longs,
    capacity: _Longs,
    counts: _Ints,
    near: int,
    far: int,
    close: float,
    threads: int,
    result: _Floats,
    /,
) -> None: ...

_Held = object

def plane_distances(points: _Doubles, rule: int, /) -> _Held: ...
def matrix_distances(matrix: _Doubles, whole: bool, /) -> _Held: ...
def path_cost(distances: _Held, nodes: _Longs, /) -> float: ...
def tour_search(distances: _Held, seed: int, tour: _Longs | None, /) -> _Held: ...
def run_tours(search: _Held, work: int, seconds: float, /) -> int: ...
def best_tour(search: _Held, tour: _Longs, /) -> float: ...
def offer_tour(search: _Held, tour: _Longs, /) -> bool: ...
def stop_tours(search: _Held, /) -> None: ...
def route_search(
    distances: _Held,
    demands: _Longs,
    capacity: int,
    windows: _Doubles | None,
    service: _Doubles | None,
    seed: int,
    routes: _Longs | None,
    /,
) -> _Held: ...
def run_routes(search: _Held, work: int, seconds: float, begin: float, end: float, /) -> int: ...
def best_routes(search: _Held, nodes: _Longs, /) -> float: ...
def offer_routes(search: _Held, routes: _Longs, /) -> bool: ...
def stop_routes(search: _Held, /) -> None: ...
def schedule_search(times: _Doubles, machines: _Ints, seed: int, schedule: _Longs | None, /) -> _Held: ...
def run_schedules(search: _Held, work: int, seconds: float, /) -> int: ...
def best_schedule(search: _Held, schedule: _Longs, /) -> float: ...
def offer_schedule(search: _Held, schedule: _Longs, /) -> bool: ...
def schedule_is_optimal(search: _Held, /) -> bool: ...
def stop_schedules(search: _Held, /) -> None: ...
