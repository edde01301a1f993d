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
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from gumbeldore.errors import ContractError, require, require_positive
from gumbeldore.networks.layers import Block, Stack, token_bytes
from gumbeldore.networks.tokens import block, members
from gumbeldore.policy import Network


@dataclass(frozen=True)
class SetSize:
    """Size of a generic network: small enough for a laptop."""

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

    def prepare(self, state: Any) -> Any:
        """Folds the blocks once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self.blocks.prepare()

    def forward(self, state: Any, context: Any = None) -> Float[Tensor, "row item"]:
        items, present, whole = self.features(state)
        check_width(self, "item_features", items.shape[2])
        order, padding = members(present)
        dtype = self.logit.weight.dtype
        chosen = items.to(dtype).gather(1, order[:, :, None].expand(-1, -1, items.shape[2]))
        x = torch.cat([self.whole_embedding(self._about(items, whole))[:, None], self.item_embedding(chosen)], 1)
        x = self._mixed(x, block(padding, before=1, after=0), state, order, context)
        logits = self.logit(x[:, 1:]).squeeze(-1)
        return logits.new_zeros(present.shape).scatter(1, order, logits) * present

    def _about(self, items: Tensor, whole: Tensor | None) -> Float[Tensor, "row whole_1"]:
        """What the token of the whole row is made of."""
        check_width(self, "whole_features", 0 if whole is None else whole.shape[1])
        about = torch.ones(len(items), 1, dtype=self.logit.weight.dtype, device=items.device)
        return about if whole is None else torch.cat([about, whole.to(about.dtype)], 1)

    def _mixed(
        self,
        x: Float[Tensor, "row token d"],
        blocked: Bool[Tensor, "row 1 1 token"] | None,
        state: Any,
        order: Int[Tensor, "row present"],
        context: Any,
    ) -> Float[Tensor, "row token d"]:
        """The tokens, the whole row's first, after all blocks."""
        return (self.blocks if context is None else context)(x, blocked)

    def row_bytes(self, state: Any) -> int:
        """Working memory of one row."""
        tokens = int(self.features(state.rows(slice(0, 1))).present.sum()) + 1
        return tokens * token_bytes(self.blocks.blocks, tokens)


def check_width(policy: Any, name: str, found: int) -> None:
    """Raises where a policy's features are not as many as it says."""
    said = getattr(policy, name)
    if found != said:
        raise ContractError(
            f"`{type(policy).__name__}.{name}` must be the number that `features` returns, got {said} and {found} features. "
            f"Set `{name} = {found}`, or return {said}."
        )
