"""Random instances by recipes that anyone can repeat with numpy, and the standard test sets by their published ones.

`numpy.random.RandomState` is frozen: its numbers never change between versions of numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import tyro
from rich.console import Console

from gumbeldore.errors import require
from gumbeldore.problems.instances import KINDS, InstanceSet, kind_of, write_instances
from gumbeldore.problems.jssp.taillard import taillard_instances


@runtime_checkable
class Recipe(Protocol):
    """Settings from which a set of instances follows."""

    def generate(self) -> InstanceSet: ...


def _check(*, seed: int, **counts: int) -> None:
    for name, value in counts.items():
        least = 3 if name == "cities" else 1
        require(value >= least, f"`{name}` must be at least {least}, got {value}.")
    require(0 <= seed < 2**32, f"`seed` must lie in 0 .. 2^32 - 1, got {seed}.")


@dataclass(frozen=True)
class TSPRecipe:
    """Cities uniform in the unit square: `RandomState(seed).uniform(size=(count, cities, 2))`."""

    cities: int = 100
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        _check(count=self.count, cities=self.cities, seed=self.seed)

    def generate(self) -> InstanceSet:
        coordinates = np.random.RandomState(self.seed).uniform(size=(self.count, self.cities, 2))
        return InstanceSet(KINDS["tsp"], {"coordinates": coordinates})


@dataclass(frozen=True)
class CVRPRecipe:
    """Depot and customers uniform in the unit square, demands uniform in 1 .. 9, and a capacity or a range of them.

    In this order from one RandomState(seed): `uniform(size=(count, 1 + customers, 2))`, `randint(1, 10, (count, customers))`,
    `randint(low, high + 1, count)`.
    """

    customers: int = 100
    capacity: int | tuple[int, int] = 50  # of the vehicle: one number, or the smallest and the largest
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        _check(count=self.count, customers=self.customers, seed=self.seed)
        low, high = self._range
        require(9 <= low <= high, f"`capacity` must be at least 9, the largest demand, and low <= high, got {self.capacity}.")

    @property
    def _range(self) -> tuple[int, int]:
        return (self.capacity, self.capacity) if isinstance(self.capacity, int) else self.capacity

    def generate(self) -> InstanceSet:
        random, (low, high) = np.random.RandomState(self.seed), self._range
        nodes = random.uniform(size=(self.count, 1 + self.customers, 2))
        demands = np.zeros((self.count, 1 + self.customers), dtype=np.int64)
        demands[:, 1:] = random.randint(1, 10, (self.count, self.customers), dtype=np.int64)
        capacity = random.randint(low, high + 1, self.count, dtype=np.int64)
        return InstanceSet(KINDS["cvrp"], {"nodes": nodes, "demands": demands, "capacity": capacity})


@dataclass(frozen=True)
class JSSPRecipe:
    """Processing times uniform in 1 .. 99, machine orders uniform permutations.

    In this order from one RandomState(seed): `randint(1, 100, (count, jobs, machines))`, and
    `uniform(size=(count, jobs, machines)).argsort(2)`.
    """

    jobs: int = 15
    machines: int = 15
    count: int = 1000  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        _check(count=self.count, jobs=self.jobs, machines=self.machines, seed=self.seed)

    def generate(self) -> InstanceSet:
        random, shape = np.random.RandomState(self.seed), (self.count, self.jobs, self.machines)
        times = random.randint(1, 100, shape, dtype=np.int64)
        return InstanceSet(KINDS["jssp"], {"times": times, "machines": random.uniform(size=shape).argsort(2)})


@dataclass(frozen=True)
class TaillardRecipe:
    """Taillard's (1993) ten instances of a size, from his generator and seeds."""

    jobs: int
    machines: int

    def generate(self) -> InstanceSet:
        state = taillard_instances(self.jobs, self.machines)
        return InstanceSet(KINDS["jssp"], {"times": state.times.numpy(), "machines": state.machines.numpy()})


TAILLARD_SIZES = ((15, 15), (20, 15), (20, 20), (30, 15), (30, 20), (50, 15), (50, 20), (100, 20))

RECIPES: dict[str, type[Any]] = {"tsp": TSPRecipe, "cvrp": CVRPRecipe, "jssp": JSSPRecipe}

STANDARD: dict[str, dict[str, Recipe]] = {
    "tsp": {  # the test sets of the paper, from Kool et al. (2019) and Drakulic et al. (2023)
        **{f"tsp{cities}": TSPRecipe(cities, 10_000, 1234) for cities in (20, 50, 100)},
        **{f"tsp{cities}": TSPRecipe(cities, 128, 777) for cities in (200, 500, 1000)},
    },
    "cvrp": {  # the paper's sizes and capacities; there is no public recipe, so the seeds are ours
        **{f"cvrp{n}": CVRPRecipe(n, capacity, 10_000, 1234) for n, capacity in {20: 30, 50: 40, 100: 50}.items()},
        **{f"cvrp{n}": CVRPRecipe(n, capacity, 128, 777) for n, capacity in {200: 80, 500: 100, 1000: 250}.items()},
    },
    "jssp": {f"taillard-{jobs}x{machines}": TaillardRecipe(jobs, machines) for jobs, machines in TAILLARD_SIZES},
}
"""The standard test sets of every problem, by name."""

R = TypeVar("R")


@dataclass(frozen=True)
class GenerateSettings(Generic[R]):
    """Write random instances, or a standard test set, into a file."""

    out: Path  # the file to write: .npz
    recipe: Annotated[R, tyro.conf.arg(name="")]
    standard: str | None = None  # a standard test set by name, instead of one by size, count and seed


def options(kind: str) -> tuple[Any, str]:
    """The settings of `gumbeldore generate` for one problem, and their description."""
    recipe = RECIPES[kind_of(kind).name]
    return GenerateSettings[recipe], f"{GenerateSettings.__doc__}\n\nStandard test sets: {', '.join(STANDARD[kind])}."  # type: ignore[valid-type]


def generate(settings: GenerateSettings[Any], console: Console | None = None) -> InstanceSet:
    """Writes the file and returns what is in it."""
    require(not settings.out.exists(), f"{settings.out} exists already. Delete it, or choose another --out.")
    instances = chosen(settings.recipe, settings.standard).generate()
    write_instances(settings.out, instances)
    (console or Console()).print(f"Wrote {len(instances)} {instances.kind.name} instances to {settings.out}.", highlight=False)
    return instances


def chosen(recipe: Any, standard: str | None) -> Recipe:
    """The recipe, or the standard set that is asked for by name."""
    if standard is None:
        return recipe
    kind = next(name for name, known in RECIPES.items() if isinstance(recipe, known))
    known = STANDARD[kind]
    require(standard in known, f"`standard` must be one of {', '.join(known)}, got {standard!r}.")
    require(recipe == type(recipe)(), "`standard` names a whole set: leave out the other options that say what to generate.")
    return known[standard]
