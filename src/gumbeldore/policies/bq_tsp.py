"""The BQ network for the TSP (Drakulic et al. 2023, as used in the paper's appendix "Traveling Salesman Problem")."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gumbeldore.policies.layers import Block, FoldedBlock, Stack
from gumbeldore.problems.tsp import TSPState


class Prepared(NamedTuple):
    """What does not change during a search: the embedded cities and the folded blocks."""

    cities: Float[Tensor, "batch city d"]
    blocks: list[FoldedBlock]


class TSPPolicy(nn.Module):
    """Decoder-only transformer over origin, unvisited cities and destination; one logit per unvisited city.

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
        return Prepared(self.node_embedding(state.coordinates), self.graph_encoder.folded())

    def forward(self, state: TSPState, context: Prepared | None = None) -> Float[Tensor, "row city"]:
        order, blocked = tokens(state)
        cities = self.node_embedding(state.coordinates) if context is None else context.cities
        batch, count, d = cities.shape
        x = cities.reshape(batch * count, d)[(state.instance[:, None] * count + order)]
        marker = torch.zeros_like(x)
        marker[:, 0] = self.first_last_marker.weight[0]
        marker[:, -1] = self.first_last_marker.weight[1]
        x = x + marker
        for block in self.graph_encoder if context is None else context.blocks:
            x = block(x, blocked)
        logits = self.policy_linear_out(x[:, 1:-1]).squeeze(-1)
        return torch.zeros(state.row_count, count, dtype=x.dtype, device=x.device).scatter(1, order[:, 1:-1], logits)

    def row_bytes(self, state: TSPState) -> int:
        """Working memory of one row in a search: residual stream, projections, hidden layer, attention scores."""
        count = int((~state.visited[:1]).sum()) + 2
        return 4 * count * (6 * self.config["d"] + 2 * self.config["ff"] + 2 * self.config["heads"] * count)


def tokens(state: TSPState) -> tuple[Int[Tensor, "row token"], Tensor | None]:
    """City indices in the order origin, unvisited, destination; and, only where rows differ in length, padding to block."""
    unvisited = ~state.visited
    counts = unvisited.sum(1)
    longest = int(counts.max())
    uniform = bool((counts == longest).all())
    if uniform:
        middle = unvisited.nonzero()[:, 1].view(-1, longest)
        blocked = None
    else:  # the unvisited first, then padding that repeats visited cities
        middle = unvisited.int().argsort(dim=1, descending=True, stable=True)[:, :longest]
        padding = torch.arange(longest, device=counts.device) >= counts[:, None]
        ends = padding.new_zeros(len(padding), 1)
        blocked = torch.cat([ends, padding, ends], 1)[:, None, None]
    return torch.cat([state.current[:, None], middle, state.start[:, None]], 1), blocked
