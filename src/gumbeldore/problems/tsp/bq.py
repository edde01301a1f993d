"""The BQ network for the TSP (Drakulic et al. 2023, as used in the paper's appendix "Traveling Salesman Problem")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from gumbeldore.networks.bq import BQPolicy
from gumbeldore.networks.layers import FoldedStack, Stack
from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.networks.tokens import take
from gumbeldore.problems.tsp.bounds import SpanningTreeBounds
from gumbeldore.problems.tsp.problem import TSPState
from gumbeldore.problems.tsp.tokens import tsp_tokens


class Prepared(NamedTuple):
    """What does not change during a search: the cities, embedded unless features say more of them, and the folded blocks."""

    cities: Float[Tensor, "batch city d_or_2"]
    blocks: Stack | FoldedStack


class TSPPolicy(BQPolicy):
    """Decoder-only transformer over origin, choosable cities and destination; one logit per choosable city.

    The defaults are the paper's. `TSPPolicy(d=64, layers=3, heads=4, ff=256, features=(DistanceBias(), CanonicalFrame(),
    SpanningTreeBounds()))` is the small one for a laptop.
    """

    known = (*BQPolicy.known, SpanningTreeBounds)
    switches = {"local": "distance-bias", "frame": "frame", "bounds": "bounds"}  # noqa: RUF012

    first_last_marker: nn.Embedding

    def __init__(
        self, d: int = 128, layers: int = 9, heads: int = 8, ff: int = 512, features: Sequence[RouteFeature] = ()
    ) -> None:
        sizes = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        super().__init__(2, 1, "first_last_marker", sizes, features)

    def prepare(self, state: TSPState) -> Prepared | None:
        """Embeds the cities and folds the blocks once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        return Prepared(self._cities(state), self.graph_encoder.prepare())

    def forward(self, state: TSPState, context: Prepared | None = None) -> Float[Tensor, "row city"]:
        order, blocked = tsp_tokens(state)
        x, known = take(self._cities(state) if context is None else context.cities, state, order), None
        if self.features:
            view = self._view(state, order, blocked, x)
            columns, known = self.described(view)
            x = self.node_embedding(torch.cat([view.seen, columns], -1))
        x[:, 0] += self.first_last_marker.weight[0]
        x[:, -1] += self.first_last_marker.weight[1]
        x = self.blocks(context)(x, blocked)
        logits = self.scores(x[:, 1:-1], None if known is None else known[:, 1:-1]).squeeze(-1)
        return logits.new_zeros(state.visited.shape).scatter(1, order[:, 1:-1], logits)

    def _view(
        self,
        state: TSPState,
        order: Int[Tensor, "row token"],
        blocked: Bool[Tensor, "row 1 1 token"] | None,
        points: Float[Tensor, "row token 2"],
    ) -> View:
        candidates = torch.ones_like(order, dtype=torch.bool) if blocked is None else ~blocked[:, 0, 0]
        candidates[:, 0] = candidates[:, -1] = False
        return View(state, order, blocked, points, points[:, 0], points[:, -1], candidates, self.turned)

    def _cities(self, state: TSPState) -> Float[Tensor, "batch city d_or_2"]:
        points = state.coordinates.to(self.node_embedding.weight.dtype)
        return points if self.features else self.node_embedding(points)
