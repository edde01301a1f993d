"""Which nodes of an instance a network of the CVRP looks at."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gumbeldore.networks.tokens import block, members
from gumbeldore.problems.cvrp.problem import CVRPState


def cvrp_tokens(state: CVRPState) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row 1 1 token"] | None]:
    """Node indices: the depot, then the choosable customers and the origin, ascending; and the keys to block, if any.

    An origin that is the depot is one token with it. So a row that starts at the depot with L customers to serve has as
    many tokens as one that starts at a customer with L - 1 others.
    """
    nodes = torch.nn.functional.pad(state.choosable, (1, 0)).scatter_(1, state.current[:, None], True)
    customers, padding = members(nodes[:, 1:])
    return torch.nn.functional.pad(customers + 1, (1, 0)), block(padding, before=1, after=0)
