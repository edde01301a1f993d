"""Where tokens stand when they attend to each other.

Tokens that may attend to each other (the operations of a job, or of a machine) form a *segment*. Segments are laid out in
*groups* of equal length, long and short ones together so that few places stay empty.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.policies.attention import Together
from gumbeldore.policies.folded import Move

GROUP = 16
"""Tokens of a group, if segments are short. Batched products of small matrices take nearly twice as long for 17."""


class Places(NamedTuple):
    """The places of tokens, ordered by group."""

    place: Int[Tensor, " token"]
    groups: int
    length: int  # places of a group
    shared: bool  # whether there are several segments in a group

    @property
    def total(self) -> int:
        return self.groups * self.length


def find_places(segment: Int[Tensor, " token"], rank: Int[Tensor, " token"], counts: Int[Tensor, " segment"]) -> Places:
    """Places of the tokens of all segments. `counts` says how long these are; `rank` counts the tokens of each one from 0."""
    lengths = counts.bincount().tolist()
    begins, groups, length = pack_well(lengths)
    begin = torch.empty_like(counts).scatter_(0, counts.argsort(descending=True), torch.tensor(begins, device=counts.device))
    return Places(begin.index_select(0, segment) + rank, groups, length, groups < len(counts) - lengths[0])


def pack_well(lengths: list[int]) -> tuple[list[int], int, int]:
    """Where segments begin, the number of groups, and their length: the best of some lengths that waste little time.

    `lengths[n]` segments have n tokens. A place costs the more the longer its group is, and a group costs as much as two
    places. Lengths that can hardly be better than the best so far are left out.
    """
    longest, tokens = len(lengths) - 1, sum(length * count for length, count in enumerate(lengths))
    several = (math.ceil(1.05 * n * tokens / sum(lengths[1:])) for n in (2, 3, 4))
    best, least = None, math.inf
    for length in (max(GROUP, longest), longest * max(1, GROUP // longest), *several):
        price = 1 + length / 80 + 2 / length
        if longest <= length <= max(4 * GROUP, longest) and tokens * price < 0.93 * least:
            begins, groups = pack(lengths, length)
            if groups * length * price < least:
                best, least = (begins, groups, length), groups * length * price
    assert best is not None
    return best


def pack(lengths: list[int], capacity: int) -> tuple[list[int], int]:
    """Packs segments into as few groups of the given capacity as the rule 'the longest that still fits' needs.

    `lengths[n]` segments have n tokens. Returns where they begin, longest first, and the number of groups. Groups that are
    filled alike are filled at once.
    """
    left = {length: lengths[length] for length in range(len(lengths) - 1, 0, -1) if lengths[length]}
    begins: dict[int, list[int]] = {length: [] for length in left}
    groups = 0
    while left:
        members, room = [], capacity
        for length, count in left.items():
            fitting = min(count, room // length)
            if fitting:
                members.append((length, fitting, capacity - room))
                room -= fitting * length
        times = min(left[length] // fitting for length, fitting, _ in members)
        for length, fitting, offset in members:
            for place in range(groups * capacity + offset, groups * capacity + offset + fitting * length, length):
                begins[length].extend(range(place, place + times * capacity, capacity))
            left[length] -= times * fitting
            if not left[length]:
                del left[length]
        groups += times
    return [begin for places in begins.values() for begin in places] + [0] * lengths[0], groups


def find_queries(places: Places, chosen: Int[Tensor, " query"]) -> Places:
    """Places of a few chosen tokens, which are numbered anew, in the groups where they stand, as close as possible."""
    place = places.place.index_select(0, chosen)
    marks = torch.zeros(places.total, dtype=torch.int64, device=place.device).scatter_(0, place, 1)
    rank = marks.view(places.groups, places.length).cumsum(1)
    length = int(rank[:, -1].max())
    group = torch.div(place, places.length, rounding_mode="floor")
    return Places(group * length + rank.flatten().index_select(0, place) - 1, places.groups, length, places.shared)


def find_move(before: Places, after: Places, chosen: Int[Tensor, " after"] | None = None) -> Move:
    """From one order of tokens to another one; with `chosen`, the latter has only these."""
    source = before.place if chosen is None else before.place.index_select(0, chosen)
    return Move(
        fill(after.place, source, after.total + 1, before.total), fill(source, after.place, before.total + 1, after.total)
    )


def fill(place: Int[Tensor, " token"], values: Tensor, count: int, empty: float) -> Tensor:
    """The values at their places, and what stands at the empty ones."""
    return torch.full((count, *values.shape[1:]), empty, dtype=values.dtype, device=values.device).index_copy_(0, place, values)


def find_together(
    keys: Places, segment: Int[Tensor, " token"], queries: Places, asking: Int[Tensor, " asking"]
) -> Together | None:
    """Who may attend to whom; `segment` and `asking` are the segments of keys and of queries."""
    if not keys.shared:
        return None
    left, right = (
        fill(places.place, names.float(), places.total, -1.0).view(places.groups, -1)
        for places, names in ((keys, segment), (queries, asking))
    )
    return ((left[:, :, None] == right[:, None]) | (right < 0)[:, None]).float()
