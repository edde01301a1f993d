"""Look-ahead features for orienteering: what tours collect that go to some node first, then on by prize per way.

What such a tour collects tells how good it is to go to the node (the pilot method, Duin and Voss 1999). Compiled (`compiled/prize_ahead.cpp`), and by its definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gumbeldore.errors import require_positive
from gumbeldore.local_search.compiling import chosen, code, plain
from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.problems.geometry import UNITS, prior, shares
from gumbeldore.problems.op.problem import END, OPState, lengths

FIRST = 3
"""The first nodes of the rule's own tour are tried in any case, then those with the most prize per way."""
LEAST = np.float32(1e-6)
"""The shortest way that counts, in budgets."""
EARLY, TRIED, REGRETS = 1, 2, (3, 4, 5)
"""Which columns say how early a node is on the rule's own tour, whether it was tried, and its regret."""


@dataclass(frozen=True)
class WalkAhead(RouteFeature):
    """Of each node whether and how early the rule of prize per way goes there, and what a tour collects that goes there first. That reaches the logits
    directly, too, so that the network begins as the heuristic to go wherever the tour by the rule that follows collects most."""

    name: ClassVar[str] = "ahead"
    width: ClassVar[int] = 6

    tries: int = 12  # nodes that are tried

    def __post_init__(self) -> None:
        require_positive(tries=self.tries)

    def columns(self, view: View) -> Float[Tensor, "row token 6"]:
        tried, regret, mine, early = walks_ahead(view.state, view.order, view.candidates.sum(1), self.tries).unbind(-1)
        told = torch.stack([mine, early, tried], -1)
        return torch.cat([told, shares(regret[..., None], *UNITS)], -1).to(view.points)

    def prior(self) -> Float[Tensor, "1 6"]:
        weight = prior(self.width, TRIED, REGRETS)
        weight[EARLY] = 2.0  # of equally good ones
        return weight[None]


@torch.no_grad()
def walks_ahead(
    state: OPState, order: Int[Tensor, "row token"], counts: Int[Tensor, " row"], tries: int
) -> Float[Tensor, "row token 4"]:
    """Of each token of the network: whether it was tried; how much less than the best of those tried a tour collects that goes there first, in mean
    prizes; whether it is on the rule's own tour; how early, from 1 down to 0."""
    instance = state.instance[:, None]
    prizes = state.prizes[instance, order].masked_fill(order == END, 0)
    if (listed := getattr(state, "distances", None)) is None:
        points = state.nodes[instance, order]
        ways = lengths(points[:, :, None] - points[:, None])
    else:
        ways = listed[instance[:, None], order[:, :, None], order[:, None]].to(prizes.dtype)
    far = state.budget[state.instance].clamp(min=1e-300)
    mean = (state.prizes[:, 1:].mean(1).clamp(min=1e-300))[state.instance]
    given = ways / far[:, None, None], prizes / mean[:, None], state.remaining / far
    tensors = *(each.detach().cpu().float() for each in given), counts.cpu()
    return chosen(_compiled, defined)(*tensors, tries).to(order.device)


def _compiled(ways: Tensor, prizes: Tensor, budgets: Tensor, counts: Tensor, tries: int) -> Float[Tensor, "row token 4"]:
    result = torch.empty(*prizes.shape, 4)
    given = (plain(each, torch.float32) for each in (ways, prizes, budgets))
    code().look_ahead_by_walks(*given, plain(counts, torch.int32), tries, result.numpy())
    return result


def defined(ways: Tensor, prizes: Tensor, budgets: Tensor, counts: Tensor, tries: int) -> Float[Tensor, "row token 4"]:
    """The definition, row by row."""
    rows = zip(*(each.numpy() for each in (ways, prizes, budgets)), counts.tolist(), strict=True)
    return torch.from_numpy(
        np.stack([_of_row(ways, prizes, float(budget), count, tries) for ways, prizes, budget, count in rows])
    ).float()


def _of_row(
    ways: NDArray[np.float32], prizes: NDArray[np.float32], budget: float, count: int, tries: int
) -> NDArray[np.float64]:
    told = np.zeros((len(prizes), 4))
    tour, _ = _walked(ways, prizes, 0, budget, count)
    for place, node in enumerate(tour):
        told[node, 2:] = 1, 1 / (1 + place)
    rest = [node for node in range(1, count + 1) if node not in tour[:FIRST]]
    rest.sort(key=lambda node: (-prizes[node] / max(ways[0, node], LEAST), node))
    tried = [*tour[:FIRST], *rest][: max(tries, min(FIRST, len(tour)))]
    totals = [prizes[node] + _walked(ways, prizes, node, budget - float(ways[0, node]), count)[1] for node in tried]
    for node, total in zip(tried, totals, strict=True):
        told[node, :2] = 1, max(totals) - total
    return told


def _walked(
    ways: NDArray[np.float32], prizes: NDArray[np.float32], here: int, left: float, count: int
) -> tuple[list[int], float]:
    """The nodes of a tour that goes on to the one with the most prize per way, and what they collect."""
    stops, collected, free = list[int](), 0.0, [node for node in range(1, count + 1) if node != here]
    while free := [node for node in free if ways[here, node] + ways[-1, node] <= left]:
        following = max(free, key=lambda node: prizes[node] / max(ways[here, node], LEAST))
        left, collected = left - float(ways[here, following]), collected + float(prizes[following])
        stops.append(following)
        free.remove(following)
        here = following
    return stops, collected
