"""The LEHD networks: a light encoder, run once per instance, and a heavy decoder (Luo et al. 2023)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gumbeldore.policies.bq_cvrp import capacity_ratio, customer_logits, node_features
from gumbeldore.policies.layers import Block, FoldedStack, Stack
from gumbeldore.policies.tokens import cvrp_tokens, row_bytes, take, tsp_tokens
from gumbeldore.policy import Network
from gumbeldore.problem import State
from gumbeldore.problems.cvrp import CVRPState
from gumbeldore.problems.tsp import TSPState

TOKENS = 1 << 14
"""How many tokens the encoder takes at once in a search, which bounds its memory whatever the number of instances."""


class Prepared(NamedTuple):
    """What does not change during a search: the encoded nodes and the folded decoder."""

    nodes: Float[Tensor, "batch node d"]
    blocks: Stack | FoldedStack


class LehdPolicy(Network):
    """What both LEHD networks share: blocks without normalisation or scalar, one in the encoder, `layers` in the decoder."""

    def __init__(self, features: int, logits: int, d: int, layers: int, heads: int, ff: int) -> None:
        super().__init__()
        self.config = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        self.node_embedding = nn.Linear(features, d)
        self.graph_encoder = Block(d, heads, ff, rezero=False)
        self.graph_decoder = Stack(Block(d, heads, ff, rezero=False) for _ in range(layers))
        self.start_projection = nn.Linear(d, d)
        self.policy_linear_out = nn.Linear(d, logits)

    def prepare(self, state: State) -> Prepared | None:
        """Encodes the nodes of all instances and folds the decoder once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        nodes, encoder = self.embed(state), Stack([self.graph_encoder]).prepare()
        nodes = torch.cat([encoder(part) for part in nodes.split(max(1, TOKENS // nodes.shape[1]))])
        return Prepared(nodes, self.graph_decoder.prepare())

    def encoded(self, state: State, context: Prepared | None) -> Float[Tensor, "batch node d"]:
        """The encoded nodes: those prepared, or with gradients computed now."""
        return Stack([self.graph_encoder])(self.embed(state)) if context is None else context.nodes

    def decode(self, x: Float[Tensor, "row token d"], blocked: Tensor | None, context: Prepared | None) -> Tensor:
        """The decoder's layers."""
        return (self.graph_decoder if context is None else context.blocks)(x, blocked)

    def embed(self, state: State) -> Float[Tensor, "batch node d"]:
        """The encoder's input."""
        raise NotImplementedError


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
        return torch.zeros(state.visited.shape, dtype=x.dtype, device=x.device).scatter(1, order[:, 1:-1], logits)

    def row_bytes(self, state: TSPState) -> int:
        return row_bytes(state, self.graph_decoder.blocks)


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
        order, blocked = cvrp_tokens(state)
        x = take(self.encoded(state, context), state, order)
        row, origin = torch.arange(len(order), device=order.device), (order == state.current[:, None]).int().argmax(1)
        x[row, origin] = self.start_projection(x[row, origin])
        x += self.capacity_embedding(capacity_ratio(state, x.dtype)[:, None])[:, None]
        return customer_logits(self.policy_linear_out(self.decode(x, blocked, context)[:, 1:]), state, order)

    def row_bytes(self, state: CVRPState) -> int:
        return row_bytes(state, self.graph_decoder.blocks)
