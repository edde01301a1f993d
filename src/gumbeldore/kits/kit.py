"""A kit: all that a problem brings along, as one record. Every command works from kits alone.

KIT = Kit("flow-shop", "permutation flow shop", problem=FlowShop(), architectures={"set": Architecture(FlowShopPolicy, Size())})

Only the problem and one network are needed. A command that needs more says in one line what the kit lacks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from gumbeldore.errors import SettingsError, require
from gumbeldore.kits.baselines import Baseline
from gumbeldore.kits.improving import LocalSearch
from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet
from gumbeldore.kits.measure import Measure
from gumbeldore.kits.published import PublishedData, PublishedNetwork
from gumbeldore.kits.solver import Limit, Solver
from gumbeldore.kits.verdict import Verdict
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, State
from gumbeldore.solutions import Solutions

Record = dict[str, Any]


@dataclass(frozen=True)
class Architecture:
    """A network for a problem. `size` is a dataclass whose fields are what `Network.from_config` takes, unless `build` says how else.

    network: The class of the network.
    size: A dataclass of its constructor's arguments, with their defaults; `--policy.d` and so on.
    summary: A few words, for the log and the help.
    build: From the problem's settings and the size.
    published: What its checkpoints in the method's public code look like.
    """

    network: type[Network]
    size: Any
    summary: str = ""
    build: Callable[[Any, Any], Network] | None = None
    published: PublishedNetwork | None = None

    def make(self, problem: Any, size: Any) -> Network:
        """A network with fresh weights for a problem with these settings."""
        return self.build(problem, size) if self.build else self.network.from_config(vars(size))


@dataclass(frozen=True)
class Instance:
    """One instance of a file. It can be sent to another process.

    arrays: In the file's own units.
    unit: As a policy should see it: moved and scaled into the unit square.
    scale: Costs of `arrays` are those of `unit` times this.
    name: As the file calls it.
    cost: Of feasible actions by the file's own rule; None: the verifier's.
    known: The best known cost, by the same rule.
    known_from: Who says so: the file, a solution beside it, our table.
    solved: Optimal actions where there is nothing to search, as with three cities.
    notes: What a user should be told: duplicate nodes, say.
    """

    arrays: Arrays
    unit: Arrays
    scale: float = 1.0
    name: str = ""
    cost: Callable[[Sequence[int]], float] | None = None
    known: float | None = None
    known_from: str = ""
    solved: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A format of files that hold instances.

    name: What the format is called in messages.
    suffixes: That its files usually have, in lower case with the dot.
    claims: Whether the beginning of a file looks like it.
    read: Strict; raises a `FormatError` that says what is wrong, and where.
    """

    name: str
    suffixes: tuple[str, ...]
    claims: Callable[[bytes], bool]
    read: Callable[[Path], list[Instance]]


@dataclass(frozen=True)
class Export:
    """A format in which a solution is written, and read back if there is a reader for it.

    suffix: How names of its files end.
    write: The text of the file.
    read: The actions of such a text, not verified.
    """

    suffix: str
    write: Callable[[Instance, Sequence[int]], str]
    read: Callable[[Instance, str], list[int]] | None = None


WarmStartedSolver = Callable[[Instance, Sequence[Sequence[int]], Limit, int], list[int]]
"""An instance, sequences of actions to start from (the best first), how long, seed: the actions of a solution, hopefully a better one."""


LocalSearchMaker = Callable[[Instance, int, Sequence[int] | None], LocalSearch]
"""An instance, a seed, and the actions of a solution to begin with (None: a plain one): a local search."""


@runtime_checkable
class InstanceGenerator(Protocol):
    """Settings from which a set of instances follows."""

    def generate(self) -> InstanceSet: ...


@runtime_checkable
class StateGenerator(Protocol):
    """Settings from which random initial states follow, for problems without instance files; the policy may decide a size."""

    seed: int

    def states(self, policy: Network, device: torch.device) -> tuple[Problem[Any], State]: ...


