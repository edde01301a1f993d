"""Tokens that attend to each other in segments: the operations of a job, or of a machine, or the cities of a row.

A `Layout` says for one block which tokens these are. `native.run` runs blocks over it on a CPU, `run` on any processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int, Int32
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

if TYPE_CHECKING:
    from gumbeldore.networks.layers import Block

Slopes = Float[Tensor, " head"]
Array = NDArray[Any]


@dataclass(frozen=True)
class Layout:
    """Segments of tokens, one after the other.

    If only some tokens attend to others and go on, these are `query_tokens`, by segment; `query_rows` says in which order.
    """

    starts: Int32[Tensor, " segment_1"]  # where each segment begins in `tokens`, and their end
    tokens: Int32[Tensor, " token"] | None = None  # None: in their order
    query_starts: Int32[Tensor, " segment_1"] | None = None  # None: all tokens
    query_tokens: Int32[Tensor, " query"] | None = None
    query_rows: Int32[Tensor, " query"] | None = None
    positions: Float[Tensor, " token"] | None = None  # what a head's slope is multiplied by, where a block has slopes

    @property
    def segments(self) -> int:
        return len(self.starts) - 1

    def places(self) -> tuple[Int[Tensor, "segment place"], Bool[Tensor, "segment place"]]:
        """Segments side by side: their tokens, and which places are real; short segments have empty ones at the end."""
        starts = self.starts.long()
        place = torch.arange(int(starts.diff().max()), device=starts.device)
        real = place < starts.diff()[:, None]
        index = (starts[:-1, None] + place).where(real, 0)
        return index if self.tokens is None else self.tokens.long()[index], real

    @cached_property
    def known(self) -> dict[int, Any]:
        """What compiled code made of it, by the number of all tokens."""
        return {}

    def arrays(self) -> list[Array | None]:
        return [array(getattr(self, field.name)) for field in fields(self)]


def array(tensor: Tensor | None) -> Array | None:
    """The same memory, as the boundary to compiled code takes it."""
    return None if tensor is None else tensor.detach().numpy() if tensor.requires_grad else tensor.numpy()


def find_starts(counts: Int[Tensor, " segment"]) -> Int32[Tensor, " segment_1"]:
    """Where segments of the given lengths begin, and the end of the last one."""
    return pad(counts.cumsum(0, dtype=torch.int32), (1, 0))


def run(
    x: Float[Tensor, "token d"], blocks: Sequence[Block], slopes: Sequence[Slopes | None], layouts: Sequence[Layout]
) -> Float[Tensor, "output d"]:
    """All blocks one after the other, by their definition."""
    for block, slope, layout in zip(blocks, slopes, layouts, strict=True):
        token, real = layout.places()
        scores = None
        if slope is not None and layout.positions is not None:
            scores = slope[:, None, None] * layout.positions[token][:, None, None]
        y = block(x[token], ~real[:, None, None], scores)[real]  # in the order of the segments
        order = torch.arange(len(y), device=x.device) if layout.tokens is None else layout.tokens.long()
        x = x.index_copy(0, order, y.to(x.dtype))
        if layout.query_tokens is not None and layout.query_rows is not None:
            x = x.index_select(0, layout.query_tokens.long()[layout.query_rows.long().argsort()])
    return x
