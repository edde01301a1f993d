"""Demands of customers and the capacity of vehicles: checks of what is given."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.errors import require


def integers(name: str, values: Tensor | int, device: torch.device) -> Int[Tensor, "..."]:
    """`values` as 64-bit integers; an error where that would change them."""
    given = torch.as_tensor(values, device=device)
    result = given.long()
    require(
        bool((result == given).all()),
        f"`{name}` must be integers, got {given.flatten()[(result != given).flatten()][:1].tolist()}. Scale them to integers.",
    )
    return result


def check_demands(demands: Int[Tensor, "batch node"], capacity: Int[Tensor, " batch"]) -> None:
    """The depot demands nothing, and every customer fits into an empty vehicle."""
    require(not bool(demands[:, 0].any()), "`demands` must be 0 at the depot (the first node). Put a 0 before the customers'.")
    require(bool((demands >= 0).all()), f"`demands` must be at least 0, got {int(demands.min())}.")
    row, node = divmod(int((demands - capacity[:, None]).argmax()), demands.shape[1])  # the worst one
    require(
        bool(demands[row, node] <= capacity[row]),
        f"`demands` must not exceed `capacity`, but customer {node - 1} of instance {row} demands {int(demands[row, node])} "
        f"of {int(capacity[row])}.",
    )
