"""Transformer blocks over segments of two kinds in turns: within sequences, where ALiBi tells how far apart steps are, and across them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from jaxtyping import Float
from torch import Tensor

from gumbeldore.networks import native, segments
from gumbeldore.networks.layers import Block, alibi, fold_all
from gumbeldore.networks.segments import Layout, Slopes


@dataclass(frozen=True)
class Alternating:
    """An odd number of blocks: by sequence, by group, ..., and a last one for the tokens to choose from."""

    blocks: Sequence[Block]
    slopes: list[Slopes | None]  # of blocks by sequence
    folded: list[native.Block] | None  # None where the compiled code cannot run them

    @classmethod
    def of(cls, blocks: Sequence[Block], heads: int, like: Tensor) -> Self:
        usual = alibi(heads, like)
        slopes = [usual if index % 2 == 0 and index < len(blocks) - 1 else None for index in range(len(blocks))]
        return cls(blocks, slopes, fold_all(blocks, slopes))

    def __call__(self, x: Float[Tensor, "token d"], layouts: Sequence[Layout]) -> Float[Tensor, "output d"]:
        """As many blocks as there are layouts: the first ones, or the last one."""
        some = slice(len(layouts)) if len(layouts) > 1 else slice(-1, None)
        if self.folded is None:
            return segments.run(x, self.blocks[some], self.slopes[some], layouts)
        return native.run(x, self.folded[some], layouts)
