"""A policy for items in sequences, of which the next one of some sequence is taken: jobs of operations, routes that are planned, stacks.

class ShopPolicy(SequencePolicy):
    step_features = 2

    def features(self, state):
        operation = torch.arange(state.operations)
        values = torch.stack([state.times[state.instance], ...], -1)                  # row job operation feature
        return SequenceFeatures(values, operation >= state.scheduled[:, :, None], groups=state.machines[state.instance])
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from gumbeldore.networks.alternating import Alternating
from gumbeldore.networks.layers import Block, Stack, token_bytes
from gumbeldore.networks.segments import Layout, find_starts
from gumbeldore.networks.set_transformer import check_width
from gumbeldore.policy import Network


class SequenceFeatures(NamedTuple):
    """What a network sees of each row."""

    steps: Float[Tensor, "row sequence step feature"]
    present: Bool[
        Tensor, "row sequence step"
    ]  # the steps that are still to come: of each sequence the first one of them is next
    groups: Int[Tensor, "row sequence step"] | None = None  # what steps share (a machine), from 0; None: all are one group
    whole: Float[Tensor, "row whole"] | None = None  # about the row as a whole


class Arranged(NamedTuple):
    """The steps that are present, sequence by sequence, and who attends to whom."""

    token: Int[Tensor, " token"]  # which of all steps
    going: Int[Tensor, " going"]  # which of all sequences have a step left
    by_sequence: Layout
    by_group: Layout
    next_ones: Layout  # of each row


class SequencePolicy(Network):
    """A transformer over the steps that are present: alternately within sequences, where it knows their order, and within groups; then among
    the next steps of all sequences. One logit per sequence.

    All of it are compiled blocks. Sequences have no order: what a permutation of them changes is the same permutation of the logits.
    """

    step_features: ClassVar[int]
    whole_features: ClassVar[int] = 0

    def __init__(self, d: int = 64, layers: int = 2, heads: int = 4, ff: int = 256) -> None:
        super().__init__()
        self.config = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        self.step_embedding = nn.Linear(self.step_features + self.whole_features, d)
        self.blocks = Stack(Block(d, heads, ff) for _ in range(2 * layers + 1))  # by sequence, by group, ...; the next ones
        self.logit = nn.Linear(d, 1)

    @abstractmethod
    def features(self, state: Any) -> SequenceFeatures:
        """The features of every row of a state, about as large as 1."""

    def prepare(self, state: Any) -> Alternating | None:
        """Folds the blocks once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self._alternating()

    def _alternating(self) -> Alternating:
        return Alternating.of(self.blocks.blocks, self.config["heads"], self.logit.weight)

    def forward(self, state: Any, context: Alternating | None = None) -> Float[Tensor, "row sequence"]:
        seen = self.features(state)
        check_width(self, "step_features", seen.steps.shape[3])
        check_width(self, "whole_features", 0 if seen.whole is None else seen.whole.shape[1])
        rows, sequences, steps = seen.present.shape
        arranged = _arrange(seen.present, seen.groups)
        values = seen.steps.flatten(0, 2).index_select(0, arranged.token)
        if seen.whole is not None:
            values = torch.cat([values, seen.whole.index_select(0, arranged.token // (sequences * steps))], 1)
        x = self.step_embedding(values.to(self.logit.weight.dtype))
        layouts = [arranged.by_sequence, arranged.by_group] * self.config["layers"]
        blocks = self._alternating() if context is None else context
        x = blocks(x, layouts).index_select(0, arranged.by_sequence.starts[:-1].long())
        logits = self.logit(blocks(x, [arranged.next_ones])).squeeze(1)
        return logits.new_zeros(rows * sequences).index_copy(0, arranged.going, logits).view(rows, sequences)

    def row_bytes(self, state: Any) -> int:
        """Working memory of one row."""
        present = self.features(state.rows(slice(0, 1))).present
        return int(present.sum()) * (token_bytes(self.blocks.blocks, int(present.sum())) + 80)


def _arrange(present: Bool[Tensor, "row sequence step"], groups: Int[Tensor, "row sequence step"] | None) -> Arranged:
    """Lists the steps that are present. Positions count from the end of a sequence, so that what is left looks alike however much is gone."""
    _, sequences, steps = present.shape
    token = present.flatten().nonzero().squeeze(1)
    counts = present.sum(2).flatten()
    going = counts.nonzero().squeeze(1)
    by_sequence = Layout(find_starts(counts.index_select(0, going)), positions=(token % steps - (steps - 1)).float())
    row = token // (sequences * steps)
    group = row if groups is None else row * (1 + int(groups.max())) + groups.flatten().index_select(0, token)
    by_group = Layout(find_starts(group.bincount()), group.argsort(stable=True).int())
    return Arranged(token, going, by_sequence, by_group, Layout(find_starts(present.any(2).sum(1))))
