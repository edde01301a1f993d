"""The options of `gumbeldore solve`, for files and for random instances of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import tyro

from gumbeldore.errors import require
from gumbeldore.kits.kit import Kit, StateGenerator
from gumbeldore.kits.random_instances import RandomStates, one_instance
from gumbeldore.policy import Network
from gumbeldore.runs.presets import Entry
from gumbeldore.search.settings import SamplerSettings
from gumbeldore.solving.effort import Effort, PartName
from gumbeldore.solving.inputs import begun, files_in, random_jobs, read_jobs
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.running import Failure
from gumbeldore.solving.saving import PICTURES, SolutionFolder

G = TypeVar("G")


@dataclass(frozen=True)
class SolveSettings:
    """Solve instances: TSPLIB .tsp, CVRPLIB .vrp, job shops as text, points as .csv, .json or .npy, sets as .npz. The problem is guessed
    from the content. Ctrl-C keeps the best solutions found so far."""

    files: tyro.conf.Positional[tuple[Path, ...]] = ()  # files, or folders of them
    policy: str | None = None  # a policy.safetensors, the folder of a run, or the name of one that ships (the default)
    preset: Literal["fast", "balanced", "best"] = "balanced"  # how hard to search: at most 1, 10 or 60 seconds per instance
    time_limit: float | None = None  # seconds per instance, instead of the preset's
    parts: tuple[PartName, ...] | None = None  # who works on an instance; by default all that there are
    sequences: int | None = None  # the policy alone: how many to sample per instance, in whole rounds
    polish: float | None = None  # afterwards: seconds per instance for PyVRP or CP-SAT to go on from the best solutions
    nearest: int | None = None  # a policy goes on only to so many nearest nodes, 0: to all; by default 100 from 300 nodes on
    problem: str | None = None  # the problem of the files, where guessing fails; also file.py:KIT, which executes that file
    start: Path | None = None  # a solution to go on from, as a file
    resume: bool = False  # go on from the solutions in the folder
    replace: bool = False  # worse solutions may replace better ones in the folder
    folder: Path = Path("runs/solve")  # solutions.json, pictures and files of solutions go here
    pictures: int = PICTURES  # draw at most so many
    json: bool = False  # print the results as JSON, and nothing else, on standard output
    workers: int | None = None  # processes; by default one per core if there are at least 4 instances
    device: str = "auto"  # cpu, cuda, mps; auto: the best that is there
    sampler: str | None = None  # the policy alone, with a sampler instead of a preset: greedy, beam:16, gd:32x4,sigma=0.3, ...
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

    def jobs(self, kit: Kit | None, find: Callable[[Kit], Network]) -> tuple[list[Job], list[Failure]]:
        """The instances, and what is wrong with files."""
        require(bool(self.files), "Name at least one file: gumbeldore solve FILE...")
        return read_jobs(files_in(self.files, kit), kit)

    def begun(self, job: Job, folder: SolutionFolder) -> Job:
        """A job with the solution that it goes on from."""
        if self.start is not None:
            return begun(job, self.start)
        return folder.start(job) if self.resume else job


@dataclass(frozen=True)
class FileSettings(SolveSettings):
    __doc__ = SolveSettings.__doc__

    seed: int = 0  # of the search

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

    def jobs(self, kit: Kit | None, find: Callable[[Kit], Network]) -> tuple[list[Job], list[Failure]]:
        assert kit is not None
        if self.files:
            require(self.random is None, "`random` and files both say what to solve: leave one of them out.")
            return super().jobs(kit, find)
        require(self.random is None or self.random >= 1, f"`random` must be at least 1, got {self.random}.")
        generator: Any = self.generator
        generator = generator if self.random is None else replace(generator, count=self.random)
        return random_jobs(kit, generator, find(kit) if isinstance(generator, StateGenerator) else None), []


def settings_of(arguments: list[str], entry: Entry | None) -> SolveSettings:
    """The options that a user gives, for files or for a problem."""
    if entry is None:
        return tyro.cli(FileSettings, args=arguments, prog="gumbeldore solve", description=SolveSettings.__doc__)
    usual = one_instance(entry.kit, entry.settings().problem)
    kind = RandomStates[type(usual.problem)] if isinstance(usual, RandomStates) else type(usual)  # type: ignore[misc]
    shown = Annotated[kind, tyro.conf.arg(name="", default=usual)]  # type: ignore[misc, valid-type]
    prog, about = f"gumbeldore solve {entry.argument}", ProblemSettings.__doc__
    shape: Any = ProblemSettings[shown]
    return tyro.cli(shape, args=arguments, prog=prog, description=about)
