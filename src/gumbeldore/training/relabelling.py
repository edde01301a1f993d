"""DAgger relabelling (Ross, Gordon and Bagnell 2011): how to go on best from states that a policy came to itself, good or not."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.problem import Problem, S, replay


def relabelled(
    problem: Problem[S],
    state: S,
    actions: Int[Tensor, "row depth"],
    steps: Sequence[int],
    *,
    effort: int,
    seeds: Int[Tensor, " row"],
) -> list[Int[Tensor, "row depth"]]:
    """For ascending numbers of steps: the solutions, then what the problem's local search finds is the best after so many of them.

    What was found after more steps is a way to go on after fewer, and the search begins with it there. What was found after fewer is one
    after more, as long as it goes as the solution did, and is taken where it is better. So all that is found for a solution serves all of its
    states, and states that follow each other on a good way learn the same way.
    """
    found, start = [], actions
    for kept in reversed(steps):
        start = problem.local_search(state, start, effort=effort, seeds=seeds + kept, kept=kept)
        found.append(start)
    found.reverse()
    value = list(objectives(problem, state, torch.cat(found)).split(state.row_count))
    for index, kept in enumerate(steps[1:], 1):
        same = (found[index - 1][:, :kept] == actions[:, :kept]).all(1)
        taken = same & (value[index - 1] > value[index])
        found[index] = torch.where(taken[:, None], found[index - 1], found[index])
        value[index] = value[index - 1].where(taken, value[index])
    return found


def objectives(problem: Problem[S], state: S, solutions: Int[Tensor, "solution depth"]) -> Float[Tensor, " solution"]:
    """Those of complete solutions: the first one of every instance, then the second ones, ..."""
    rows = torch.arange(state.row_count).repeat(len(solutions) // state.row_count)
    return problem.objective(replay(problem, state.rows(rows), solutions, (solutions >= 0).sum(1)))
