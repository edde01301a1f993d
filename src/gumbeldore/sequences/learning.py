"""Sequence models that learn from their own best samples: Algorithm 1 through `self_improve`.

network = GRU(tokens=5)                                      # a `SequenceNetwork`
problem = Sequences(vocabulary=5, max_length=20, end=(0,), score=score)
for epoch in self_improve(problem, network, Gumbeldore(32, 4, sigma="auto"), validation=problem.start([()]), settings=settings):
    ...
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gumbeldore.policy import Network
from gumbeldore.problem import Examples
from gumbeldore.sequences.models import STATES, StatefulPolicy, Walk
from gumbeldore.sequences.problem import NOTHING, SequenceState


class SequenceNetwork(Network):
    """A network over sequences. Subclasses define `logits`, and `start` and `step` if a search shall reuse their states (`models.py`).

    It learns all tokens of a solution in one pass: `every_token` weighs the others beside the one that an example is about.
    """

    every_token: float = 1.0

    def logits(self, tokens: Int[Tensor, "row place"]) -> Float[Tensor, "row prefix token"]:
        """Of the next token after each prefix, the empty one first and whole sequences last: one more than there are places."""
        raise NotImplementedError(f"`{type(self).__name__}` needs a method `logits`.")

    def prepare(self, state: SequenceState) -> Walk | None:
        """The states of a search; none where gradients are wanted."""
        if torch.is_grad_enabled() or not hasattr(self, "step"):
            return None
        model: Any = self
        return StatefulPolicy(model, STATES).prepare(state)

    def __call__(self, state: SequenceState, context: Walk | None) -> Float[Tensor, "row token"]:
        if context is not None:
            return context(state)
        parts = [(rows, self.logits(prefixes)[:, -1]) for rows, prefixes in state.prefixes()]
        if len(parts) == 1:
            return parts[0][1]
        order = torch.cat([rows for rows, _ in parts]).argsort()
        return torch.cat([logits for _, logits in parts]).index_select(0, order)

    def loss(self, examples: Examples[SequenceState]) -> tuple[Float[Tensor, "row token"], Float[Tensor, " row"] | None]:
        """The logits of the wanted token, and the mean negative log-probability of all tokens of the solution."""
        state, tokens = examples.state, examples.successor
        if tokens is None or self.every_token == 0:
            return super().loss(examples)
        sizes = (state.prompt != NOTHING).sum(1)[state.instance]
        wanted: list[Tensor] = []
        others: list[Tensor] = []
        order: list[Tensor] = []
        for size in sizes.unique().tolist():
            rows = (sizes == size).nonzero().squeeze(1)
            prompt = state.prompt[state.instance[rows], state.prompt.shape[1] - size :]
            logits = self.logits(torch.cat([prompt, tokens[rows].clamp(min=0)], 1))[:, size:-1]
            real = tokens[rows] >= 0
            each = nn.functional.cross_entropy(logits.transpose(1, 2), tokens[rows].clamp(min=0), reduction="none")
            wanted.append(logits[torch.arange(len(rows)), state.length[rows]])
            others.append((each * real).sum(1) / real.sum(1).clamp(min=1))
            order.append(rows)
        back = torch.cat(order).argsort()
        return torch.cat(wanted)[back], self.every_token * torch.cat(others)[back]
