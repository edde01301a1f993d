"""Look-ahead features for the CVRP: what the savings heuristic (Clarke and Wright 1964) would do with all that is left to do, and what that costs
after each of some actions.

There is a route for each customer, and one that begins where the vehicle stands. Ends of routes are joined if a vehicle can take both, the largest saving first. What
the routes cost after an action tells how good it is (the pilot method, Duin and Voss 1999). Compiled (`compiled/savings.cpp`), and by its definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.local_search.compiling import chosen, code, plain
from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.problems.cvrp.rest import Rest
from gumbeldore.problems.geometry import UNITS, prior, shares

NEAR, FAR = 10, 16
"""Customers that are tried: the nearest ones that fit, directly; those farthest from the depot, via the depot. Beside these, those that savings themselves go to."""
_CLOSE = 0.5
"""Those farthest are tried where a return to the depot costs at most so much more than the best of the others, in mean edges."""
_LEAST_EDGE = 1e-9


class Savings(NamedTuple):
    """What is said of each node. Costs are in mean edges of the cheapest routes that were found."""

    next: Float[Tensor, "row place"]  # 1 where the vehicle goes next
    mine: Float[Tensor, "row place"]  # 1 where it goes at all
    end: Float[Tensor, "row place"]  # 1 where its route may begin or end
    load: Float[Tensor, "row place"]  # of its route, as a share
    on_tried: Float[Tensor, "row place"]  # 1 where it was tried to go there directly
    on_regret: Float[Tensor, "row place"]  # how much more that costs than the best that was tried
    back_tried: Float[Tensor, "row place"]  # the same via the depot
    back_regret: Float[Tensor, "row place"]


TRIED, REGRETS = (4, 5), ((6, 8, 10), (7, 9, 11))
"""Which columns say whether it was tried, directly and via the depot, and its regret."""


@dataclass(frozen=True)
class SavingsLookAhead(RouteFeature):
    """Of each customer what the savings heuristic would do, now and after each of some actions. That reaches the logits directly, too, so
    that the network begins as the heuristic to go wherever the savings that follow cost least."""

    name: ClassVar[str] = "savings"
    width: ClassVar[int] = 12

    def columns(self, view: View) -> Float[Tensor, "row token 12"]:
        return saving_features(Rest.of(view.state, view.order, view.blocked), view.points.dtype)

    def prior(self) -> Float[Tensor, "2 12"]:
        return torch.stack([prior(self.width, *each) for each in zip(TRIED, REGRETS, strict=True)])


def saving_features(rest: Rest, dtype: torch.dtype) -> Float[Tensor, "row token 12"]:
    """All of that, with regrets as shares of themselves and some units."""
    found = savings_of(rest)
    regrets = torch.stack([found.on_regret, found.back_regret], -1)
    others = torch.stack([*found[:4], found.on_tried, found.back_tried], -1)
    return rest.by_token(torch.cat([others, shares(regrets, *UNITS)], -1).to(rest.points.device, dtype))


def savings_of(rest: Rest) -> Savings:
    return chosen(_compiled, defined)(
        rest.points.detach().cpu().float(), *(each.cpu() for each in (rest.demands, rest.capacity, rest.counts))
    )


def _compiled(points: Tensor, demands: Tensor, capacity: Tensor, counts: Tensor) -> Savings:
    rows, places = demands.shape
    result = torch.empty(rows, places, len(Savings._fields))
    loads = (plain(each, torch.int64) for each in (demands, capacity))
    given = plain(points, torch.float32), *loads, plain(counts, torch.int32)
    code().look_ahead_by_savings(*given, NEAR, FAR, _CLOSE, torch.get_num_threads(), result.numpy())
    return Savings._make(result.unbind(-1))


@torch.no_grad()
def defined(points: Float[Tensor, "row place 2"], demands: Tensor, capacity: Tensor, counts: Tensor) -> Savings:
    """The definition, for all rows at once."""
    work = _Work(points, demands.long(), capacity.long(), counts.long())
    now = work.joined(torch.zeros_like(work.row), work.demands[:, 0])
    expected = work.places == now.next[:, None]
    mine = now.route == now.route[:, :1]
    load = work.load_of(now) / capacity[:, None]
    loaded = work.demands[:, :1]
    under_way = (loaded > 0) | (work.away[:, :1] > 0)  # not at the depot
    fits = work.customers & under_way & (loaded + work.demands <= capacity[:, None])
    on = work.costs(fits & (_first_of(work.distance[:, 0], fits, NEAR) | expected), directly=True)
    ends = work.customers & work.joined(torch.full_like(work.row, -1), work.row).free
    back = work.costs(_first_of(-work.away, ends, 1), directly=False)
    home, nodes = back.amin(1, keepdim=True), (counts - 1)[:, None]
    least = torch.minimum(on.amin(1, keepdim=True), home)
    far = _first_of(-work.away, work.customers, FAR) & (home - least <= _CLOSE * least / nodes)
    back = torch.minimum(back, work.costs(far, directly=False))
    least = torch.minimum(least, back.amin(1, keepdim=True))
    unit = (least / nodes).clamp(min=_LEAST_EDGE)
    tries = [(each.isfinite(), ((each - least) / unit).where(each.isfinite(), 0)) for each in (on, back)]
    found = (expected, mine, now.free, load, *tries[0], *tries[1])
    return Savings._make(each.float().where(work.real, 0) for each in found)


def _first_of(
    value: Float[Tensor, "row place"], candidates: Bool[Tensor, "row place"], count: int
) -> Bool[Tensor, "row place"]:
    """The candidates with the least values."""
    order = value.masked_fill(~candidates, torch.inf).argsort(dim=1, stable=True)
    return candidates & (order.argsort(dim=1) < count)


class _Joined(NamedTuple):
    """Routes of all rows."""

    cost: Float[Tensor, " row"]
    route: Int[Tensor, "row place"]
    load: Int[Tensor, "row place"]  # of the route of that number
    free: Bool[Tensor, "row place"]  # whether it may still be joined
    next: Int[Tensor, " row"]  # where the vehicle goes; -1: back to the depot


class _Work:
    """What is left to do in each row."""

    def __init__(self, points: Tensor, demands: Tensor, capacity: Tensor, counts: Tensor) -> None:
        rows, count = demands.shape
        self.row, self.places, depot = torch.arange(rows), torch.arange(count), counts - 1
        self.demands, self.capacity = demands, capacity
        self.real = self.places < depot[:, None]
        self.customers = self.real & (self.places > 0)
        x, y = (points[:, :, None] - points[:, None]).unbind(-1)
        self.distance = (x * x + y * y).sqrt()
        self.away = self.distance[self.row, depot]
        self.a, self.b = torch.triu_indices(count, count, 1)
        saving = self.away[:, self.a] + self.away[:, self.b] - self.distance[:, self.a, self.b]
        self.saving = saving.where(self.real[:, self.a] & self.real[:, self.b], 0)
        self.order = self.saving.argsort(dim=1, descending=True, stable=True)[:, : int((self.saving > 0).sum(1).max())]

    def joined(self, start: Int[Tensor, " row"], loaded: Int[Tensor, " row"]) -> _Joined:
        """Of vehicles that begin at `start` with a load, or none where that is -1."""
        row, a, b = self.row, self.a, self.b
        route, load = self.places.expand(len(row), -1), self.demands.where(self.real, 0)
        begins = self.places == start[:, None]
        load = torch.where(begins, loaded[:, None], load)
        free = torch.full_like(load, 2) - begins.long()
        free[:, 0] = free[:, 0].where(start == 0, 0)
        away = self.away.double()
        cost = (2 * away).where(self.customers & ~begins, 0).sum(1) + away.where(begins, 0).sum(1)
        following = torch.full_like(row, -1)
        for pair in self.order.unbind(1):
            one, other, saving = a[pair], b[pair], self.saving[row, pair]
            mine, theirs = route[row, one], route[row, other]
            fits = load[row, mine] + load[row, theirs] <= self.capacity
            joins = fits & (saving > 0) & (free[row, one] > 0) & (free[row, other] > 0) & (mine != theirs)
            load = load.scatter_add(1, mine[:, None], load[row, theirs].where(joins, 0)[:, None])
            route = torch.where(joins[:, None] & (route == theirs[:, None]), mine[:, None], route)
            for end in (one, other):
                free[row, end] -= joins.long()
            cost = cost - saving.double().where(joins, 0)
            for end, beyond in ((one, other), (other, one)):
                following = beyond.where(joins & (end == start), following)
        return _Joined(cost, route, load, free > 0, following)

    def load_of(self, routes: _Joined) -> Int[Tensor, "row place"]:
        return routes.load.gather(1, routes.route)

    def costs(self, tried: Bool[Tensor, "row place"], *, directly: bool) -> Float[Tensor, "row place"]:
        """Of all that is left after going to each of those, infinite for all others."""
        result = torch.full(tried.shape, torch.inf, dtype=torch.float64)
        away, here = self.away.double(), self.distance[:, 0].double()
        for place in tried.any(0).nonzero().flatten().tolist():
            way = here[:, place] if directly else away[:, 0] + away[:, place]
            loaded = self.demands[:, place] + (self.demands[:, 0] if directly else 0)
            cost = way + self.joined(torch.full_like(self.row, place), loaded).cost
            result[:, place] = cost.where(tried[:, place], torch.inf)
        return result
