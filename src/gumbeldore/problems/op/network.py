"""The BQ network of the orienteering problem: a decoder over where the tour stands, the nodes within reach, and the depot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from gumbeldore.networks.bq import BQPolicy
from gumbeldore.networks.layers import FoldedStack, Stack
from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.networks.tokens import block, members, take
from gumbeldore.problems.op.ahead import WalkAhead
from gumbeldore.problems.op.problem import END, OPState

INPUTS = 6
"""Of each token: coordinates, its share of the largest prize; the way there, what is left of the budget after it and the way home, what is left now."""


@dataclass(frozen=True)
class PrizePerWay(RouteFeature):
    """The logarithm of a node's prize per way there, and of its prize per detour on the way home. They reach the logits directly, too, so that the
    network begins as the rule of Tsiligirides (1984): nodes by the fourth power of prize per way."""

    name: ClassVar[str] = "prize-per-way"
    width: ClassVar[int] = 2

    def columns(self, view: View) -> Float[Tensor, "row token 2"]:
        known = known_of(view.state, view.order, view.points.dtype)
        worth, way, left, now = known.unbind(-1)
        detour = now - left
        return torch.stack([(worth + SMALL).log() - (each + SMALL).log() for each in (way, detour)], -1) / 4

    def prior(self) -> Float[Tensor, "1 2"]:
        return torch.tensor([[16.0, 0.0]])


SMALL = 0.01
"""Beside prizes and ways, so that their logarithms are numbers of usual size."""


class Prepared(NamedTuple):
    """What does not change during a search: the nodes' places, and the folded blocks."""

    nodes: Float[Tensor, "batch node 2"]
    blocks: Stack | FoldedStack


class OPPolicy(BQPolicy):
    """Decoder-only transformer over origin, nodes within reach, and depot; one logit per node. It never ends a tour while a node is within reach.

    The defaults are those of BQ. `OPPolicy(d=64, layers=3, heads=4, ff=256, features=(DistanceBias(), CanonicalFrame(), PrizePerWay()))` is a small
    one for a laptop.
    """

    known = (*BQPolicy.known, PrizePerWay, WalkAhead)

    origin_depot_marker: nn.Embedding

    def __init__(
        self, d: int = 192, layers: int = 9, heads: int = 12, ff: int = 512, features: Sequence[RouteFeature] = ()
    ) -> None:
        sizes = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        super().__init__(INPUTS, 1, "origin_depot_marker", sizes, features)

    def mask(self, state: OPState) -> Bool[Tensor, "row node"]:
        """The end only where nothing else is left: a node that is within reach never does harm."""
        space = state.choosable.clone()
        space[:, END] = ~space.any(1)
        return space

    def prepare(self, state: OPState) -> Prepared | None:
        """Folds the blocks once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        return Prepared(state.nodes.to(self.node_embedding.weight.dtype), self.graph_encoder.prepare())

    def forward(self, state: OPState, context: Prepared | None = None) -> Float[Tensor, "row node"]:
        order, blocked = op_tokens(state)
        dtype = self.node_embedding.weight.dtype
        points = take(state.nodes.to(dtype) if context is None else context.nodes, state, order)
        seen, columns, known = points, points[..., :0], None
        if self.features:
            view = self._view(state, order, blocked, points)
            columns, known = self.described(view)
            seen = view.seen
        x = self.node_embedding(torch.cat([seen, known_of(state, order, dtype), columns], -1))
        x[:, 0] += self.origin_depot_marker.weight[0]
        x[:, -1] += self.origin_depot_marker.weight[1]
        x = self.blocks(context)(x, blocked)
        logits = self.scores(x[:, 1:-1], None if known is None else known[:, 1:-1]).squeeze(-1)
        return logits.new_zeros(state.visited.shape).scatter(1, order[:, 1:-1], logits)

    def _view(
        self,
        state: OPState,
        order: Int[Tensor, "row token"],
        blocked: Bool[Tensor, "row 1 1 token"] | None,
        points: Float[Tensor, "row token 2"],
    ) -> View:
        candidates = torch.ones_like(order, dtype=torch.bool) if blocked is None else ~blocked[:, 0, 0]
        candidates[:, 0] = candidates[:, -1] = False
        return View(state, order, blocked, points, points[:, 0], points[:, -1], candidates, self.turned)


def op_tokens(state: OPState) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row 1 1 token"] | None]:
    """Nodes in the order origin, choosable, depot; and the keys to block, if any."""
    middle, padding = members(state.choosable)
    order = torch.cat([state.current[:, None], middle, torch.zeros_like(state.current)[:, None]], 1)
    return order, block(padding, before=1, after=1)


def known_of(state: OPState, order: Int[Tensor, "row token"], dtype: torch.dtype) -> Float[Tensor, "row token 4"]:
    """Of each token: its share of the largest prize; the way there; what the budget leaves after that and the way home; what it leaves now after
    the way home. Ways and budgets in widths of the map."""
    instance = state.instance
    width = map_width(state)[instance][:, None]
    worth = state.prizes / state.prizes[:, 1:].amax(1, keepdim=True).clamp(min=1e-300)
    worth = worth.index_fill(1, torch.tensor([END], device=order.device), 0)
    way = state.ways.gather(1, order)
    left = state.remaining[:, None] - way - state.home[instance].gather(1, order)
    now = (state.remaining - state.home[instance, state.current])[:, None].expand(order.shape)
    ways = torch.stack([way, left, now], -1) / width[..., None]
    return torch.cat([worth[instance].gather(1, order)[..., None], ways], -1).to(dtype)


def map_width(state: OPState) -> Float[Tensor, " batch"]:
    """How long the unit of the nodes' places is in the unit of the ways: 1, but for listed distances."""
    if not hasattr(state, "distances"):
        return torch.ones_like(state.budget)
    plane = (state.nodes - state.nodes[:, :1]).square().sum(-1).sqrt().sum(1)
    return torch.where((plane > 0) & (state.home.sum(1) > 0), state.home.sum(1) / plane, 1.0)
