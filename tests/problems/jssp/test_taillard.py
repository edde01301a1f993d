"""Taillard's benchmark: generated exactly, with the bounds that are known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from gumbeldore.errors import SettingsError
from gumbeldore.problems import JSSP, taillard, taillard_benchmarks, taillard_instances
from gumbeldore.problems.jssp.taillard import Benchmark, lehmer, taillard_data, uniform_integers
from gumbeldore.problems.jssp.verify import verify_jssp

SIZES = [(15, 15), (20, 15), (20, 20), (30, 15), (30, 20), (50, 15), (50, 20), (100, 20)]
OPEN = {30, 32, 40, 41, 42, 43, 44, 46, 47, 48, 49, 50}  # not solved to optimality when the bounds were collected


def schrage(seed: int) -> Iterator[int]:
    """The generator as Taillard prints it, without numbers above 2^31."""
    while True:
        high, low = divmod(seed, 127773)
        seed = 16807 * low - 2836 * high
        seed += 2147483647 if seed < 0 else 0
        yield seed


def plain_instance(benchmark: Benchmark) -> tuple[list[list[int]], list[list[int]]]:
    """Taillard's instructions, followed one number at a time in floating point."""

    def draw(numbers: Iterator[int], low: int, high: int) -> int:
        return low + int(next(numbers) / 2147483647 * (high - low + 1))

    numbers = schrage(benchmark.time_seed)
    times = [[draw(numbers, 1, 99) for _ in range(benchmark.machines)] for _ in range(benchmark.jobs)]
    numbers, routes = schrage(benchmark.machine_seed), []
    for _ in range(benchmark.jobs):
        route = list(range(1, benchmark.machines + 1))
        for i in range(benchmark.machines):
            j = draw(numbers, i + 1, benchmark.machines) - 1
            route[i], route[j] = route[j], route[i]
        routes.append(route)
    return times, routes


def simple_bound(times: np.ndarray, machines: np.ndarray) -> int:
    """No schedule is shorter than a job, nor than the work of a machine with the least time before and after it."""
    heads = times.cumsum(1) - times
    tails = times.sum(1, keepdims=True) - heads - times
    loads = [
        heads[machines == m].min() + times[machines == m].sum() + tails[machines == m].min() for m in range(machines.shape[1])
    ]
    return int(max(*loads, times.sum(1).max()))


def test_the_first_instance_is_the_published_one() -> None:
    state = taillard(1)
    assert state.times[0, 0].tolist() == [94, 66, 10, 53, 26, 15, 65, 82, 10, 27, 93, 92, 96, 70, 83]
    assert (state.machines[0, 0] + 1).tolist() == [7, 13, 5, 8, 4, 3, 11, 12, 9, 15, 10, 14, 6, 1, 2]
    assert state.times[0, 1].tolist() == [74, 31, 88, 51, 57, 78, 8, 7, 91, 79, 18, 51, 18, 99, 33]
    assert (state.machines[0, 1] + 1).tolist() == [5, 6, 8, 15, 14, 9, 12, 10, 7, 11, 1, 4, 13, 2, 3]


@pytest.mark.parametrize("index", range(1, 81))
def test_every_instance_follows_the_printed_generator(index: int) -> None:
    state, (times, routes) = taillard(index), plain_instance(taillard_benchmarks()[index - 1])
    assert state.times[0].tolist() == times
    assert (state.machines[0] + 1).tolist() == routes


@pytest.mark.parametrize("size", SIZES)
def test_the_instances_of_a_size_are_the_single_ones_in_order(size: tuple[int, int]) -> None:
    together = taillard_instances(*size)
    indices = [i for i, b in enumerate(taillard_benchmarks(), 1) if (b.jobs, b.machines) == size]
    assert len(indices) == 10
    assert torch.equal(together.times, torch.cat([taillard(i).times for i in indices]))
    assert torch.equal(together.machines, torch.cat([taillard(i).machines for i in indices]))


