"""A policy for items with a matrix between them: distances that depend on the direction, setup times. Feature functions, no network code.

class ATSPPolicy(MatrixPolicy):
    item_features, pair_features = 2, 2

    def features(self, state):
        from_here, to_start = ...                              # of each city, row by row
        return Features(torch.stack([from_here, to_start], -1), ~state.visited)

    def pairs(self, state):
        return torch.stack([state.distances, state.distances.transpose(1, 2)], -1)
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from gumbeldore.errors import require
from gumbeldore.networks.layers import FoldedStack, Stack, token_bytes
from gumbeldore.networks.set_transformer import SetPolicy, SetSize, check_width


@dataclass(frozen=True)
class MatrixSize(SetSize):
    """Size of a network for items with a matrix between them."""

    biased: int = 2  # of the layers, the first ones, attention is biased by the matrix

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            1 <= self.biased <= self.layers,
            f"`biased` must lie in 1 .. `layers`, got {self.biased} with `layers` = {self.layers}.",
        )


class Prepared(NamedTuple):
    """What does not change during a search: what the matrices add to the scores of attention, and the folded blocks behind."""

    bias: Float[Tensor, "batch item item layer_head"]
    rest: Stack | FoldedStack


class MatrixPolicy(SetPolicy):
    """A `SetPolicy` that also sees what is between two items: each head of the first `biased` layers adds a learnt combination of the features of
    a pair to its scores. The layers behind are compiled blocks.

    A permutation of the items, and of both axes of the matrix, is the same permutation of the logits.
    """

    pair_features: ClassVar[int]

    def __init__(self, d: int = 64, layers: int = 3, heads: int = 4, ff: int = 256, biased: int = 2) -> None:
        super().__init__(d, layers, heads, ff)
        self.config["biased"] = biased
        self.pair_bias = nn.Linear(self.pair_features, biased * heads, bias=False)

    @abstractmethod
    def pairs(self, state: Any) -> Float[Tensor, "batch item item pair"]:
        """The features of all pairs of items of every *instance*, about as large as 1. They may not depend on rows."""

    def prepare(self, state: Any) -> Prepared | None:
        """Reads the matrices and folds the blocks once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self._prepared(state)

    def _prepared(self, state: Any) -> Prepared:
        pairs = self.pairs(state)
        check_width(self, "pair_features", pairs.shape[-1])
        return Prepared(
            self.pair_bias(pairs.to(self.logit.weight.dtype)), Stack(self.blocks.blocks[self.config["biased"] :]).prepare()
        )

    def _mixed(
        self,
        x: Float[Tensor, "row token d"],
        blocked: Bool[Tensor, "row 1 1 token"] | None,
        state: Any,
        order: Int[Tensor, "row present"],
        context: Prepared | None,
    ) -> Float[Tensor, "row token d"]:
        prepared = self._prepared(state) if context is None else context
        bias = prepared.bias[state.instance[:, None, None], order[:, :, None], order[:, None, :]]
        return self.biased(x, blocked, bias, prepared.rest)

    def biased(
        self,
        x: Float[Tensor, "row token d"],
        blocked: Bool[Tensor, "row 1 1 token"] | None,
        bias: Float[Tensor, "row present present layer_head"],
        rest: Stack | FoldedStack,
    ) -> Float[Tensor, "row token d"]:
        """The tokens, the whole row's first, after the blocks that are biased and the `rest`."""
        bias = pad(bias, (0, 0, 1, 0, 1, 0)).permute(0, 3, 1, 2)  # nothing is between the whole row and an item
        biased = self.blocks.blocks[: self.config["biased"]]
        for layer, scores in zip(biased, bias.chunk(len(biased), 1), strict=True):
            x = layer(x, blocked, scores)
        return rest(x, blocked)

    def row_bytes(self, state: Any) -> int:
        """Working memory of one row."""
        tokens = int(self.features(state.rows(slice(0, 1))).present.sum()) + 1
        first, biased = self.blocks.blocks[0], self.config["biased"]
        plain = 4 * (12 * first.linear1.in_features + 4 * first.linear1.out_features + 4 * first.self_attn.heads * tokens)
        kept = biased if torch.is_grad_enabled() else 1
        bias = 12 * tokens * first.self_attn.heads * biased
        return tokens * (token_bytes(self.blocks.blocks, tokens) + kept * plain + bias)
