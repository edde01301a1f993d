"""The BQ network for vehicle routing with time windows: that of the CVRP (Drakulic et al. 2023), with features of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from gumbeldore.networks.bq import BQPolicy
from gumbeldore.networks.depot import customer_logits, depot_tokens
from gumbeldore.networks.layers import FoldedStack, Stack
from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.networks.tokens import take
from gumbeldore.problems.vrptw.features import Windows, width_of
from gumbeldore.problems.vrptw.problem import VRPTWState

MAP = 3
"""Inputs that say where and how much: x, y and the demand."""

PAIR_BYTES = 28
"""Working memory of the feature `Windows` for each pair of tokens."""


class Prepared(NamedTuple):
    """What does not change during a search: the nodes' features and the folded blocks."""

    nodes: Float[Tensor, "batch node 3"]
    blocks: Stack | FoldedStack


class VRPTWPolicy(BQPolicy):
    """Decoder-only transformer over depot, origin and choosable customers; two logits per customer (direct, via depot).

    It knows of time by the feature `Windows` alone.
    """

    known = (*BQPolicy.known, Windows)
    marker: nn.Embedding

    def __init__(
        self,
        d: int = 64,
        layers: int = 3,
        heads: int = 4,
        ff: int = 256,
        features: Sequence[RouteFeature] = (Windows(),),
    ) -> None:
        super().__init__(MAP + 1, 2, "marker", {"d": d, "layers": layers, "heads": heads, "ff": ff}, features)

    def prepare(self, state: VRPTWState) -> Prepared | None:
        """Scales the map and folds the blocks once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        return Prepared(node_features(state, self.node_embedding.weight.dtype), self.graph_encoder.prepare())

    def forward(self, state: VRPTWState, context: Prepared | None = None) -> Float[Tensor, "row action"]:
        order, blocked = depot_tokens(state)
        nodes = node_features(state, self.node_embedding.weight.dtype) if context is None else context.nodes
        given = take(nodes, state, order)
        candidates = (order != 0) & (order != state.current[:, None])
        if blocked is not None:
            candidates &= ~blocked[:, 0, 0]
        here = nodes[state.instance, state.current, :2]
        view = View(state, order, blocked, given[..., :2], here, given[:, 0, :2], candidates, self.turned)
        columns, known = self.described(view) if self.features else (given[..., :0], None)
        left = (state.remaining / state.capacity[state.instance]).to(given.dtype)[:, None].expand(order.shape)
        marks = torch.stack([order == 0, order == state.current[:, None]], -1).to(given.dtype)
        told = torch.cat([view.seen, given[..., 2:], left[..., None], columns, marks], -1)
        weight = torch.cat([self.node_embedding.weight, self.marker.weight.t()], 1)
        x = self.blocks(context)(linear(told, weight, self.node_embedding.bias), blocked)
        return customer_logits(self.scores(x[:, 1:], None if known is None else known[:, 1:]), state, order)

    def row_bytes(self, state: VRPTWState) -> int:
        count = int(state.rows(slice(0, 1)).choosable.sum()) + 2
        pairs = PAIR_BYTES * count * count if any(isinstance(feature, Windows) for feature in self.features) else 0
        return super().row_bytes(state) + pairs


def node_features(state: VRPTWState, dtype: torch.dtype) -> Float[Tensor, "batch node 3"]:
    """Coordinates, moved and scaled into the unit square, and demand as a share of the vehicle's capacity."""
    places = (state.nodes - state.nodes.amin(1, keepdim=True)) / width_of(state)[:, None, None]
    share = state.demands / state.capacity[:, None]
    return torch.cat([places.to(dtype), share.to(dtype)[..., None]], -1)
