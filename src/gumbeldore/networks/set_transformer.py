"""A policy for any problem whose actions are a set of items with a feature vector each: it needs a feature function, no network code.

class KnapsackPolicy(SetPolicy):
    item_features, whole_features = 2, 1

    def features(self, state):
        items = torch.stack([state.weights[state.instance], state.values[state.instance]], -1)
        return Features(items, ~state.packed, state.room[:, None])
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from gumbeldore.errors import require, require_positive
from gumbeldore.networks.layers import Block, FoldedStack, Stack, token_bytes
from gumbeldore.networks.tokens import block, members
from gumbeldore.policy import Network


@dataclass(frozen=True)
class SetSize:
    """Size of a set transformer: small enough for a laptop."""

    d: int = 64  # width
    layers: int = 3
    heads: int = 4
    ff: int = 256  # width of the feed-forward part

    def __post_init__(self) -> None:
        require_positive(d=self.d, layers=self.layers, heads=self.heads, ff=self.ff)
        require(self.d % self.heads == 0, f"`d` must be a multiple of `heads`, got d={self.d} and heads={self.heads}.")


class Features(NamedTuple):
    """What a network sees of each row."""

    items: Float[Tensor, "row item feature"]
    present: Bool[Tensor, "row item"]  # the items that the network looks at: all that are still to be decided
    whole: Float[Tensor, "row whole"] | None = None  # about the row as a whole


class SetPolicy(Network):
    """A transformer over the items that are present and one token for the whole row; one logit per item.

    Items have no order: what a permutation of them changes is the same permutation of the logits.
    """

    item_features: ClassVar[int]
    whole_features: ClassVar[int] = 0

    def __init__(self, d: int = 64, layers: int = 3, heads: int = 4, ff: int = 256) -> None:
        super().__init__()
        self.config = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        self.item_embedding = nn.Linear(self.item_features, d)
        self.whole_embedding = nn.Linear(1 + self.whole_features, d)
        self.blocks = Stack(Block(d, heads, ff) for _ in range(layers))
        self.logit = nn.Linear(d, 1)

    @abstractmethod
    def features(self, state: Any) -> Features:
        """The features of every row of a state, about as large as 1."""

    def prepare(self, state: Any) -> Stack | FoldedStack | None:
        """Folds the blocks once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self.blocks.prepare()

    def forward(self, state: Any, context: Stack | FoldedStack | None = None) -> Float[Tensor, "row item"]:
        items, present, whole = self.features(state)
        order, padding = members(present)
        dtype = self.logit.weight.dtype
        chosen = items.to(dtype).gather(1, order[:, :, None].expand(-1, -1, items.shape[2]))
        about = torch.ones(len(items), 1, dtype=dtype, device=items.device)
        about = about if whole is None else torch.cat([about, whole.to(dtype)], 1)
        x = torch.cat([self.whole_embedding(about)[:, None], self.item_embedding(chosen)], 1)
        x = (self.blocks if context is None else context)(x, block(padding, before=1, after=0))
        logits = self.logit(x[:, 1:]).squeeze(-1)
        return torch.zeros(present.shape, dtype=dtype, device=x.device).scatter(1, order, logits) * present

    def row_bytes(self, state: Any) -> int:
        """Working memory of one row."""
        tokens = 1 + self.features(state.rows(slice(0, 1))).present.shape[1]
        return tokens * token_bytes(self.blocks.blocks, tokens)
