"""The BQ network for the CVRP (Drakulic et al. 2023, as used in the paper's appendix "Capacitated Vehicle Routing Problem")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from gumbeldore.networks.bq import BQPolicy
from gumbeldore.networks.depot import customer_logits, depot_tokens
from gumbeldore.networks.layers import FoldedStack, Stack
from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.networks.tokens import take
from gumbeldore.problems.cvrp.loads import Loads
from gumbeldore.problems.cvrp.problem import CVRPState
from gumbeldore.problems.cvrp.savings import SavingsLookAhead
from gumbeldore.problems.geometry import points_at


class Prepared(NamedTuple):
    """What does not change during a search: the nodes' features and the folded blocks."""

    nodes: Float[Tensor, "batch node 3"]
    blocks: Stack | FoldedStack


class CVRPPolicy(BQPolicy):
    """Decoder-only transformer over depot, origin and choosable customers; two logits per customer (direct, via depot).

    The defaults are the paper's. `CVRPPolicy(d=64, layers=3, heads=4, ff=256, features=(DistanceBias(), CanonicalFrame(), Loads(),
    SavingsLookAhead()))` is a small one for a laptop.
    """

    known = (*BQPolicy.known, Loads, SavingsLookAhead)
    switches = {"local": "distance-bias", "frame": "frame", "loads": "loads", "savings": "savings"}  # noqa: RUF012

    depot_start_node_marker: nn.Embedding

    def __init__(
        self, d: int = 192, layers: int = 9, heads: int = 12, ff: int = 512, features: Sequence[RouteFeature] = ()
    ) -> None:
        sizes = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        super().__init__(4, 2, "depot_start_node_marker", sizes, features)

    def prepare(self, state: CVRPState) -> Prepared | None:
        """Scales the demands and folds the blocks once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        return Prepared(node_features(state, self.node_embedding.weight.dtype), self.graph_encoder.prepare())

    def forward(self, state: CVRPState, context: Prepared | None = None) -> Float[Tensor, "row action"]:
        order, blocked = depot_tokens(state)
        nodes = node_features(state, self.node_embedding.weight.dtype) if context is None else context.nodes
        given = take(nodes, state, order)
        columns, known = given[..., :0], None
        if self.features:
            view = self._view(state, order, blocked, given[..., :2])
            columns, known = self.described(view)
            given = torch.cat([view.seen, given[..., 2:]], -1)
        x = self.blocks(context)(self._embed(given, columns, state, order), blocked)
        return customer_logits(self.scores(x[:, 1:], None if known is None else known[:, 1:]), state, order)

    def _view(
        self,
        state: CVRPState,
        order: Int[Tensor, "row token"],
        blocked: Bool[Tensor, "row 1 1 token"] | None,
        points: Float[Tensor, "row token 2"],
    ) -> View:
        candidates = (order != 0) & (order != state.current[:, None])
        if blocked is not None:
            candidates &= ~blocked[:, 0, 0]
        here = points_at(state.nodes, state.instance, state.current).to(points.dtype)
        return View(state, order, blocked, points, here, points[:, 0], candidates, self.turned)

    def _embed(
        self,
        given: Float[Tensor, "row token 3"],
        columns: Float[Tensor, "row token column"],
        state: CVRPState,
        order: Int[Tensor, "row token"],
    ) -> Float[Tensor, "row token d"]:
        """Embedding and markers in one matrix product: two more features say which token is the depot, and the origin."""
        capacity = capacity_ratio(state, given.dtype)[:, None].expand(order.shape)
        is_depot, is_origin = (order == 0).to(given.dtype), (order == state.current[:, None]).to(given.dtype)
        given = torch.cat([given, capacity[..., None], columns, torch.stack([is_depot, is_origin], -1)], -1)
        weight = torch.cat([self.node_embedding.weight, self.depot_start_node_marker.weight.t()], 1)
        return linear(given, weight, self.node_embedding.bias)


def node_features(state: CVRPState, dtype: torch.dtype) -> Float[Tensor, "batch node 3"]:
    """Coordinates, and demand as a share of the vehicle's capacity."""
    share = state.demands / state.capacity[:, None]
    return torch.cat([state.nodes.to(dtype), share.to(dtype)[..., None]], -1)


def capacity_ratio(state: CVRPState, dtype: torch.dtype) -> Float[Tensor, " row"]:
    """What is left of the vehicle's capacity, as a share."""
    return (state.remaining / state.capacity[state.instance]).to(dtype)
