"""What is left to do as a path: from where the vehicle stands through all customers to the depot."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.problems.cvrp.problem import CVRPState


@dataclass(frozen=True)
class Rest:
    """The nodes of each row's path, and where on it the tokens of a network stand. A vehicle that stands at the depot is about to leave."""

    nodes: Int[Tensor, "row place"]
    counts: Int[Tensor, " row"]  # of places; what follows means nothing
    place: Int[Tensor, "row token"]
    points: Float[Tensor, "row place 2"]
    demands: Int[Tensor, "row place"]  # the first one is what the vehicle has loaded
    capacity: Int[Tensor, " row"]

    @classmethod
    def of(cls, state: CVRPState, order: Int[Tensor, "row token"], blocked: Bool[Tensor, "row 1 1 token"] | None) -> Rest:
        """`order` and `blocked` are those of `depot_tokens`."""
        here = order == state.current[:, None]
        between = (order != 0) & ~here
        if blocked is not None:
            between &= ~blocked[:, 0, 0]
        counts = between.sum(1) + 2
        width = int(counts.max())
        place = between.cumsum(1).where(between, width)  # others behind the end
        nodes = order.new_zeros(len(order), width + 1).scatter(1, place, order)[:, :width]
        nodes[:, 0] = state.current
        nodes[torch.arange(len(nodes), device=nodes.device), counts - 1] = 0
        capacity, instance = state.capacity[state.instance], state.instance[:, None]
        demands = state.demands[instance, nodes]
        demands[:, 0] = (capacity - state.remaining).where(state.current != 0, 0)
        place = torch.where(here, 0, place.where(between, (counts - 1)[:, None]))
        return cls(nodes, counts, place, state.nodes[instance, nodes], demands, capacity)

    def by_token(self, values: Float[Tensor, "row place feature"]) -> Float[Tensor, "row token feature"]:
        return values.take_along_dim(self.place[..., None], 1)
