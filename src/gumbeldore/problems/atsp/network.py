"""A network for the ATSP: the cities that are left are items, and what assignments say is between them biases attention."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot

from gumbeldore.local_search.assignment import LookAhead, look_ahead
from gumbeldore.networks.layers import Stack, token_bytes
from gumbeldore.networks.matrix_transformer import MatrixPolicy
from gumbeldore.networks.set_transformer import Features
from gumbeldore.networks.tokens import block, members
from gumbeldore.problems.atsp.problem import ATSPState

_MOST = 20.0
"""Features are cut there: an edge that nobody may use is as good as one of twenty mean edges."""
_DETOUR, _REGRET = -8.0, -0.8
"""The logit of a city at first, for each mean edge of detour and regret: the network begins as the rule to go where patched tours are shortest."""


class Seen(NamedTuple):
    """The cities that are left, and what the network is told of them."""

    order: Int[Tensor, "row token"]
    padding: Bool[Tensor, "row token"] | None
    items: Float[Tensor, "row token feature"]
    pairs: Float[Tensor, "row token another pair"]
    whole: Float[Tensor, "row whole"]


class ATSPPolicy(MatrixPolicy):
    """A transformer over the cities that are left, with attention biased by distances, by what prices leave of them, and by who follows whom in the least
    assignment of what is left. All is in mean edges, so other units change nothing; cities have no names.
    """

    item_features, whole_features, pair_features = 17, 3, 6

    def __init__(self, d: int = 64, layers: int = 3, heads: int = 4, ff: int = 256, biased: int = 2, tries: int = 8) -> None:
        super().__init__(d, layers, heads, ff, biased)
        self.config["tries"] = tries
        self.heuristic_prior = nn.Linear(2, 1, bias=False)
        self.heuristic_prior.weight.data = torch.tensor([[_DETOUR, _REGRET]])
        self.logit.weight.data.zero_()
        self.logit.bias.data.zero_()

    def prepare(self, state: ATSPState) -> Any:
        """The folded blocks behind those that are biased."""
        return None if torch.is_grad_enabled() else self._rest().prepare()

    def forward(self, state: ATSPState, context: Any = None) -> Float[Tensor, "row city"]:
        seen = self.seen(state)
        x = torch.cat([self.whole_embedding(self._about(seen.items, seen.whole))[:, None], self.item_embedding(seen.items)], 1)
        rest = self._rest() if context is None else context
        x = self.biased(x, block(seen.padding, before=1, after=0), self.pair_bias(seen.pairs), rest)
        logits = (self.logit(x[:, 1:]) + self.heuristic_prior(seen.items[..., :2])).squeeze(-1)
        return logits.new_zeros(state.visited.shape).scatter(1, seen.order, logits) * ~state.visited

    def _rest(self) -> Stack:
        return Stack(self.blocks.blocks[self.config["biased"] :])

    def seen(self, state: ATSPState) -> Seen:
        """What the network is told."""
        order, padding = members(~state.visited)
        left = order if padding is None else order.masked_fill(padding, -1)
        ends = torch.stack([state.current, state.start], 1)
        found = look_ahead(state.distances, state.instance, ends, left, tries=self.config["tries"])
        return Seen(order, padding, *self._features(state, order, padding, found))

    def _features(
        self, state: ATSPState, order: Int[Tensor, "row token"], padding: Bool[Tensor, "row token"] | None, found: LookAhead
    ) -> tuple[Tensor, Tensor, Tensor]:
        dtype, instance = self.logit.weight.dtype, state.instance[:, None]
        scale = found.scale[:, None].double()
        there = state.distances[instance, state.current[:, None], order] / scale
        back = state.distances[instance, order, state.start[:, None]] / scale
        between = (state.distances[instance[..., None], order[:, :, None], order[:, None]] / scale[..., None]).to(dtype)
        reduced = between - found.leaving[:, :, None] - found.reaching[:, None]
        real = torch.ones_like(order, dtype=dtype) if padding is None else (~padding).to(dtype)
        count = real.sum(1, keepdim=True)
        other = 1 - torch.eye(order.shape[1], dtype=dtype, device=order.device)
        far = _MOST * (1 - real[:, None] * real[:, :, None] * other)
        tried, limit = found.tried, (found.detour * found.tried).amax(1, keepdim=True)
        items = [
            torch.where(tried > 0, found.detour, limit + 0.5),
            *(
                found.regret,
                tried,
                tried * found.pieces.log1p(),
                found.leave,
                found.back,
                found.next,
                found.last,
                found.within,
                found.cycle,
            ),
            *(there.to(dtype), back.to(dtype), found.leaving, found.reaching),
            *((reduced + far).amin(2), (reduced + far).amin(1), (between + far).amin(1)),
        ]
        follows = one_hot(found.follower.long() + 1, order.shape[1] + 1)[..., 1:].to(dtype)
        pairs = torch.stack([reduced, reduced.mT, between, between.mT, follows, follows.mT], -1)
        whole = torch.cat([count / state.visited.shape[1], 1 / count.clamp(min=1), limit], 1)
        return _squeezed(torch.stack(items, 2) * real[..., None]), _squeezed(pairs), _squeezed(whole)

    def features(self, state: ATSPState) -> Features:
        """The same by the numbers of cities."""
        seen = self.seen(state)
        items = seen.items.new_zeros(*state.visited.shape, self.item_features)
        return Features(items.scatter(1, seen.order[..., None].expand_as(seen.items), seen.items), ~state.visited, seen.whole)

    def pairs(self, state: ATSPState) -> Tensor:
        """Of cities of every row, not of instances: what is between two depends on what is left."""
        return self.seen(state).pairs

    def row_bytes(self, state: ATSPState) -> int:
        """Working memory of one row."""
        tokens, biased = int((~state.visited[:1]).sum()) + 1, self.config["biased"]
        first = self.blocks.blocks[0]
        d, ff, heads = first.linear1.in_features, first.linear1.out_features, first.self_attn.heads
        kept = biased if torch.is_grad_enabled() else 1
        pairs = 4 * tokens * (4 * self.pair_features + 3 * heads * biased)
        return tokens * (token_bytes(self.blocks.blocks, tokens) + kept * 4 * (12 * d + 4 * ff + 4 * heads * tokens) + pairs)


def _squeezed(values: Tensor) -> Tensor:
    """Large numbers differ less."""
    return values.clamp(-_MOST, _MOST)
