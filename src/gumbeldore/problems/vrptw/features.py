"""Features of time: how soon each customer can be served and must be, from here and from the depot, and who else could come before or behind.

Attention computes means. Whether a customer is reached in time, how long the vehicle would wait, and who else could serve it are sums, maxima and
minima over pairs, which a few blocks learn late. Here they are features, about as large as 1, in widths of the map.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gumbeldore.networks.routes import RouteFeature, View
from gumbeldore.problems.geometry import shares
from gumbeldore.problems.vrptw.windows import tolerance, ways

UNITS = 1.0, 0.1
"""In which spans of time are features, in widths of the map."""
MANY = 128
"""The number of customers, or of vehicles' loads, that is 1 as a feature."""
NEVER = 8.0
"""A span that is as good as endless, in widths of the map."""


class Spans(NamedTuple):
    """Of each token, in widths of the map. A vehicle from the depot begins service at `earliest`."""

    way: Float[Tensor, "row token"]
    until: Float[Tensor, "row token"]  # service can begin here, directly
    wait: Float[Tensor, "row token"]
    slack: Float[Tensor, "row token"]  # between arrival and the latest time
    closing: Float[Tensor, "row token"]  # from now to the latest time
    opening: Float[Tensor, "row token"]  # from now to the earliest time
    service: Float[Tensor, "row token"]
    direct: Bool[Tensor, "row token"]  # whether the customer may come next, directly


@dataclass(frozen=True)
class Windows(RouteFeature):
    """Of each customer when it can and must be served, directly and by another vehicle, and its best neighbours in time."""

    name: ClassVar[str] = "windows"
    width: ClassVar[int] = 28

    def columns(self, view: View) -> Float[Tensor, "row token 28"]:
        spans, kind = spans_of(view), view.points.dtype
        opens, closes = view.state.windows[view.state.instance, 0].split(1, dim=1)
        scale, state = width_of(view.state)[view.state.instance, None], view.state
        share = ((state.time[:, None] - opens) / (closes - opens).clamp(min=1e-300)).expand(view.order.shape)
        some = torch.stack(
            [spans.direct.to(kind), share.to(kind), ((closes - opens) / scale / 10).expand(view.order.shape).to(kind)], -1
        )
        lasting = [spans.until, spans.wait, spans.service, (spans.closing - spans.opening).clamp(min=0)]
        spanning = [spans.slack, spans.closing, spans.opening]
        timed = [shares(each[..., None], *UNITS) for each in lasting] + [signed(each) for each in spanning]
        return torch.cat([some, *timed, neighbours(view, spans), demands(view)], -1).to(kind)

    def prior(self) -> Float[Tensor, "2 28"]:
        """On to where service can begin soon; by another vehicle to where it must, if there is nothing left in time."""
        weight = torch.zeros(2, self.width)
        weight[0, [0, 3, 4]] = torch.tensor([24.0, -10.0, -8.0])
        weight[1, 13] = -16.0
        return weight


def width_of(state: Any) -> Float[Tensor, " batch"]:
    """The larger side of the box around each instance's nodes; 1 if all are one point."""
    size = (state.nodes.amax(1) - state.nodes.amin(1)).amax(1)
    return size.where(size > 0, 1)


def spans_of(view: View) -> Spans:
    state, order = view.state, view.order
    instance = state.instance[:, None]
    early, late, service = (each[instance, order] for each in (state.earliest, state.latest, state.service))
    points, here = state.nodes[instance, order], state.nodes[state.instance, state.current]
    way, time = ways(here[:, None], points, state.parts[instance]), state.time[:, None]
    slack, begin = late - time - way, torch.maximum(time + way, early)
    fits = state.demands[instance, order] <= state.remaining[:, None]
    in_time = slack >= -tolerance(state.windows)[instance]
    direct = fits & in_time & view.candidates & (state.current != 0)[:, None]
    scale = width_of(state)[instance]
    spans = (way, begin - time, begin - time - way, slack, late - time, early - time, service)
    way, until, wait, slack, closing, opening, service = ((each / scale).to(view.points.dtype) for each in spans)
    return Spans(way, until, wait, slack, closing, opening, service, direct)


def signed(span: Float[Tensor, "row token"]) -> Float[Tensor, "row token 2"]:
    """A span of either sign as features from -1 to 1."""
    return torch.stack([span / (unit + span.abs()) for unit in UNITS], -1)


def neighbours(view: View, spans: Spans) -> Float[Tensor, "row token 8"]:
    """Of each candidate: the shortest ways from another one before it and to another one behind it that are in time, with the waiting that cannot be
    avoided; the same behind it if the vehicle goes there now; and how many others it could still go on to then, as a share."""
    points = view.points
    x, y = (points[:, :, None] - points[:, None]).unbind(-1)
    far = (x * x + y * y).sqrt()
    leave, leave_late = spans.opening + spans.service, spans.closing + spans.service
    candidates = view.candidates
    others = candidates[:, None] & ~torch.eye(far.shape[1], dtype=torch.bool, device=far.device)
    late, early = spans.closing[:, None], spans.opening[:, None]
    in_time = others & (leave[:, :, None] + far <= late)
    cost = (far + (early - leave_late[:, :, None] - far).clamp(min=0)).clamp(max=NEVER)
    behind = cost.masked_fill(~in_time, NEVER).amin(2)
    before = cost.masked_fill(~(in_time & candidates[:, :, None]), NEVER).amin(1)
    now = (spans.until + spans.service)[:, :, None] + far
    reached = others & (now <= late)
    after = (
        (torch.maximum(now, early) - (spans.until + spans.service)[:, :, None])
        .masked_fill(~reached, NEVER)
        .amin(2)
        .clamp(max=NEVER)
    )
    count = candidates.sum(1, keepdim=True).clamp(min=1)
    open_now = reached.sum(2) / count
    open_at_all = in_time.sum(2) / count
    near = [shares(each[..., None], *UNITS) for each in (behind, before, after)]
    return torch.cat([*near, torch.stack([open_now, open_at_all], -1)], -1)


def demands(view: View) -> Float[Tensor, "row token 3"]:
    """A node's share of its own demand and what the vehicle has left; the logarithms of how many customers and vehicles' loads there are left."""
    state = view.state
    demand, left = state.demands[state.instance[:, None], view.order], state.remaining[:, None]
    total = state.demands[state.instance, 1:].masked_fill(state.visited, 0).sum(1)
    rest = torch.stack([(~state.visited).sum(1).float(), total / state.capacity[state.instance]], 1)
    rest = torch.log1p(rest) / math.log1p(MANY)
    share = demand / (demand + left).clamp(min=1)
    return torch.cat([share[..., None], rest[:, None].expand(-1, share.shape[1], -1)], -1).to(view.points.dtype)
