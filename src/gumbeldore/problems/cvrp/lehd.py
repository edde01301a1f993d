"""The LEHD network for the CVRP (Luo et al. 2023)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gumbeldore.networks.depot import customer_logits, depot_tokens
from gumbeldore.networks.lehd import LehdPolicy, Prepared
from gumbeldore.networks.tokens import row_bytes, take
from gumbeldore.problems.cvrp.bq import capacity_ratio, node_features
from gumbeldore.problems.cvrp.problem import CVRPState


class CVRPLehdPolicy(LehdPolicy):
    """Decoder over depot, origin and choosable customers; two logits per customer. The defaults are those of Luo et al."""

    def __init__(self, d: int = 192, layers: int = 6, heads: int = 12, ff: int = 512) -> None:
        super().__init__(3, 2, d, layers, heads, ff)
        self.depot_projection = nn.Linear(d, d)
        self.capacity_embedding = nn.Linear(1, d)

    def embed(self, state: CVRPState) -> Float[Tensor, "batch node d"]:  # type: ignore[override]
        nodes = self.node_embedding(node_features(state, self.node_embedding.weight.dtype))
        nodes[:, 0] = self.depot_projection(nodes[:, 0].clone())
        return nodes

    def forward(self, state: CVRPState, context: Prepared | None = None) -> Float[Tensor, "row action"]:
        order, blocked = depot_tokens(state)
        x = take(self.encoded(state, context), state, order)
        row, origin = torch.arange(len(order), device=order.device), (order == state.current[:, None]).int().argmax(1)
        x[row, origin] = self.start_projection(x[row, origin]).to(x.dtype)
        x += self.capacity_embedding(capacity_ratio(state, x.dtype)[:, None])[:, None]
        return customer_logits(self.policy_linear_out(self.decode(x, blocked, context)[:, 1:]), state, order)

    def row_bytes(self, state: CVRPState) -> int:
        return row_bytes(state, self.graph_decoder.blocks)
