"""Instances of different sizes in one call: those of equal size are searched together.

small, large = solve_mixed(TSP(), policy, Gumbeldore(), [tsp20.state(), tsp100.state()], generator=generator)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S, shapes
from gumbeldore.search.samplers import Sampler, draw_seeds
from gumbeldore.solutions import Solutions


@dataclass(frozen=True)
class Group(Generic[S]):
    """Instance states of equal size, joined into one."""

    state: S
    members: tuple[int, ...]  # which of the given states, in order
    rows: Int[Tensor, " row"]  # where its rows are if all given states are counted through


def grouped(states: Sequence[S]) -> list[Group[S]]:
    """The states by size, in the order in which the sizes first occur."""
    members: dict[Any, list[int]] = {}
    for index, state in enumerate(states):
        require(state.row_count > 0, f"Every state must hold at least one row, but state {index} holds none.")
        types = tuple(tensor.dtype for tensor in state.tensors().values())
        members.setdefault((type(state), shapes(state), types), []).append(index)
    ends = torch.tensor([state.row_count for state in states]).cumsum(0).tolist()
    groups = []
    for same in members.values():
        joined = type(states[same[0]]).concatenate([states[index].compact() for index in same])
        rows = torch.cat([torch.arange(ends[index] - states[index].row_count, ends[index]) for index in same])
        groups.append(Group(joined, tuple(same), rows))
    return groups


def solve_mixed(
    problem: Problem[S],
    policy: Policy[S],
    sampler: Sampler,
    states: Sequence[S],
    *,
    generator: torch.Generator | None = None,
    seeds: Int[Tensor, " row"] | None = None,
) -> list[Solutions]:
    """Solves initial states of any sizes; returns one `Solutions` per given state, in order and without search trees.

    - States of equal size are searched together: the sampler is called once per size.
    - Give a `generator`, or one integer seed per row, counted through all states in order. The answer for an instance
      depends on its seed, not on what else is solved with it.
    - `problem` must take states of any size: its rules read the state and not its settings, like those of ours.
    """
    rows = sum(state.row_count for state in states)
    if seeds is None:
        seeds = draw_seeds(rows, generator)
    require(len(seeds) == rows, f"`seeds` must hold one seed per row of all states ({rows}), got {len(seeds)}.")
    parts: dict[int, Solutions] = {}
    for group in grouped(states):
        found = sampler(problem, policy, group.state, seeds=seeds[group.rows.to(seeds.device)])
        start = 0
        for index in group.members:
            parts[index] = found.rows(slice(start, start + states[index].row_count))
            start += states[index].row_count
    return [parts[index] for index in range(len(states))]
