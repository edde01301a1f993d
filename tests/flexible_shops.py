"""Flexible job shops for tests: random schedules, and three published instances with their optima."""

from __future__ import annotations

import torch
from torch import Tensor

PUBLISHED = {
    "fattahi1": ("2 2 2\n2 2 1 25 2 37 2 1 32 2 24\n2 2 1 45 2 65 2 1 21 2 65\n", 66),
    "fattahi2": ("2 2 1.5\n2 1 1 43 2 1 64 2 71\n2 2 1 21 2 35 1 2 43\n", 107),
    "fattahi3": ("3 2 1.7\n2 1 1 43 2 1 87 2 95\n2 2 1 63 2 53 1 2 73\n2 2 1 125 2 135 2 1 43 2 61\n", 221),
}
"""Of Fattahi, Mehrabad and Jolai (2007), and their optimal makespans."""


def random_actions(problem, state, generator: torch.Generator) -> Tensor:
    """Complete solutions of initial states, each action uniform among those that are allowed; padded with -1."""
    taken = []
    while not bool(problem.done(state).all()):
        done, mask = problem.done(state), problem.mask(state)
        action = torch.multinomial((mask | done[:, None]).double(), 1, generator=generator).squeeze(1)
        taken.append(action.where(~done, -1))
        state = problem.step(state, action)
    return torch.stack(taken, 1)
