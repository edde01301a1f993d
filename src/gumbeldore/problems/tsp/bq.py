"""The BQ network for the TSP (Drakulic et al. 2023, as used in the paper's appendix "Traveling Salesman Problem")."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gumbeldore.networks.layers import Block, FoldedStack, Stack
from gumbeldore.networks.tokens import row_bytes, take
from gumbeldore.policy import Network
from gumbeldore.problems.tsp.problem import TSPState
from gumbeldore.problems.tsp.tokens import tsp_tokens


class Prepared(NamedTuple):
    """What does not change during a search: the embedded cities and the folded blocks."""

    cities: Float[Tensor, "batch city d"]
    blocks: Stack | FoldedStack


class TSPPolicy(Network):
    """Decoder-only transformer over origin, choosable cities and destination; one logit per choosable city.

    The defaults are the paper's. `TSPPolicy(d=64, layers=3, ff=256)` is the small one for a laptop.
    """

    def __init__(self, d: int = 128, layers: int = 9, heads: int = 8, ff: int = 512) -> None:
        super().__init__()
        self.config = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        self.node_embedding = nn.Linear(2, d)
        self.first_last_marker = nn.Embedding(2, d)
        self.graph_encoder = Stack(Block(d, heads, ff) for _ in range(layers))
        self.policy_linear_out = nn.Linear(d, 1)

    def prepare(self, state: TSPState) -> Prepared | None:
        """Embeds the cities and folds the blocks once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        return Prepared(self._embed(state), self.graph_encoder.prepare())

    def forward(self, state: TSPState, context: Prepared | None = None) -> Float[Tensor, "row city"]:
        order, blocked = tsp_tokens(state)
        x = take(self._embed(state) if context is None else context.cities, state, order)
        x[:, 0] += self.first_last_marker.weight[0]
        x[:, -1] += self.first_last_marker.weight[1]
        x = (self.graph_encoder if context is None else context.blocks)(x, blocked)
        logits = self.policy_linear_out(x[:, 1:-1]).squeeze(-1)
        return torch.zeros(state.visited.shape, dtype=x.dtype, device=x.device).scatter(1, order[:, 1:-1], logits)

    def _embed(self, state: TSPState) -> Float[Tensor, "batch city d"]:
        return self.node_embedding(state.coordinates.to(self.node_embedding.weight.dtype))

    def row_bytes(self, state: TSPState) -> int:
        return row_bytes(state, self.graph_encoder.blocks)
