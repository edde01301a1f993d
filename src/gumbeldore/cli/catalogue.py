"""The problems that the command line knows, with their networks and presets. Library users do not need this file.

A new entry is one `Entry` here and its presets as TOML files in `presets/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, Literal

from gumbeldore.cli.settings import merged, read_settings
from gumbeldore.errors import SettingsError, require
from gumbeldore.policies import CVRPLehdPolicy, CVRPPolicy, GomokuPolicy, JSSPPolicy, TSPLehdPolicy, TSPPolicy
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.problems import CVRP, JSSP, TSP, Gomoku
from gumbeldore.problems.gomoku.problem import random_winner
from gumbeldore.problems.mixture import AnyOf
from gumbeldore.search.advantage import outcome
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import Gumbeldore, Sampler, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.training.algorithm import Select, TrainingSettings, select_best

SUPERVISED = "supervised"
"""Presets whose names begin so are for learning from expert solutions (`gumbeldore imitate`)."""


@dataclass(frozen=True)
class TransformerSize:
    """Size of a transformer policy; the defaults are the paper's for the TSP."""

    d: int = 128  # width
    layers: int = 9
    heads: int = 8
    ff: int = 512  # width of the feed-forward part


@dataclass(frozen=True)
class JobShopSize:
    """Size of the job shop's transformer; the defaults are the paper's."""

    d: int = 64  # width
    pairs: int = 3  # of a job-wise and a machine-wise layer
    heads: int = 8
    ff: int = 256  # width of the feed-forward part


@dataclass(frozen=True)
class TowerSize:
    """Size of Gomoku's convolutional network; the defaults are the paper's."""

    channels: int = 32
    blocks: int = 2
    head_channels: int = 16
    hidden: int = 32


@dataclass(frozen=True)
class JobShops:
    """Random job shops. Several numbers of jobs or machines: each epoch draws one of their combinations."""

    jobs: int | tuple[int, ...] = 15
    machines: int | tuple[int, ...] = 15

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        jobs, machines = ((n,) if isinstance(n, int) else n for n in (self.jobs, self.machines))
        shops = tuple(JSSP(*size) for size in product(jobs, machines))
        return shops[0] if len(shops) == 1 else AnyOf(shops)


@dataclass(frozen=True)
class SamplerSettings:
    """How solutions are sampled."""

    method: Literal["gumbeldore", "theory", "outcome", "without-replacement", "with-replacement"] = "gumbeldore"
    beam_width: int = 32
    rounds: int = 4
    sigma: float = 0.3  # step size of the advantage update
    p_min: float = 1.0  # nucleus of the first round, growing to 1 in the last; 1: off
    p_min_from_epoch: int = 1  # until then 1 (no nucleus)
    first_round_deterministic: bool = False  # the first round is a plain beam search: it exploits, the others explore
    memory_mb: int = 2048  # what a search may use
    transpositions: bool = True  # evaluate equal states once per search

    def __post_init__(self) -> None:
        self.build(self.p_min_from_epoch)  # raises where a value is out of range

    def build(self, epoch: int = 1) -> Sampler:
        """The sampler of an epoch (from 1)."""
        p = self.p_min if epoch >= self.p_min_from_epoch else 1.0
        memory = self.memory_mb << 20
        rounds: dict[str, Any] = {
            "beam_width": self.beam_width,
            "rounds": self.rounds,
            "nucleus": (p, 1.0),
            "first_round_deterministic": self.first_round_deterministic,
            "memory": memory,
            "transpositions": self.transpositions,
        }
        makers: dict[str, Callable[[], Sampler]] = {
            "gumbeldore": lambda: Gumbeldore(**rounds, sigma=self.sigma),
            "theory": lambda: TheoryGumbeldore(**rounds, sigma=self.sigma),
            "outcome": lambda: Gumbeldore(**rounds, sigma=self.sigma, advantage=outcome),  # for games
            "without-replacement": lambda: StochasticBeamSearch(**rounds),
            "with-replacement": lambda: WithReplacement(self.beam_width * self.rounds, memory=memory),
        }
        return makers[self.method]()


