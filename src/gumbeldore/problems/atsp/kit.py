"""What the ATSP brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gumbeldore.errors import require_positive
from gumbeldore.kits.baselines import OWN, expert
from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.kit import Architecture, Kit, SolutionFormat
from gumbeldore.kits.mixture import any_of, numbers
from gumbeldore.local_search.compiling import where_compiled
from gumbeldore.networks.matrix_transformer import MatrixSize
from gumbeldore.problem import Problem
from gumbeldore.problems.atsp.baselines import BASELINES, searched
from gumbeldore.problems.atsp.experts import EXPERTS, WARM_STARTED
from gumbeldore.problems.atsp.files import ARRAY, ROWS, TSPLIB
from gumbeldore.problems.atsp.improving import MatrixTourImprovement
from gumbeldore.problems.atsp.instances import KIND, STANDARD, ATSPGenerator
from gumbeldore.problems.atsp.known import reference_lengths
from gumbeldore.problems.atsp.network import ATSPPolicy
from gumbeldore.problems.atsp.plot import plot_matrices
from gumbeldore.problems.atsp.problem import ATSP
from gumbeldore.problems.tours import DISTANCES, EXPORTS, Tour, of_matrix, verify_by_matrix


@dataclass(frozen=True)
class MatrixTourSize(MatrixSize):
    """Size of the network."""

    tries: int = 8  # cities through which tours are patched together, to see which is best

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(tries=self.tries)


@dataclass(frozen=True)
class MatrixTours:
    """Random matrices. Several numbers of cities: each epoch draws one."""

    cities: int | tuple[int, ...] = 100

    def __post_init__(self) -> None:
        self.build()  # raises where a value is out of range

    def build(self) -> Problem[Any]:
        return any_of(ATSP(cities) for cities in numbers("cities", self.cities))


def compare(path: Path, instance: Arrays, solutions: Sequence[Sequence[int]], titles: Sequence[str]) -> None:
    plot_matrices(path, instance[DISTANCES], [[0, *actions] for actions in solutions], titles)


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    compare(path, instance, [actions], [title])


KIT = Kit(
    "atsp",
    "travelling salesman on a matrix",
    problem=MatrixTours(),
    architectures={"matrix": Architecture(ATSPPolicy, MatrixTourSize())},
    cost="tour length",
    presets=Path(__file__).parent / "presets",
    policies=Path(__file__).parent / "policies",
    solution_format=SolutionFormat(
        verify_by_matrix, lambda instance, actions: Tour([0, *actions]), draw, "matrix.png", compare
    ),
    instances=KIND,
    generator=ATSPGenerator,
    standard=STANDARD,
    known={name: partial(reference_lengths, name) for name in ("atsp50", "atsp100")},
    experts={**EXPERTS, OWN: expert(searched)},
    baselines=BASELINES,
    warm_started=WARM_STARTED,
    formats=(TSPLIB, ROWS, ARRAY),
    exports=EXPORTS,
    of_matrix=of_matrix,
    local_search=where_compiled(MatrixTourImprovement),
)
