"""Taillard's job shop benchmark ta01 .. ta80, generated from its seeds.

The generator and the seeds (`taillard.csv`, columns `time_seed` and `machine_seed`) are those of E. Taillard, "Benchmarks for
basic scheduling problems", European Journal of Operational Research 64 (1993). The bounds on the optimal makespan are the
best known ones as collected by ScheduleOpt (github.com/ScheduleOpt/benchmarks, 79f0edc1, 2026-08-19); where they are equal,
they are the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.problems.jssp.problem import JSSP, JSSPState
from gumbeldore.problems.lehmer import MODULUS, lehmer, uniform_integers


@dataclass(frozen=True)
class Benchmark:
    """One of Taillard's instances: its size, its seeds, and what is known about its optimal makespan."""

    name: str
    jobs: int
    machines: int
    time_seed: int
    machine_seed: int
    lower_bound: int
    upper_bound: int


@cache
def taillard_benchmarks() -> tuple[Benchmark, ...]:
    """ta01 .. ta80 in order."""
    _, *lines = files("gumbeldore.problems.jssp").joinpath("taillard.csv").read_text(encoding="utf-8").split()
    return tuple(Benchmark(name, *map(int, numbers)) for name, *numbers in (line.split(",") for line in lines))


def taillard(index: int) -> JSSPState:
    """The instance ta`index`, from 1 to 80."""
    benchmarks = taillard_benchmarks()
    require(1 <= index <= len(benchmarks), f"`index` must lie in 1 .. {len(benchmarks)} (ta01 .. ta80), got {index}.")
    return _generate([benchmarks[index - 1]])


def taillard_instances(jobs: int, machines: int) -> JSSPState:
    """All of Taillard's instances of a size, in order."""
    chosen = [benchmark for benchmark in taillard_benchmarks() if (benchmark.jobs, benchmark.machines) == (jobs, machines)]
    sizes = ", ".join(dict.fromkeys(f"{benchmark.jobs}x{benchmark.machines}" for benchmark in taillard_benchmarks()))
    require(bool(chosen), f"`jobs` and `machines` must be one of Taillard's sizes ({sizes}), got {jobs}x{machines}.")
    return _generate(chosen)


def taillard_data(
    jobs: int, machines: int, time_seeds: Sequence[int], machine_seeds: Sequence[int]
) -> tuple[Int[Tensor, "batch job operation"], Int[Tensor, "batch job operation"]]:
    """Processing times and machines (from 0) of Taillard's generator, one instance for each pair of seeds."""
    for name, seeds in (("time_seeds", time_seeds), ("machine_seeds", machine_seeds)):
        for seed in seeds:
            require(0 < seed < MODULUS, f"`{name}` must lie in 1 .. {MODULUS - 1}, got {seed}.")
    shape = (len(time_seeds), jobs, machines)
    times = uniform_integers(lehmer(time_seeds, jobs * machines), 99).view(shape) + 1
    draws = lehmer(machine_seeds, jobs * machines).view(shape)
    route = torch.arange(machines).expand(shape).clone()
    for position in range(machines):  # each machine changes places with one that is not before it
        other = position + uniform_integers(draws[..., position, None], machines - position)
        here, there = route[..., position, None].clone(), route.gather(2, other)
        route.scatter_(2, other, here)
        route[..., position, None] = there
    return times, route


def _generate(chosen: Sequence[Benchmark]) -> JSSPState:
    jobs, machines = chosen[0].jobs, chosen[0].machines
    seeds = [b.time_seed for b in chosen], [b.machine_seed for b in chosen]
    return JSSP(jobs, machines).instances(*taillard_data(jobs, machines, *seeds))
