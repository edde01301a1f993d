"""Which nodes of an instance a network of the TSP looks at."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gumbeldore.networks.tokens import block, members
from gumbeldore.problems.tsp.problem import TSPState


def tsp_tokens(state: TSPState) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row 1 1 token"] | None]:
    """City indices in the order origin, choosable, destination; and the keys to block, if any."""
    middle, padding = members(state.choosable)
    order = torch.cat([state.current[:, None], middle, state.start[:, None]], 1)
    return order, block(padding, before=1, after=1)
