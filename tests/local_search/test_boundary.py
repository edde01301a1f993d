"""Tests of the boundary between Python and compiled code: what it refuses, and that long work can be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gumbeldore.errors import SettingsError
from gumbeldore.local_search import compiling
from gumbeldore.local_search.improve import improve_paths, improve_routes, improve_schedules, improve_tours
from gumbeldore.networks import native
from gumbeldore.networks.layers import Block, Stack
from gumbeldore.networks.segments import Layout
from gumbeldore.problems.cvrp import savings
from gumbeldore.problems.tsp.trees import bound_paths

pytestmark = pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")

SEED = torch.zeros(1, dtype=torch.long)
FOREVER = 1 << 40


def points(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(1, count, 2, generator=torch.Generator().manual_seed(seed))


def tour(count: int) -> torch.Tensor:
    return torch.arange(count)[None]


def routes(count: int) -> torch.Tensor:
    return 2 * torch.arange(count)[None] + 1


def with_value(tensor: torch.Tensor, place: tuple[int, ...], value: float) -> torch.Tensor:
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


def shop(jobs: int, machines: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    times = torch.randint(1, 99, (1, jobs, machines), generator=generator)
    order = torch.stack([torch.randperm(machines, generator=generator) for _ in range(jobs)])[None]
    return times, order, torch.arange(jobs).repeat(machines)[None]


def directly(*given: Any) -> None:
    """Past the wrapper that tensors go through."""
    compiling.code().improve_tours(*(each.numpy() if isinstance(each, torch.Tensor) else each for each in given))


def by_routes(**given: Any) -> torch.Tensor:
    usual = {"points": points(6), "demands": torch.tensor([[0, 1, 1, 1, 1, 1]]), "capacity": torch.tensor([3])}
    return improve_routes(**{**usual, "actions": routes(5), "seeds": SEED, "rounds": 5, **given})


def by_schedules(**given: Any) -> torch.Tensor:
    times, machines, actions = shop(3, 2)
    return improve_schedules(**{"times": times, "machines": machines, "actions": actions, "seeds": SEED, "rounds": 5, **given})


def by_bounds(**given: Any) -> Any:
    return bound_paths(**{"points": points(6), "counts": torch.tensor([6]), "rounds": 5, "tries": 2, **given})


def by_savings(**given: Any) -> Any:
    usual = {"demands": torch.ones(1, 6, dtype=torch.long), "capacity": torch.tensor([3]), "counts": torch.tensor([6])}
    return savings._compiled(**{"points": points(6), **usual, **given})


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "padded tours": (lambda: improve_tours(points(5), with_value(tour(5), (0, 4), -1), SEED, 1), "`tours` must be in 0 .. 4"),
    "cities beyond the last": (lambda: improve_tours(points(5), tour(5) + 1, SEED, 1), "`tours` must be in 0 .. 4, got 5"),
    "cities twice": (
        lambda: improve_tours(points(5), tour(5) * 0, SEED, 1),
        "`tours` must hold every number once, got 0 twice",
    ),
    "too few points": (lambda: directly(points(4), SEED, 1, False, tour(5)), "Axis 1 of `points` must have the size 5, got 4"),
    "too few seeds": (
        lambda: directly(points(5), SEED[:0], 1, False, tour(5)),
        "Axis 0 of `seeds` must have the size 1, got 0",
    ),
    "no cities": (lambda: improve_tours(points(0), tour(0), SEED, 1), "The number of cities must be in 1 .."),
    "points that are no numbers": (
        lambda: improve_tours(with_value(points(9), (0, 3, 1), np.nan), tour(9), SEED, 1),
        "`points` must be in -1e\\+15 .. 1e\\+15, got -?nan",
    ),
    "infinite points": (
        lambda: improve_paths(with_value(points(9), (0, 3, 1), np.inf), tour(9), SEED, 1),
        "`points` must be in .*, got inf",
    ),
    "rounds beyond 64 bits": (lambda: improve_tours(points(5), tour(5), SEED, 1 << 64), "`rounds` must be a whole number"),
    "customers beyond the last": (lambda: by_routes(actions=routes(5) + 2), "`actions` must be in 0 .. 9, got 11"),
    "padded routes": (lambda: by_routes(actions=with_value(routes(5), (0, 2), -1)), "`actions` must be in 0 .. 9, got -1"),
    "customers twice": (
        lambda: by_routes(actions=torch.tensor([[1, 3, 5, 7, 6]])),
        "must serve every customer once, got customer 3 twice",
    ),
    "a single seed": (lambda: directly(points(5), SEED[0], 1, False, tour(5)), "`seeds` must have 1 axis, got 0"),
    "negative demands": (lambda: by_routes(demands=-torch.ones(1, 6, dtype=torch.long)), "`demands` must be in 0 .."),
    "routes that are too full": (
        lambda: by_routes(actions=torch.tensor([[1, 2, 4, 6, 8]])),
        "must load at most the capacity, 3, got 4",
    ),
    "a vehicle elsewhere": (lambda: by_routes(actions=routes(5).flip(1), under_way=True), "must begin with the first customer"),
    "jobs beyond the last": (lambda: by_schedules(actions=shop(3, 2)[2] + 1), "`actions` must be in 0 .. 2, got 3"),
    "jobs too often": (lambda: by_schedules(actions=shop(3, 2)[2] * 0), "every job 2 times, got 0 more often"),
    "too few actions": (lambda: by_schedules(actions=shop(3, 2)[2][:, :5]), "Axis 1 of `actions` must have the size 6, got 5"),
    "machines beyond the last": (lambda: by_schedules(machines=shop(3, 2)[1] + 1), "`machines` must be in 0 .. 1, got 2"),
    "machines twice": (lambda: by_schedules(machines=shop(3, 2)[1] * 0), "`machines` must hold every number once"),
    "machines beyond 32 bits": (lambda: by_schedules(machines=shop(3, 2)[1] + (1 << 32)), "Whole numbers must be in"),
    "negative kept": (lambda: by_schedules(kept=-1), "`kept` must be in 0 .. 6, got -1"),
    "kept beyond the end": (lambda: by_schedules(kept=7), "`kept` must be in 0 .. 6, got 7"),
    "negative times": (lambda: by_schedules(times=-shop(3, 2)[0]), "`times` must be in 0 .."),
    "no jobs": (
        lambda: by_schedules(times=torch.zeros(1, 0, 2), machines=torch.zeros(1, 0, 2).long()),
        "number of jobs must be in 1",
    ),
    "no trees": (lambda: by_bounds(rounds=0), "`rounds` must be at least 1, got 0"),
    "counts of 0": (lambda: by_bounds(counts=torch.tensor([0])), "`counts` must be in 2 .. 6, got 0"),
    "counts above the places": (lambda: by_bounds(counts=torch.tensor([7])), "`counts` must be in 2 .. 6, got 7"),
    "paths that are nowhere": (lambda: by_bounds(points=points(6) * np.nan), "`points` must be in"),
    "savings beyond the places": (lambda: by_savings(counts=torch.tensor([7])), "`counts` must be in 2 .. 6, got 7"),
    "savings of nothing": (lambda: by_savings(counts=torch.tensor([0])), "`counts` must be in 2 .. 6, got 0"),
    "other numbers": (
        lambda: directly(points(5).double(), SEED, 1, False, tour(5)),
        "`points` must be an array of float32",
    ),
    "arrays with gaps": (
        lambda: directly(torch.zeros(1, 5, 4)[:, :, ::2], SEED, 1, False, tour(5)),
        "`points` must be a contiguous array",
    ),
    "too few arguments": (lambda: directly(), "`improve_tours` takes 5 arguments, got 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_in_one_line(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(SettingsError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_empty_batches_stay_empty() -> None:
    none = torch.zeros(0, dtype=torch.long)
    assert improve_tours(points(5)[:0], tour(5)[:0], none, 3).shape == (0, 5)
    empty = {"points": points(6)[:0], "demands": torch.zeros(0, 6).long(), "capacity": none, "actions": routes(5)[:0]}
    assert by_routes(**empty, seeds=none).shape == (0, 5)
    times, machines, actions = shop(3, 2)
    assert by_schedules(times=times[:0], machines=machines[:0], actions=actions[:0], seeds=none).shape == (0, 6)
    assert by_bounds(points=points(6)[:0], counts=none).price.shape == (0, 6)


def test_large_demands_do_not_overflow() -> None:
    capacity = 2_000_000_000
    demands = torch.full((1, 9), 1_500_000_000)
    demands[0, 0] = 0
    better = by_routes(points=points(9), demands=demands, capacity=torch.tensor([capacity]), actions=routes(8), rounds=300)
    assert bool((better % 2 == 1).all())  # no two of them fit into one vehicle


@pytest.mark.parametrize("scale", [1e-9, 1.0, 3000.0, 1e9])
@pytest.mark.parametrize("kind", ["random", "grid", "equal", "line"])
def test_tours_of_any_scale_and_shape_come_to_an_end(scale: float, kind: str) -> None:
    index = torch.arange(64.0)
    given = {
        "random": points(64)[0],
        "grid": torch.stack([index // 8, index % 8], 1) / 7,
        "equal": torch.zeros(64, 2),
        "line": torch.stack([index, index], 1) / 63,
    }[kind]
    found = improve_tours(scale * given[None], torch.randperm(64, generator=torch.Generator().manual_seed(1))[None], SEED, 200)
    assert found[0].sort().values.tolist() == list(range(64))


class _StoppedError(Exception):
    pass


LONG: dict[str, Callable[[], Any]] = {
    "tours": lambda: improve_tours(points(30), tour(30), SEED, FOREVER),
    "routes": lambda: by_routes(rounds=FOREVER),
    "schedules": lambda: improve_schedules(*shop(8, 8), SEED, FOREVER),
    "bounds": lambda: by_bounds(rounds=(1 << 31) - 2, points=points(40), counts=torch.tensor([40])),
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
@pytest.mark.parametrize("name", LONG)
def test_signals_end_what_would_take_for_ever(name: str) -> None:
    def stop(number: int, frame: Any) -> None:
        raise _StoppedError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(_StoppedError):
            LONG[name]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_meanwhile() -> None:
    done = threading.Event()
    worker = threading.Thread(target=lambda: (improve_tours(points(60), tour(60), SEED, 20_000), done.set()))
    worker.start()
    turns = 0
    while not done.is_set():
        turns += 1
    worker.join()
    assert turns > 0


def test_blocks_refuse_layouts_of_other_tokens() -> None:
    with torch.no_grad():
        stack = Stack([Block(16, 4, 32)])
        blocks = [stack[0].fold()]
        for starts in ([0, 9], [1, 4], [0, 3, 2]):
            with pytest.raises(SettingsError, match="`starts` must rise from 0 to at most 8"):
                native.run(torch.zeros(8, 16), blocks, [Layout(torch.tensor(starts, dtype=torch.int32))])
        wrong = Layout(torch.tensor([0, 2], dtype=torch.int32), torch.tensor([3, 8], dtype=torch.int32))
        with pytest.raises(SettingsError, match=r"`tokens` must be in 0 .. 7, got 8"):
            native.run(torch.zeros(8, 16), blocks, [wrong])
        with pytest.raises(SettingsError, match="Axis 1 of `x` must have the size 16, got 12"):
            native.run(torch.zeros(8, 12), blocks, [Layout(torch.tensor([0, 8], dtype=torch.int32))])
