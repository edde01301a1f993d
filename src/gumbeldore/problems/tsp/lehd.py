"""The LEHD network for the TSP (Luo et al. 2023)."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from gumbeldore.networks.lehd import LehdPolicy, Prepared
from gumbeldore.networks.tokens import row_bytes, take
from gumbeldore.problems.tsp.problem import TSPState
from gumbeldore.problems.tsp.tokens import tsp_tokens


class TSPLehdPolicy(LehdPolicy):
    """Decoder over origin, choosable cities and destination; one logit per city. The defaults are those of Luo et al."""

    def __init__(self, d: int = 128, layers: int = 6, heads: int = 8, ff: int = 512) -> None:
        super().__init__(2, 1, d, layers, heads, ff)
        self.dest_projection = nn.Linear(d, d)

    def embed(self, state: TSPState) -> Float[Tensor, "batch city d"]:  # type: ignore[override]
        return self.node_embedding(state.coordinates.to(self.node_embedding.weight.dtype))

    def forward(self, state: TSPState, context: Prepared | None = None) -> Float[Tensor, "row city"]:
        order, blocked = tsp_tokens(state)
        x = take(self.encoded(state, context), state, order)
        x[:, 0] = self.start_projection(x[:, 0].clone())
        x[:, -1] = self.dest_projection(x[:, -1].clone())
        logits = self.policy_linear_out(self.decode(x, blocked, context)[:, 1:-1]).squeeze(-1)
        return logits.new_zeros(state.visited.shape).scatter(1, order[:, 1:-1], logits)

    def row_bytes(self, state: TSPState) -> int:
        return row_bytes(state, self.graph_decoder.blocks)
