"""What a search finds out itself: how far to stray from the policy's favourites, and how much to trust what a round has shown.

Both are per instance and free of scale, so that one default serves all problems, sizes and checkpoints (docs/explanation/method.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gumbeldore.problem import precise
from gumbeldore.search.advantage import AdvantageFn
from gumbeldore.search.expansion import Round
from gumbeldore.search.gumbel import departures

DEPARTURES = 3.0
"""How often a sequence of the first sampled round is expected not to take the most probable action."""
GROWTH = 1.5
"""By how much that grows after a round that found nothing better."""
_STEP = 0.5
"""The shift of a path whose objective is one standard deviation above the mean, in logits."""
GRID = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
"""Values of p at which departures are measured; in between they are interpolated."""


@dataclass
class AutoNucleus:
    """The p of each instance's next round, such that a sequence departs from the most probable actions a wanted number of times.

    It is a `Watch` of the first round: that sums, level by level, the mean probability of a departure over the open slots.
    """

    curve: Float[Tensor, "batch p"]  # expected departures by p
    wanted: Float[Tensor, " batch"]
    best: Float[Tensor, " batch"]  # objective so far
    growth: float = GROWTH

    @classmethod
    def start(cls, batch: int, device: torch.device | str = "cpu", growth: float = GROWTH) -> AutoNucleus:
        """Before the first round. Where rounds are parts of a whole search, departures grow less after each."""
        none = torch.zeros(batch, dtype=precise(torch.device(device)), device=device)
        return cls(none[:, None].repeat(1, len(GRID)), none + DEPARTURES, none - torch.inf, growth)

    def __call__(self, log_prob: Float[Tensor, "batch beam action"], open_: Bool[Tensor, "batch beam"]) -> None:
        grid = torch.tensor(GRID, dtype=log_prob.dtype, device=log_prob.device)
        each = departures(log_prob, grid).where(open_[..., None], 0)
        self.curve = self.curve + each.sum(1) / open_.sum(1, keepdim=True).clamp(min=1)

    @property
    def p(self) -> Float[Tensor, " batch"]:
        """Where the curve reaches what is wanted; 1 where it does not even without a nucleus."""
        grid = torch.tensor(GRID, dtype=self.curve.dtype, device=self.curve.device)
        curve = self.curve.cummax(1).values  # ascending, but for rounding
        upper = torch.searchsorted(curve, self.wanted[:, None]).clamp(1, len(GRID) - 1)
        low, high = curve.gather(1, upper - 1), curve.gather(1, upper)
        share = ((self.wanted[:, None] - low) / (high - low).clamp(min=1e-12)).clamp(0, 1)
        return torch.lerp(grid[upper - 1], grid[upper], share).squeeze(1)

    def see(self, result: Round, sampled: bool = True) -> None:
        """Departs more often where a round of sampling found nothing better."""
        best, idle = result.objective.amax(1), ~result.filled.any(1)
        if sampled:
            self.wanted = torch.where((best > self.best) | idle, self.wanted, self.growth * self.wanted)
        self.best = torch.maximum(self.best, best)


@dataclass
class AutoStep:
    """Standardised advantages: divided by the standard deviation of the objectives, pooled over the rounds so far.

    As rounds agree more and more, advantages shrink beside the spread of the first ones, and so do the steps.
    """

    variance: Float[Tensor, " batch"]
    rounds: Float[Tensor, " batch"]  # in which an instance got sequences

    @classmethod
    def start(cls, batch: int, device: torch.device | str = "cpu") -> AutoStep:
        """Before the first round."""
        none = torch.zeros(batch, dtype=precise(torch.device(device)), device=device)
        return cls(none, none)

    def see(self, result: Round) -> None:
        count = result.filled.sum(1)
        value = result.objective.where(result.filled, 0)
        mean = value.sum(1, keepdim=True) / count.clamp(min=1)[:, None]
        own = (value - mean).where(result.filled, 0).square().sum(1) / count.clamp(min=1)
        seen = (count > 0).to(own.dtype)
        self.rounds = self.rounds + seen
        self.variance = self.variance + seen * (own - self.variance) / self.rounds.clamp(min=1)

    def shift(self, result: Round, advantage: AdvantageFn) -> Tensor:
        """What is added to the logits along each path."""
        scale = self.variance.sqrt()
        return advantage(result) * (_STEP / scale.where(scale > 0, 1))[:, None]
