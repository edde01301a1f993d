"""The subtours of complete solutions: where they begin and end, what they load, and the same solutions in another order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Subtours:
    """Subtour s of a row holds the customers at the places `first[s]` .. `last[s]`; both are -1 where a row has no such subtour."""

    customer: Int[Tensor, "row place"]
    begins: Bool[Tensor, "row place"]  # True at the first customer of each subtour
    subtour: Int[Tensor, "row place"]
    first: Int[Tensor, "row subtour"]
    last: Int[Tensor, "row subtour"]

    @classmethod
    def of(cls, actions: Int[Tensor, "row place"]) -> Subtours:
        """Those of solutions whose first customer is reached via the depot, as each is."""
        begins = actions % 2 == 1
        place = torch.arange(actions.shape[1], device=actions.device).expand_as(actions)
        subtour, none = (begins.cumsum(1) - 1).clamp(min=0), torch.full_like(actions, -1)
        first, last = (none.scatter_reduce(1, subtour, place, kind, include_self=False) for kind in ("amin", "amax"))
        return cls(actions // 2, begins, subtour, first, last)

    def load(self, demands: Int[Tensor, "row node"]) -> Int[Tensor, "row subtour"]:
        return torch.zeros_like(self.customer).scatter_add_(1, self.subtour, demands.gather(1, self.customer + 1))

    def directions(self, nodes: Float[Tensor, "row node 2"]) -> Float[Tensor, "row subtour"]:
        """In which direction from the depot the middle of each subtour lies, as an angle; any where there is no such subtour."""
        points = nodes.gather(1, (self.customer + 1)[..., None].expand(-1, -1, 2)) - nodes[:, :1]
        x, y = torch.zeros_like(points).scatter_add_(1, self.subtour[..., None].expand(-1, -1, 2), points).unbind(2)
        return torch.atan2(y, x)

    def ends(self, *, reverse: bool) -> Int[Tensor, "row subtour"]:
        """The first customer of each subtour, or the last one; any where there is no such subtour."""
        return self.customer.gather(1, (self.last if reverse else self.first).clamp(min=0))

    def start(self, which: Int[Tensor, " row"], reverse: Bool[Tensor, "row subtour"]) -> Int[Tensor, " row"]:
        """The customer with which a subtour of each row begins, turned round where `reverse` says so."""
        begin = torch.where(reverse, self.ends(reverse=True), self.ends(reverse=False))
        return begin.gather(1, which[:, None]).squeeze(1)

    def arranged(
        self, rank: Float[Tensor, "row subtour"], reverse: Bool[Tensor, "row subtour"]
    ) -> tuple[Int[Tensor, "row place"], Bool[Tensor, "row place"]]:
        """The same solutions with subtours ascending by `rank`, equal ones in their order, some of them turned round.

        Returns the customers, and True at the first one of each subtour.
        """
        count = (self.last - self.first + 1).masked_fill(self.first < 0, 0)
        sequence = rank.masked_fill(self.first < 0, torch.inf).argsort(dim=1, stable=True)
        ordered = count.gather(1, sequence)
        begin = torch.zeros_like(count).scatter_(1, sequence, ordered.cumsum(1) - ordered)
        place = torch.arange(self.customer.shape[1], device=self.customer.device)
        first, last, turned = (each.gather(1, self.subtour) for each in (self.first, self.last, reverse))
        offset = torch.where(turned, last - place, place - first)
        where = begin.gather(1, self.subtour) + offset
        begins = torch.zeros_like(self.begins).scatter_(1, where, offset == 0)
        return torch.zeros_like(self.customer).scatter_(1, where, self.customer), begins
