"""What a search finds out itself: how far to stray from the policy's favourites, and how much to trust what a round has shown.

Both are per instance and free of scale, so that one default serves all problems, sizes and checkpoints (docs/method.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gumbeldore.search.advantage import AdvantageFn
from gumbeldore.search.expansion import Round
from gumbeldore.search.gumbel import departures

DEPARTURES = 3.0
"""How often a sequence of the first sampled round is expected not to take the most probable action."""
GROWTH = 1.5
"""By how much that grows after a round that found nothing better."""
STEP = 0.5
"""The shift of a path whose objective is one standard deviation above the mean, in logits."""
GRID = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
"""Values of p at which departures are measured; in between they are interpolated."""


@dataclass
class AutoNucleus:
    """The p of each instance's next round, such that a sequence departs from the most probable actions a wanted number of times.

    It is a `Watch` of the first round: that sums, level by level, the mean probability of a departure over the open slots.
    """

    curve: Float[Tensor, "batch p"] = field(init=False)  # expected departures by p
    wanted: Float[Tensor, " batch"] = field(init=False)
    best: Float[Tensor, " batch"] = field(init=False)  # objective so far
    rounds: int = 0

    def __call__(self, log_prob: Float[Tensor, "batch beam action"], open_: Bool[Tensor, "batch beam"]) -> None:
        grid = torch.tensor(GRID, dtype=log_prob.dtype, device=log_prob.device)
        each = departures(log_prob, grid).where(open_[..., None], 0)
        mean = each.sum(1) / open_.sum(1, keepdim=True).clamp(min=1)
        self.curve = self.curve + mean if hasattr(self, "curve") else mean

    @property
    def p(self) -> Float[Tensor, " batch"]:
        """Where the curve reaches what is wanted; 1 where it does not even without a nucleus."""
        grid = torch.tensor(GRID, dtype=self.curve.dtype, device=self.curve.device)
        curve = self.curve.cummax(1).values  # ascending, but for rounding
        upper = torch.searchsorted(curve, self.wanted[:, None]).clamp(1, len(GRID) - 1)
        low, high = curve.gather(1, upper - 1), curve.gather(1, upper)
        share = ((self.wanted[:, None] - low) / (high - low).clamp(min=1e-12)).clamp(0, 1)
        return torch.lerp(grid[upper - 1], grid[upper], share).squeeze(1)

    def see(self, result: Round) -> None:
        """Departs more often where a round found nothing better."""
        best = result.objective.amax(1)
        if self.rounds == 0:
            self.wanted, self.best = torch.full_like(best, DEPARTURES), best
        else:
            self.wanted = torch.where(best > self.best, self.wanted, GROWTH * self.wanted)
            self.best = torch.maximum(self.best, best)
        self.rounds += 1


@dataclass
class AutoStep:
    """Standardised advantages: divided by the standard deviation of the objectives, pooled over the rounds so far.

    As rounds agree more and more, advantages shrink beside the spread of the first ones, and so do the steps.
    """

    variance: Float[Tensor, " batch"] = field(init=False)
    rounds: int = 0

    def see(self, result: Round) -> None:
        count = result.filled.sum(1).clamp(min=1)
        value = result.objective.where(result.filled, 0)
        mean = value.sum(1, keepdim=True) / count[:, None]
        own = (value - mean).where(result.filled, 0).square().sum(1) / count
        self.rounds += 1
        self.variance = own if self.rounds == 1 else self.variance + (own - self.variance) / self.rounds

    def shift(self, result: Round, advantage: AdvantageFn) -> Tensor:
        """What is added to the logits along each path."""
        scale = self.variance.sqrt()
        return advantage(result) * (STEP / scale.where(scale > 0, 1))[:, None]
