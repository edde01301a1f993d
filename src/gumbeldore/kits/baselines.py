"""Baselines: methods that nothing has learned, to compare with. Each problem has its own (`Kit.baselines`).

Nothing they say is trusted: whoever uses an answer checks it with the problem's verifier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gumbeldore.kits.instances import Arrays
from gumbeldore.kits.solver import SHORT, Limit, Solved, Solver, SolverError

Search = Callable[[Arrays, Limit, int], Sequence[int]]  # one instance, how long, seed; returns actions of the problem's `step`


@dataclass(frozen=True)
class Baseline:
    """A method for instances of one problem, which a worker process must be able to import.

    summary: A few words, for the help.
    solve: One instance, how long, seed: the actions of a solution.
    needs: The library that must be installed.
    limit: The usual one; None: it ends by itself, whatever the limit.
    work: What a unit of `Limit.work` is.
    clock: It can be limited by seconds.
    random: Other seeds may give other answers.
    """

    summary: str
    solve: Search
    needs: str | None = None
    limit: Limit | None = None
    work: str = ""
    clock: bool = True
    random: bool = False


def constructive(summary: str, build: Callable[[Arrays], Sequence[int]]) -> Baseline:
    """A baseline that builds one solution, always the same."""
    return Baseline(summary, partial(_built, build))


def solver(summary: str, solve: Solver, needs: str, work: str, *, limit: Limit = SHORT, random: bool = True) -> Baseline:
    """A baseline that is one of the outside solvers."""
    return Baseline(summary, partial(_solved, solve), needs, limit, work, random=random)


def local_search(summary: str, solve: Search, effort: float, work: str, *, clock: bool = False) -> Baseline:
    """A baseline that is one of our compiled local searches, with `effort` units of work unless told otherwise."""
    return Baseline(summary, solve, limit=Limit(None, effort), work=work, clock=clock, random=True)


OWN = "gumbeldore"
"""Among the experts: our compiled local search, for which nothing else must be installed."""


def expert(search: Search) -> Solver:
    """One of our compiled local searches, for labels."""
    return partial(_searched, search)


def check_work(limit: Limit) -> None:
    """Raises where our own local search is given a time."""
    if limit.work is None:
        raise SolverError(
            'Our own local search is limited by work, not by the clock: give --work 100, say. Other experts: pip install "gumbeldore[solvers]".'
        )


def _searched(search: Search, instance: Arrays, limit: Limit, seed: int) -> Solved:
    check_work(limit)
    return Solved(list(search(instance, limit, seed)), float("inf"), False)


def _built(build: Callable[[Arrays], Sequence[int]], instance: Arrays, limit: Limit, seed: int) -> Sequence[int]:
    return build(instance)


def _solved(solve: Solver, instance: Arrays, limit: Limit, seed: int) -> Sequence[int]:
    return solve(instance, limit, seed).actions