def test_the_table_is_complete_and_its_bounds_are_sane() -> None:
    benchmarks = taillard_benchmarks()
    assert [b.name for b in benchmarks] == [f"ta{i:02d}" for i in range(1, 81)]
    assert list(dict.fromkeys((b.jobs, b.machines) for b in benchmarks)) == SIZES
    assert len({seed for b in benchmarks for seed in (b.time_seed, b.machine_seed)}) == 160
    assert all(b.lower_bound <= b.upper_bound for b in benchmarks)
    assert {i for i, b in enumerate(benchmarks, 1) if b.lower_bound < b.upper_bound} == OPEN
    assert (benchmarks[0].upper_bound, benchmarks[60].upper_bound, benchmarks[79].upper_bound) == (1231, 2868, 5183)


def test_the_table_agrees_with_the_shared_data(shared) -> None:
    def read(name: str) -> list[list[str]]:
        return [line.split(",") for line in (shared / "data" / name).read_text().splitlines()[1:]]

    for benchmark, seeds, bounds in zip(
        taillard_benchmarks(), read("taillard_seeds.csv"), read("taillard_bounds.csv"), strict=True
    ):
        assert [benchmark.name, benchmark.jobs, benchmark.machines] == [seeds[0], int(seeds[1]), int(seeds[2])]
        assert [benchmark.time_seed, benchmark.machine_seed] == [int(seeds[3]), int(seeds[4])]
        assert [benchmark.upper_bound, benchmark.lower_bound] == [int(bounds[3]), int(bounds[4])]


def test_simple_bounds_of_the_generated_data_never_contradict_the_published_ones() -> None:
    """For long and narrow instances the optimum is the load of a machine, so wrong data would show."""
    tight = 0
    for index, benchmark in enumerate(taillard_benchmarks(), 1):
        state = taillard(index)
        bound = simple_bound(state.times[0].numpy(), state.machines[0].numpy())
        assert bound <= benchmark.upper_bound
        tight += bound == benchmark.upper_bound
    assert tight >= 15


@pytest.mark.parametrize("index", [1, 11, 31, 51])
def test_no_schedule_beats_the_lower_bound(index: int) -> None:
    """Schedules that always take the job which can start first, and among those the one with most work left."""
    problem, state = JSSP(), taillard(index)
    work = torch.nn.functional.pad(state.times[0].flip(1).cumsum(1).flip(1), (0, 1))  # of an operation and those after it
    sequence = []
    while not bool(problem.done(state)):
        start = state.next_starts().masked_fill(~state.unfinished, 10**6)
        job = (start * 10**5 - work.gather(1, state.scheduled.t()).t()).argmin(1)
        sequence.append(int(job))
        state = problem.step(state, job)
    makespan = -problem.objective(state).item()
    benchmark = taillard_benchmarks()[index - 1]
    assert benchmark.lower_bound <= makespan <= 1.6 * benchmark.upper_bound
    assert verify_jssp(state.times[0], state.machines[0], sequence).objective == -makespan


def test_the_generator_multiplies_modulo_a_prime() -> None:
    numbers = schrage(12345)
    assert lehmer([12345], 1000)[0].tolist() == [next(numbers) for _ in range(1000)]
    state = 1
    for _ in range(9999):  # the standard test of Park and Miller (1988): z_10001 = 1043618065 for z_1 = 1
        state = 16807 * state % (2**31 - 1)
    assert int(lehmer([1], 10000)[0, -1]) == 1043618065 == 16807 * state % (2**31 - 1)


def test_integers_stay_within_their_range_for_extreme_states() -> None:
    extremes = torch.tensor([1, 2**31 - 2])
    assert uniform_integers(extremes, 99).tolist() == [0, 98]
    assert uniform_integers(extremes, 1).tolist() == [0, 0]


@pytest.mark.parametrize("index", [0, 81, -1])
def test_an_unknown_index_is_refused(index: int) -> None:
    with pytest.raises(SettingsError, match=rf"`index` must lie in 1 .. 80 \(ta01 .. ta80\), got {index}"):
        taillard(index)


def test_an_unknown_size_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(SettingsError, match=r"\(15x15, 20x15, .*100x20\), got 10x10"):
        taillard_instances(10, 10)


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
def test_seeds_that_the_generator_cannot_leave_are_refused(seed: int) -> None:
    with pytest.raises(SettingsError, match=f"`machine_seeds` must lie in 1 .. 2147483646, got {seed}"):
        taillard_data(2, 2, [1], [seed])
