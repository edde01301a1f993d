"""What may be done to a policy's best sequences afterwards: our compiled local search, and outside solvers that take a start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from time import monotonic
from typing import Any

import torch
from torch import Tensor

from gumbeldore.errors import GumbeldoreError, SettingsError, require
from gumbeldore.kits.kit import Instance, Kit, WarmStartedSolver
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search import compiling
from gumbeldore.problem import Problem
from gumbeldore.solving.search import Found, Piece, Refined

STARTS = 4
"""So many of the best sequences go through the local search."""

LOCAL_SEARCH = "local search"


@dataclass(frozen=True)
class Refinement:
    """What is done to the best sequences of a search; by default nothing."""

    problem: Problem[Any]
    effort: int = 0  # of our local search: attempts per node
    seconds: float | None = None  # for polishing
    polisher: WarmStartedSolver | None = None  # None: our local search, again and again
    name: str = LOCAL_SEARCH  # of the polisher

    def __call__(self, piece: Piece, found: Sequence[Found], instances: Sequence[Instance]) -> list[Found]:
        """The same with what became of the sequences."""
        return [self._refine(piece, row, each, given) for row, (each, given) in enumerate(zip(found, instances, strict=True))]

    def _refine(self, piece: Piece, row: int, found: Found, instance: Instance) -> Found:
        starts, stages = _cheapest_first(instance, [actions for actions, _ in found.best]), []
        if self.effort:
            stages.append(_timed(LOCAL_SEARCH, lambda: self._locally(piece, row, starts[:STARTS], self.effort, 0)))
        if self.seconds is not None:
            best = _cheapest_first(instance, [*(stages[0].sequences if stages else []), *starts])
            stages.append(_timed(self.name, lambda: self._polish(piece, row, best, instance)))
        return replace(found, refined=tuple(stages))

    def _polish(self, piece: Piece, row: int, starts: list[list[int]], instance: Instance) -> list[list[int]]:
        assert self.seconds is not None
        if self.polisher is None:
            return self._locally_until(piece, row, starts[0], monotonic() + self.seconds)
        return [self.polisher(instance, starts, Limit(self.seconds), int(piece.seeds[row]) % (1 << 31))]

    def _locally_until(self, piece: Piece, row: int, start: list[int], end: float) -> list[list[int]]:
        """Our local search from its own best answer, until the time is up."""
        sequences, turn = [start], 0
        while monotonic() < end:
            sequences, turn = self._locally(piece, row, sequences[:1], 1, turn), turn + 1
        return sequences

    def _locally(self, piece: Piece, row: int, starts: list[list[int]], effort: int, turn: int) -> list[list[int]]:
        actions = _padded(starts)
        state = piece.state.rows(torch.full((len(starts),), row, device=piece.state.device))
        seeds = (piece.seeds[row].cpu() + turn * STARTS + torch.arange(len(starts))).abs()
        polished = self.problem.local_search(state, actions.to(state.device), effort=effort, seeds=seeds)
        return [[action for action in sequence if action >= 0] for sequence in polished.tolist()]


def refinement(kit: Kit, problem: Problem[Any], effort: int, seconds: float | None) -> Refinement | None:
    """What a user asks for, or None; an error if there is no such thing for the problem."""
    require(effort >= 0, f"`local_search` must be at least 0 attempts per node, got {effort}.")
    require(seconds is None or 0 < seconds < float("inf"), f"`polish` must be above 0 seconds, got {seconds}.")
    require(not effort or searches_locally(problem), f"`local_search` must be 0 for {kit.name}: {_why(problem)}")
    if seconds is None:
        return Refinement(problem, effort) if effort else None
    for name, polisher in kit.warm_started.items():
        if find_spec(name) is not None:
            return Refinement(problem, effort, seconds, polisher, name)
    if searches_locally(problem):
        return Refinement(problem, effort, seconds)
    known = f'{" or ".join(kit.warm_started)}, not installed: pip install "gumbeldore[solvers]".'
    raise SettingsError(
        f"`polish` for {kit.name} needs {known if kit.warm_started else 'a kit with `warm_started`, and this has none.'}"
    )


def searches_locally(problem: Problem[Any]) -> bool:
    """Whether our local search can be used."""
    return type(problem).local_search is not Problem.local_search and compiling.available()


def _why(problem: Problem[Any]) -> str:
    if type(problem).local_search is Problem.local_search:
        return "it has no local search."
    return "it is not compiled on this machine. Install the package again where there is a C++ compiler."


def _timed(name: str, work: Callable[[], list[list[int]]]) -> Refined:
    """What somebody makes of the sequences. If that is nothing, what there was before stays, and a note says why."""
    start = monotonic()
    try:
        return Refined(name, work(), monotonic() - start)
    except GumbeldoreError as error:
        return Refined(name, [], monotonic() - start, str(error))


def _cheapest_first(instance: Instance, sequences: list[list[int]]) -> list[list[int]]:
    """By the rule of the file, if it has one; otherwise as they are."""
    return sorted(sequences, key=instance.cost) if instance.cost else sequences


def _padded(sequences: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, sequences))
    return torch.tensor([[*sequence, *[-1] * (longest - len(sequence))] for sequence in sequences])
