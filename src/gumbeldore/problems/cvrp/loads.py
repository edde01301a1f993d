"""Features of loads and of the depot: which customers still fit, how much there is left to do, and which way they lie.

Attention computes means. That a customer takes all that is left of a vehicle, or that three vehicles cannot do what remains, are a
quotient and a sum, which a few blocks learn late; and subtours are petals around the depot, where directions count. Here all that is
features, about as large as 1, whatever the capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.problems.cvrp.problem import CVRPState

MANY = 128
"""The number of customers, or of vehicles' loads, that is 1 as a feature."""


@dataclass(frozen=True)
class Loads(RouteFeature):
    """What fits into the vehicle and how much is left to do: two columns about a node's demand, five of the row, its direction from the depot."""

    name: ClassVar[str] = "loads"
    width: ClassVar[int] = 9

    def columns(self, view: View) -> Float[Tensor, "row token 9"]:
        return load_features(view.state, view.order, view.seen, view.distances[..., 0])


def load_features(
    state: CVRPState,
    order: Int[Tensor, "row token"],
    points: Float[Tensor, "row token 2"],
    away: Float[Tensor, "row token"],
) -> Float[Tensor, "row token 9"]:
    """Features of nodes at `points`, the depot first, that are so far `away` from the current one; see `_demands`, `_rest`, `_directions`."""
    rest = torch.cat([_rest(state).to(points.dtype), away[:, :1]], 1)
    every = rest[:, None].expand(-1, order.shape[1], -1)
    return torch.cat([_demands(state, order).to(points.dtype), every, _directions(points)], -1)


def _demands(state: CVRPState, order: Int[Tensor, "row token"]) -> Float[Tensor, "row token 2"]:
    """Whether a node fits into the vehicle as it is, and its share of its own demand and what the vehicle has left."""
    demand, left = state.demands[state.instance].gather(1, order), state.remaining[:, None]
    return torch.stack([(demand <= left).float(), demand / (demand + left).clamp(min=1)], -1)


def _rest(state: CVRPState) -> Float[Tensor, "row 4"]:
    """What the least number of vehicles has to spare at the end, as a share of one; the logarithms of how many vehicles' loads and how
    many customers there are left; whether all of them fit into this vehicle. Sums are of integers, so no rounding depends on their order."""
    capacity, left = state.capacity[state.instance], state.remaining
    total = state.demands[state.instance, 1:].masked_fill(state.visited, 0).sum(1)
    fits = total <= left
    spare = torch.where(fits, left - total, (left - total).remainder(capacity)) / capacity
    return torch.stack([spare, _many(total / capacity), _many((~state.visited).sum(1)), fits.float()], 1)


def _directions(points: Float[Tensor, "row token 2"]) -> Float[Tensor, "row token 2"]:
    """The unit vector from the depot, the first token, to each token; 0 where they coincide."""
    way = points - points[:, :1]
    x, y = way.unbind(-1)
    length = (x.square() + y.square()).sqrt()[..., None]
    return way / length.where(length > 0, 1)


def _many(number: Shaped[Tensor, " row"]) -> Float[Tensor, " row"]:
    return torch.log1p(number) / math.log1p(MANY)