@dataclass(frozen=True)
class SolutionFormat:
    """How a solution is checked, written down and drawn. An instance is a record of plain arrays.

    Those are the arrays of its file; for problems without files, the fields of its row of the initial state.

    verify: Whether a solution is feasible and what it is worth, by code that did not build the solution.
    record: The natural form of a solution, for solutions.json.
    draw: Writes a picture of one solution, with a title.
    picture: Name of the file.
    compare: Draws several side by side, each with its title.
    """

    verify: Callable[[Arrays, Sequence[int]], Verdict] | None = None
    record: Callable[[Arrays, Sequence[int]], Any] = lambda instance, actions: {}
    """Its natural form, for `result.solution` and solutions.json: an object of a dataclass of plain data, or a record."""
    draw: Callable[[Path, Arrays, Sequence[int], str], None] | None = None
    picture: str = "solution.png"
    compare: Callable[[Path, Arrays, Sequence[Sequence[int]], Sequence[str]], None] | None = None


def built(problem: Any) -> Problem[Any]:
    """The problem that a record of settings describes; most problems are their own record."""
    return problem if isinstance(problem, Problem) else problem.build()


@dataclass(frozen=True)
class Kit:
    """A problem, its networks, and what else there is for it.

    name: As on the command line.
    summary: A few words, for the log and the help.
    problem: Its settings: a problem, or a record whose `build()` returns one.
    architectures: By name; the first is the usual one.
    cost: What the objective is the negative of; of problems that maximise, what it is.
    maximises: The objective is a value (a prize, say) and not the negative of a cost.
    select: What to learn from; None: the best.
    presets: A folder that holds folders of TOML files: NAME, and NAME-ARCHITECTURE for others than the usual one.
    solution_format: How a solution is checked, written down and drawn.
    instances: The arrays that instances consist of, in files.
    generator: An `InstanceGenerator` or `StateGenerator` of random instances.
    standard: Test sets by name.
    known: Best known costs of such a set.
    experts: By the module that must be installed, the preferred one first.
    baselines: Methods to compare with, by name.
    warm_started: Solvers that take a start, by module as `experts`.
    formats: Of files that hold instances, the most common one first.
    exports: Of solutions, by name.
    published: What the data files of the method's public code look like.
    policies: A folder of trained policies that ship (`problems/shipped.py`).
    restrict: The problem with only so many nearest nodes to go on to.
    of_matrix: An instance of which only distances are known, and its name.
    local_search: By the distances of an instance's file, for as long as somebody likes.
    """

    name: str
    summary: str
    problem: Any
    architectures: Mapping[str, Architecture]
    cost: str = "cost"
    maximises: bool = False
    select: Callable[[Solutions, torch.Generator], Int[Tensor, " batch"]] | None = None
    presets: Path | None = (
        None  # a folder that holds folders of TOML files: NAME, and NAME-ARCHITECTURE for others than the usual one
    )
    solution_format: SolutionFormat = SolutionFormat()
    instances: InstanceSchema | None = None
    generator: type[Any] | None = None
    standard: Mapping[str, InstanceGenerator] = field(default_factory=dict)
    known: Mapping[str, Callable[[], NDArray[np.float64]]] = field(default_factory=dict)
    experts: Mapping[str, Solver] = field(default_factory=dict)
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    warm_started: Mapping[str, WarmStartedSolver] = field(default_factory=dict)
    formats: tuple[Format, ...] = ()
    exports: Mapping[str, Export] = field(default_factory=dict)
    published: PublishedData | None = None
    policies: Path | None = None
    restrict: Callable[[Any, int], Any] | None = None
    of_matrix: Callable[[NDArray[Any], str], Instance] | None = None
    local_search: LocalSearchMaker | None = None

    def __post_init__(self) -> None:
        require(bool(self.name) and "-" not in self.name.strip("-"), f"A kit's `name` must be one word, got {self.name!r}.")
        require(len(self.architectures) >= 1, f"The kit `{self.name}` must have at least one architecture, got none.")

    @property
    def usual_problem(self) -> Problem[Any]:
        """The problem with its usual settings."""
        return built(self.problem)

    @property
    def measure(self) -> Measure:
        """How objectives are shown."""
        return Measure(self.cost, self.maximises)

    def need(self, what: str, field: str) -> Any:
        """One of the optional fields, or a one-line error that says what the kit lacks."""
        if value := getattr(self, field):
            return value
        raise SettingsError(f"There are no {what} for `{self.name}`: its kit leaves `{field}` out.")
