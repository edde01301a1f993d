"""The options of `gumbeldore solve`, for files and for random instances of a problem."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import torch
import tyro

from gumbeldore.errors import require
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.records import as_plain
from gumbeldore.runs.settings import built
from gumbeldore.search.settings import SamplerSettings
from gumbeldore.solving.effort import Effort, PartName
from gumbeldore.solving.saving import PICTURES

P = TypeVar("P")
G = TypeVar("G")


@dataclass(frozen=True)
class SolveSettings:
    """Solve instances: TSPLIB .tsp, CVRPLIB .vrp, job shops as text, points as .csv, .json or .npy, sets as .npz. The problem is guessed
    from the content. Ctrl-C keeps the best solutions found so far."""

    files: tyro.conf.Positional[tuple[Path, ...]] = ()  # files, or folders of them
    policy: str | None = (
        None  # a policy.safetensors, the folder of a run, or the name of one that ships; none: the one that ships for the problem
    )
    preset: Literal["fast", "balanced", "best"] = "balanced"  # how hard to search: at most 1, 10 or 60 seconds per instance
    time_limit: float | None = None  # seconds per instance, instead of the preset's
    parts: tuple[PartName, ...] | None = None  # who works on an instance; by default all that there are
    sequences: int | None = None  # the policy alone: how many to sample per instance, in whole rounds
    polish: float | None = None  # afterwards: seconds per instance for PyVRP or CP-SAT to go on from the best solutions
    nearest: int | None = (
        None  # a policy's routes go on only to so many nearest nodes, 0: to all; by default 100 from 300 nodes on
    )
    problem: str | None = None  # the problem of the files, where guessing fails; also file.py:KIT, which executes that file
    start: Path | None = None  # a solution to go on from, as a file
    resume: bool = False  # go on from the solutions in the folder
    replace: bool = False  # worse solutions may replace better ones in the folder
    folder: Path = Path("runs/solve")  # solutions.json, pictures and files of solutions go here
    pictures: int = PICTURES  # draw at most so many
    json: bool = False  # print the results as JSON, and nothing else, on standard output
    workers: int | None = None  # processes; by default one per core if there are at least 4 instances
    device: str = "auto"
    sampler: str | None = (
        None  # the policy alone, with a sampler instead of a preset: greedy, beam:16, gd:32x4,sigma=0.3,p=0.8..1, ...
    )
    memory: int = 1200  # MB that all searches together may use

    @property
    def effort(self) -> Effort:
        require(self.pictures >= 0, f"`pictures` must be at least 0, got {self.pictures}.")
        require(self.workers is None or self.workers >= 0, f"`workers` must be at least 0, got {self.workers}.")
        require(self.memory >= 1, f"`memory` must be at least 1 MB, got {self.memory}.")
        own = None if self.sampler is None else SamplerSettings.of(self.sampler, self.memory).build()
        require(
            own is None or self.preset == "balanced",
            "`preset` and `sampler` both say how to search: leave one of them out.",
        )
        options = {name: getattr(self, name) for name in ("time_limit", "sequences", "parts", "nearest", "polish")}
        return Effort(own or self.preset, **options, seed=self.own_seed, memory=self.memory << 20)

    @property
    def own_seed(self) -> int:
        return 0


@dataclass(frozen=True)
class FileSettings(SolveSettings):
    __doc__ = SolveSettings.__doc__

    seed: int = 0

    @property
    def own_seed(self) -> int:
        return self.seed


@dataclass(frozen=True)
class ProblemSettings(SolveSettings, Generic[G]):
    """Solve random instances of a problem, or those of its files. Ctrl-C keeps the best solutions found so far."""

    random: int | None = None  # so many random instances (the same as --count)
    generator: G = field(kw_only=True)  # of the random instances; its seed is also that of the search

    @property
    def own_seed(self) -> int:
        return self.generator.seed  # type: ignore[attr-defined]

    @property
    def instances(self) -> Any:
        """What generates the instances."""
        require(self.random is None or self.random >= 1, f"`random` must be at least 1, got {self.random}.")
        return self.generator if self.random is None else replace(self.generator, count=self.random)  # type: ignore[type-var]


@dataclass(frozen=True)
class RandomInstances(Generic[P]):
    """Random instances of a problem that brings no generator of its own."""

    problem: P
    count: int = 1  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.count >= 1, f"`count` must be at least 1, got {self.count}.")

    def states(self, policy: Network, device: torch.device) -> tuple[Problem[Any], Any]:
        problem = built(self.problem)
        return problem, problem.generate(self.count, generator=torch.Generator().manual_seed(self.seed), device=device)


def settings_of(arguments: list[str], entry: Entry | None) -> SolveSettings:
    """The options that a user gives, for files or for a problem."""
    if entry is None:
        return tyro.cli(FileSettings, args=arguments, prog="gumbeldore solve", description=SolveSettings.__doc__)
    usual = default_generator(entry)
    kind = RandomInstances[type(usual.problem)] if isinstance(usual, RandomInstances) else type(usual)  # type: ignore[misc]
    shown = Annotated[kind, tyro.conf.arg(name="", default=usual)]  # type: ignore[misc, valid-type]
    prog, about = f"gumbeldore solve {entry.name}", ProblemSettings.__doc__
    shape: Any = ProblemSettings[shown]
    return tyro.cli(shape, args=arguments, prog=prog, description=about)


def default_generator(entry: Entry) -> Any:
    """One random instance of the size that the small preset trains on."""
    small = entry.settings().problem
    if entry.kit.generator is None:
        return RandomInstances(small)
    plain, kind = as_plain(small), entry.kit.generator
    return kind(**{f.name: plain[f.name] for f in fields(kind) if f.name in plain}, count=1)
