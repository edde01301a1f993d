"""Where packed tokens stand when they attend to each other.

Tokens of many rows lie side by side. Those that may attend to each other (the operations of a job, or of a machine) form a
*segment*. Segments are laid out in *groups* of equal length, long and short ones together so that few places stay empty.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

GROUP = 16
"""Tokens of a group, if segments are short. Batched products of small matrices take nearly twice as long for 17."""


class Places(NamedTuple):
    """Places of tokens, ordered by group, head and position: two indices over (token, head) that undo each other.

    The last token is an additional one that stands for nothing. Empty places hold it.
    """

    forth: Int[Tensor, " place"]  # the token and head at each place
    back: Int[Tensor, " token_head"]  # the place of each token and head; for the last token that of the first one
    first: Int[Tensor, " token"]  # the place of each real token's first head
    groups: int
    heads: int
    length: int  # positions of a group


class Links(NamedTuple):
    """Who attends to whom: the places of queries and of keys, and who belongs together."""

    queries: Places
    keys: Places
    together: Float[Tensor, "group 1 query key"] | None  # 1 in a segment, 0 between segments; None: one segment per group


def link_segments(
    segment: Int[Tensor, " token"], rank: Int[Tensor, " token"], counts: Int[Tensor, " segment"], heads: int
) -> Links:
    """Self-attention within segments. `counts` says how long they are; `rank` counts the tokens of each one from 0."""
    lengths = counts.bincount().tolist()
    begins, groups, length = pack_well(lengths, heads)
    begin = torch.empty_like(counts).scatter_(0, counts.argsort(descending=True), torch.tensor(begins, device=counts.device))
    places = find_places(begin.index_select(0, segment) + rank, groups, heads, length)
    if groups == len(counts) - lengths[0]:
        return Links(places, places, None)
    names = name_places(places, segment)
    return Links(places, places, equal(names, names))


def pack_well(lengths: list[int], heads: int) -> tuple[list[int], int, int]:
    """Where segments begin, the number of groups, and their length: the best of some lengths that waste little time.

    Others than the first one are for segments that are too long for two of them in a group, or all equally long.
    """
    longest, tokens = len(lengths) - 1, sum(length * count for length, count in enumerate(lengths))
    two = math.ceil(2.2 * tokens / sum(lengths[1:]))
    best, least = None, math.inf
    for length in (max(GROUP, longest), longest * max(1, GROUP // longest), two):
        if longest <= length <= max(2 * GROUP, longest) and least > 1.15 * tokens:
            begins, groups = pack(lengths, length, heads * length)
            cost = groups * length * (1 if length <= GROUP else 1 + length / 80)
            if cost < least:
                best, least = (begins, groups, length), cost
    assert best is not None
    return best


def pack(lengths: list[int], capacity: int, distance: int) -> tuple[list[int], int]:
    """Packs segments into as few groups of the given capacity as the rule 'the longest that still fits' needs.

    `lengths[n]` segments have n tokens. Returns where they begin, longest first, if groups begin at multiples of `distance`;
    and the number of groups. Groups that are filled alike are filled at once.
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
            for place in range(groups * distance + offset, groups * distance + offset + fitting * length, length):
                begins[length].extend(range(place, place + times * distance, distance))
            left[length] -= times * fitting
            if not left[length]:
                del left[length]
        groups += times
    return [begin for places in begins.values() for begin in places] + [0] * lengths[0], groups


def link_queries(links: Links, chosen: Int[Tensor, " query"], segment: Int[Tensor, " token"]) -> Links:
    """Attention of a few chosen tokens to all of their segments, which stand as in `links`. Queries are numbered anew."""
    keys = links.keys
    size = keys.heads * keys.length
    place = keys.first.index_select(0, chosen)
    group = torch.div(place, size, rounding_mode="floor")
    place = place - group * (size - keys.length)  # among places without heads
    marks = torch.zeros(keys.groups * keys.length, dtype=torch.int64, device=place.device).scatter_(0, place, 1)
    rank = marks.view(keys.groups, keys.length).cumsum(1)
    length = int(rank[:, -1].max())
    first = group * (keys.heads * length) + rank.flatten().index_select(0, place) - 1
    queries = find_places(first, keys.groups, keys.heads, length)
    if links.together is None:
        return Links(queries, keys, None)
    names = name_places(queries, segment.index_select(0, chosen))
    return Links(queries, keys, equal(names, name_places(keys, segment)))


def find_places(first: Int[Tensor, " token"], groups: int, heads: int, length: int) -> Places:
    """Both indices, given the places of the tokens' first heads."""
    count, device = len(first), first.device
    back = torch.cat([first, first[:1]])[:, None] + torch.arange(0, heads * length, length, device=device)
    forth = torch.full((groups * heads * length,), count * heads, device=device)
    forth.scatter_(0, back[:-1].flatten(), torch.arange(count * heads, device=device))
    return Places(forth, back.flatten(), first, groups, heads, length)


def name_places(places: Places, segment: Int[Tensor, " token"]) -> Float[Tensor, "group position"]:
    """The segment at each place, -1 where it is empty."""
    names = torch.full((places.groups * places.heads * places.length,), -1.0, device=segment.device)
    names.scatter_(0, places.first, segment.to(names.dtype))
    return names.view(places.groups, places.heads, places.length)[:, 0]


def equal(queries: Float[Tensor, "group query"], keys: Float[Tensor, "group key"]) -> Float[Tensor, "group 1 query key"]:
    return (queries[:, None, :, None] == keys[:, None, None, :]).to(queries.dtype)
