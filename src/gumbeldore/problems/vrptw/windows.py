"""Distances, which are travel times, too; and time windows, drawn as in the literature or given."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.errors import require

TOLERANCE = 1e-9
"""So much later than allowed is in time, as a share of when the depot closes: what rounding may do to sums."""
HORIZON, SERVICE, WIDTH = 4.6, (0.15, 0.18), (0.18, 0.2)
"""When the depot closes; between which service times are uniform, and how long windows are open."""


def ways(
    a: Float[Tensor, "*#shape 2"], b: Float[Tensor, "*#shape 2"], parts: Int[Tensor, "*#shape"]
) -> Float[Tensor, "*shape"]:
    """Euclidean distances, cut down to multiples of 1 / `parts`; exact where that is 0."""
    exact = (a - b).square().sum(-1).sqrt()
    if not bool(parts.any()):
        return exact
    return torch.where(parts > 0, (exact * parts).floor() / parts.clamp(min=1), exact)


def drawn_windows(
    away: Float[Tensor, "batch customer"], uniform: Float[Tensor, "three batch customer"]
) -> tuple[Float[Tensor, "batch node 2"], Float[Tensor, "batch node"]]:
    """Windows and service times of customers that are so far `away` from the depot, of uniform numbers for service, width and opening.

    The recipe of Liu et al. (2024), "Multi-Task Learning for Routing Problem with Cross-Problem Zero-Shot Generalization", which RouteFinder
    and rl4co's `mtvrp` use: a window may open at any time between the first arrival from the depot and the last one that lets the vehicle
    be back in time.
    """
    service, width = (low + (high - low) * u for (low, high), u in zip((SERVICE, WIDTH), uniform[:2], strict=True))
    last = HORIZON - service - width - away
    opening = away + (last - away) * uniform[2]
    windows = torch.stack([opening, opening + width], -1)
    depot = torch.tensor([0.0, HORIZON], dtype=windows.dtype, device=windows.device).expand(len(windows), 1, 2)
    return torch.cat([depot, windows], 1), torch.nn.functional.pad(service, (1, 0))


def check_windows(windows: Float[Tensor, "batch node 2"], service: Float[Tensor, "batch node"]) -> None:
    """Finite numbers; windows close after they open; service takes time, but none at the depot."""
    require(
        bool(windows.isfinite().all()),
        "`windows` must be finite, got NaN or infinity. Close an open end when the depot closes.",
    )
    wrong = windows[..., 0] > windows[..., 1]
    if bool(wrong.any()):
        row, node = wrong.nonzero()[0].tolist()
        opens, closes = windows[row, node].tolist()
        require(
            False,
            f"`windows` must close after they open, but that of node {node} of instance {row} is {opens:g} .. {closes:g}.",
        )
    require(bool((service.isfinite() & (service >= 0)).all()), "`service` must be at least 0 and finite.")
    require(not bool(service[:, 0].any()), "`service` must be 0 at the depot (the first node).")


def tightened(
    windows: Float[Tensor, "batch node 2"], service: Float[Tensor, "batch node"], away: Float[Tensor, "batch node"]
) -> Float[Tensor, "batch node 2"]:
    """When service at a node can begin at the earliest, coming from the depot, and at the latest, to be back there in time.

    Every customer can be served by a vehicle of its own, so there is always a way on: via the depot.
    """
    opens, closes = windows[:, :1, 0], windows[:, :1, 1]
    earliest, latest = torch.maximum(windows[..., 0], opens + away), torch.minimum(windows[..., 1], closes - service - away)
    earliest[:, 0], latest[:, 0] = opens[:, 0], closes[:, 0]
    result = torch.stack([earliest, latest], -1)
    late = earliest > latest + tolerance(result)[:, None]
    if bool(late.any()):
        row, node = late.nonzero()[0].tolist()
        require(
            False,
            f"`windows` must let a vehicle serve each customer from the depot and be back in time, but customer {node - 1} of instance "
            f"{row} can be served from {earliest[row, node]:g} on and must be until {latest[row, node]:g}.",
        )
    return result


def tolerance(windows: Float[Tensor, "batch node 2"]) -> Float[Tensor, " batch"]:
    """Of each instance, in its own unit of time."""
    return TOLERANCE * windows[:, 0].abs().amax(1)