@dataclass(frozen=True)
class ValidationSettings:
    """The instances on which the greedy policy is judged after every epoch."""

    instances: int = 1000
    seed: int = 4321
    problem: dict[str, int] = field(default_factory=dict)  # settings of the problem in which they differ from it

    def __post_init__(self) -> None:
        require(self.instances >= 1, f"`validation.instances` must be at least 1, got {self.instances}.")


@dataclass(frozen=True)
class RunSettings:
    """Everything that defines a training run."""

    problem: Any  # a problem, or a record that builds one
    policy: Any
    sampler: SamplerSettings = field(default_factory=SamplerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    validation: ValidationSettings = field(default_factory=ValidationSettings)

    def __post_init__(self) -> None:
        _ = self.validation_problem  # raises where a setting is unknown or out of range

    @property
    def training_problem(self) -> Problem[Any]:
        return _built(self.problem)

    @property
    def validation_problem(self) -> Problem[Any]:
        return _built(merged(self.problem, self.validation.problem, "validation.problem."))


def _built(problem: Any) -> Problem[Any]:
    """The problem that a record of settings describes; most problems are their own record."""
    return problem if isinstance(problem, Problem) else problem.build()


@dataclass(frozen=True)
class Entry:
    """A problem with one network architecture."""

    name: str
    summary: str
    problem: Any  # its settings: a problem, or a record that builds one
    size: Any  # of the network
    build: Callable[[RunSettings], Network]
    cost: str = "cost"  # what the objective is the negative of
    select: Select = select_best  # which sampled solutions to learn from
    instances: str | None = None  # the kind of instance files that fit (`instances.KINDS`)

    def presets(self) -> dict[str, Path]:
        """Preset files by name."""
        folder = Path(str(resources.files("gumbeldore.problems"))) / self.name.partition("-")[0] / "presets" / self.name
        return {path.stem: path for path in sorted(folder.glob("*.toml"))}

    def settings(self, preset: str | None = None, changes: Mapping[str, Any] | None = None) -> RunSettings:
        """The settings of a preset ('small' by default), with `changes` on top."""
        settings = RunSettings(problem=self.problem, policy=self.size)
        files, preset = self.presets(), preset or "small"
        if preset not in files:
            raise SettingsError(f"Unknown preset `{preset}` for {self.name}. Known: {', '.join(files)}.")
        return merged(merged(settings, read_settings(files[preset])), changes or {})


def transformer(policy: Callable[..., Network]) -> Callable[[RunSettings], Network]:
    return lambda run: policy(run.policy.d, run.policy.layers, run.policy.heads, run.policy.ff)


def job_shop_network(run: RunSettings) -> Network:
    return JSSPPolicy(run.policy.d, run.policy.pairs, run.policy.heads, run.policy.ff)


def gomoku_network(run: RunSettings) -> Network:
    size = run.policy
    return GomokuPolicy(run.problem.size, size.channels, size.blocks, size.head_channels, size.hidden)


LEHD = TransformerSize(layers=6)

CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            "tsp",
            "travelling salesman, BQ network",
            TSP(),
            TransformerSize(),
            transformer(TSPPolicy),
            "tour length",
            instances="tsp",
        ),
        Entry(
            "tsp-lehd",
            "travelling salesman, LEHD network",
            TSP(),
            LEHD,
            transformer(TSPLehdPolicy),
            "tour length",
            instances="tsp",
        ),
        Entry(
            "cvrp",
            "capacitated vehicle routing, BQ network",
            CVRP(),
            TransformerSize(d=192, heads=12),
            transformer(CVRPPolicy),
            "length of all subtours",
            instances="cvrp",
        ),
        Entry(
            "cvrp-lehd",
            "capacitated vehicle routing, LEHD network",
            CVRP(),
            LEHD,
            transformer(CVRPLehdPolicy),
            "length of all subtours",
            instances="cvrp",
        ),
        Entry("jssp", "job shop scheduling", JobShops(), JobShopSize(), job_shop_network, "makespan", instances="jssp"),
        Entry(
            "gomoku", "Gomoku against a rule bot", Gomoku(), TowerSize(), gomoku_network, "lost minus won games", random_winner
        ),
    )
}


def entry(name: str) -> Entry:
    if name not in CATALOGUE:
        raise SettingsError(f"Unknown problem `{name}`. Known: {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]
