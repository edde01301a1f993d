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
from gumbeldore.kits.published import PublishedData, PublishedNetwork
from gumbeldore.kits.solver import Limit, Solver
from gumbeldore.kits.verdict import Verdict
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, State
from gumbeldore.solutions import Solutions

Record = dict[str, Any]


@dataclass(frozen=True)
class Architecture:
    """A network for a problem. `size` is a dataclass whose fields are what `Network.from_config` takes, unless `build` says how else."""

    network: type[Network]
    size: Any
    summary: str = ""
    build: Callable[[Any, Any], Network] | None = None  # from the problem's settings and the size
    published: PublishedNetwork | None = None  # what its checkpoints in the method's public code look like

    def make(self, problem: Any, size: Any) -> Network:
        """A network with fresh weights for a problem with these settings."""
        return self.build(problem, size) if self.build else self.network.from_config(vars(size))


@dataclass(frozen=True)
class Instance:
    """One instance of a file. It can be sent to another process."""

    arrays: Arrays  # in the file's own units
    unit: Arrays  # as a policy should see it: moved and scaled into the unit square
    scale: float = 1.0  # costs of `arrays` are those of `unit` times this
    name: str = ""  # as the file calls it
    cost: Callable[[Sequence[int]], float] | None = None  # of feasible actions by the file's own rule; None: the verifier's
    known: float | None = None  # the best known cost, by the same rule
    known_from: str = ""  # who says so: the file, a solution beside it, our table
    solved: tuple[int, ...] | None = None  # optimal actions where there is nothing to search, as with three cities
    notes: tuple[str, ...] = ()  # what a user should be told: duplicate nodes, say


@dataclass(frozen=True)
class Format:
    """A format of files that hold instances."""

    name: str
    suffixes: tuple[str, ...]  # that its files usually have, in lower case with the dot
    claims: Callable[[bytes], bool]  # whether the beginning of a file looks like it
    read: Callable[[Path], list[Instance]]  # strict; raises a `FormatError` that says what is wrong, and where


@dataclass(frozen=True)
class Export:
    """A format in which a solution is written, and read back if there is a reader for it."""

    suffix: str
    write: Callable[[Instance, Sequence[int]], str]  # the text of the file
    read: Callable[[Instance, str], list[int]] | None = None  # the actions of such a text, not verified


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
    """

    verify: Callable[[Arrays, Sequence[int]], Verdict] | None = None  # by code that did not build the solution
    record: Callable[[Arrays, Sequence[int]], Any] = lambda instance, actions: {}
    """Its natural form, for `result.solution` and solutions.json: an object of a dataclass of plain data, or a record."""
    draw: Callable[[Path, Arrays, Sequence[int], str], None] | None = None  # with a title
    picture: str = "solution.png"  # name of the file
    compare: Callable[[Path, Arrays, Sequence[Sequence[int]], Sequence[str]], None] | None = None  # several side by side


@dataclass(frozen=True)
class Kit:
    """A problem, its networks, and what else there is for it."""

    name: str  # as on the command line
    summary: str
    problem: Any  # its settings: a problem, or a record whose `build()` returns one
    architectures: Mapping[str, Architecture]  # by name; the first is the usual one
    cost: str = "cost"  # what the objective is the negative of; of problems that maximise, what it is
    maximises: bool = False  # the objective is a value (a prize, say) and not the negative of a cost
    select: Callable[[Solutions, torch.Generator], Int[Tensor, " batch"]] | None = None  # what to learn from; None: the best
    presets: Path | None = (
        None  # a folder that holds folders of TOML files: NAME, and NAME-ARCHITECTURE for others than the usual one
    )
    solution_format: SolutionFormat = SolutionFormat()
    instances: InstanceSchema | None = None  # the arrays that instances consist of, in files
    generator: type[Any] | None = None  # an `InstanceGenerator` or `StateGenerator` of random instances
    standard: Mapping[str, InstanceGenerator] = field(default_factory=dict)  # test sets by name
    known: Mapping[str, Callable[[], NDArray[np.float64]]] = field(default_factory=dict)  # best known costs of such a set
    experts: Mapping[str, Solver] = field(default_factory=dict)  # by the module that must be installed, the preferred one first
    baselines: Mapping[str, Baseline] = field(default_factory=dict)  # methods to compare with, by name
    warm_started: Mapping[str, WarmStartedSolver] = field(
        default_factory=dict
    )  # solvers that take a start, by module as `experts`
    formats: tuple[Format, ...] = ()  # of files that hold instances, the most common one first
    exports: Mapping[str, Export] = field(default_factory=dict)  # of solutions, by name
    published: PublishedData | None = None  # what the data files of the method's public code look like
    policies: Path | None = None  # a folder of trained policies that ship (`problems/shipped.py`)
    restrict: Callable[[Any, int], Any] | None = None  # the problem with only so many nearest nodes to go on to
    of_matrix: Callable[[NDArray[Any], str], Instance] | None = (
        None  # an instance of which only distances are known, and its name
    )
    local_search: LocalSearchMaker | None = None  # by the distances of an instance's file, for as long as somebody likes

    def __post_init__(self) -> None:
        require(bool(self.name) and "-" not in self.name.strip("-"), f"A kit's `name` must be one word, got {self.name!r}.")
        require(len(self.architectures) >= 1, f"The kit `{self.name}` must have at least one architecture, got none.")

    @property
    def usual_problem(self) -> Problem[Any]:
        """The problem with its usual settings; most problems are their own record."""
        return self.problem if isinstance(self.problem, Problem) else self.problem.build()

    def need(self, what: str, field: str) -> Any:
        """One of the optional fields, or a one-line error that says what the kit lacks."""
        if value := getattr(self, field):
            return value
        raise SettingsError(f"There are no {what} for `{self.name}`: its kit leaves `{field}` out.")
