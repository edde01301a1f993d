"""Look-ahead features for the TSP: what spanning trees say of each city that is left.

Which city to go to next depends on what that leaves to be done. A bound of it is a sum over a tree, which attention, computing means, learns
late or never. Here it is features, about as large as 1, whatever the number of cities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import require_positive
from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.problems.geometry import UNITS, prior, shares
from gumbeldore.problems.tsp.trees import PathBounds, bound_paths

TRIED, REGRETS = 4, (9, 10, 11)
"""Which of them say whether it was tried, and its regret."""


@dataclass(frozen=True)
class SpanningTreeBounds(RouteFeature):
    """Of each city what the spanning trees of Held and Karp say of the path that is left. They reach the logits directly, too, so that the
    network begins as the heuristic to go wherever the bound grows least."""

    name: ClassVar[str] = "bounds"
    width: ClassVar[int] = 12

    rounds: int = 50  # trees that are grown
    tries: int = 3  # cities that are tried

    def __post_init__(self) -> None:
        require_positive(rounds=self.rounds, tries=self.tries)

    def of(self, points: Float[Tensor, "row place 2"], counts: Int[Tensor, " row"]) -> PathBounds:
        """Of ways from the first point through all others to the last one, at `counts` - 1."""
        return bound_paths(points, counts, rounds=self.rounds, tries=self.tries)

    def columns(self, view: View) -> Float[Tensor, "row token 12"]:
        return _bound_features(self, view.points, view.blocked, view.distances / 2)

    def prior(self) -> Float[Tensor, "1 12"]:
        return prior(self.width, TRIED, REGRETS)[None]


def _bound_features(
    bounds: SpanningTreeBounds,
    points: Float[Tensor, "row token 2"],
    blocked: Bool[Tensor, "row 1 1 token"] | None,
    distances: Float[Tensor, "row token 2"],
) -> Float[Tensor, "row token 12"]:
    """Of origin, choosable cities and destination: price, edges too many, how often it is beside either end, whether it was tried; then lengths as shares of themselves
    and a mean edge: what a tree loses if it is beside either end, and `distances`, those from origin and destination; and the regret of those tried."""
    counts = torch.full((len(points),), points.shape[1], device=points.device)
    if blocked is not None:
        counts -= blocked.flatten(1).sum(1)
    last = (counts - 1)[:, None]  # where the destination would be without padding
    found = bounds.of(points.scatter(1, last[..., None].expand(-1, -1, 2), points[:, -1:]), counts)
    lengths, regret = torch.stack([found.ahead, found.behind], -1), found.regret[..., None]
    others = torch.stack([found.price, found.degree, found.first, found.last, found.tried], -1)
    place = torch.cat([torch.arange(points.shape[1] - 1, device=points.device).expand(len(points), -1), last], 1)[..., None]
    lengths = torch.cat([lengths.take_along_dim(place, 1), distances / found.scale[:, None, None]], -1)
    return torch.cat([others.take_along_dim(place, 1), shares(lengths, 1), shares(regret.take_along_dim(place, 1), *UNITS)], -1)
