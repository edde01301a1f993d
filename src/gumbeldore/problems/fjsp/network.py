"""A network for flexible job shops: the job shop's, whose tokens are pairs of an operation and a machine that can do it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding

from gumbeldore.errors import require
from gumbeldore.networks.alternating import Alternating
from gumbeldore.networks.layers import Block, Stack, token_bytes
from gumbeldore.networks.positions import sinusoids
from gumbeldore.networks.segments import Layout, find_starts
from gumbeldore.policy import Network
from gumbeldore.problem import Examples
from gumbeldore.problems.fjsp.active import EarlyStarts
from gumbeldore.problems.fjsp.bounds import FEATURES, features
from gumbeldore.problems.fjsp.problem import FJSPState

_ACTIONS: dict[str, EarlyStarts | None] = {"all": None, "active": EarlyStarts()}
"""Which pairs may come next, by the names in settings and headers."""


class Prepared(NamedTuple):
    """What does not change during a search."""

    positions: Float[Tensor, "position d"]  # sinusoidal encodings
    blocks: Alternating  # job-wise, machine-wise, ...


class Tokens(NamedTuple):
    """The unscheduled operations of all rows on each of their machines, job by job, and who attends to whom in the network's blocks."""

    place: Int[Tensor, " token"]  # among all of a dense table: row, job, operation, machine
    step: Int[Tensor, " token"]  # the operation's index in its job
    operation: Int[Tensor, " token"]  # (row * J + job) * O + step
    asked: Int[Tensor, " candidate"]  # the tokens to choose from
    candidates: Int[Tensor, " candidate"]  # row * J * M + action of these
    layouts: list[Layout]  # of all blocks
    by_machine: Layout  # without the restriction of the last machine-wise block


class FJSPPolicy(Network):
    """Transformer over pairs of an unscheduled operation and a machine that can do it, alternately within jobs and within machines.

    One logit for each pair that may come next. The same weights serve any number of jobs, operations and machines. In the last machine-wise
    block only these pairs are queries, and only they are followed up. With `actions=EarlyStarts()` only schedules are built in which every
    operation begins before any other could have ended. With an `assignment_weight` it has another head, for training only, by which every
    operation predicts its machine.
    """

    def __init__(
        self,
        d: int = 64,
        pairs: int = 3,
        heads: int = 8,
        ff: int = 256,
        actions: EarlyStarts | None = None,
        assignment_weight: float = 0.0,
    ) -> None:
        super().__init__()
        require(0 <= assignment_weight < math.inf, f"`assignment_weight` must be a number from 0 on, got {assignment_weight}.")
        space = next(name for name, each in _ACTIONS.items() if each == actions)
        self.config = {
            "d": d,
            "pairs": pairs,
            "heads": heads,
            "ff": ff,
            "actions": space,
            "assignment_weight": assignment_weight,
        }
        self.actions, self.assignment_weight = actions, assignment_weight
        self.embedding = nn.Linear(FEATURES, d)
        self.encoder = Stack(Block(d, heads, ff) for _ in range(2 * pairs))  # job-wise, machine-wise, job-wise, ...
        self.last = Block(d, heads, ff)
        self.logit = nn.Linear(d, 1)
        self.assignment = nn.Linear(d, 1) if assignment_weight else None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        named = config.get("actions", "all")
        require(named in _ACTIONS, f"`actions` must be one of {', '.join(_ACTIONS)}, got {named!r}.")
        return cls(**{**config, "actions": _ACTIONS[named]})

    def goes_on_from(self, config: Mapping[str, Any]) -> bool:
        """What the head for machines adds is nothing before it is trained."""
        same = all(self.config[name] == value for name, value in config.items() if name != "assignment_weight")
        return same and (bool(self.assignment_weight) or not config["assignment_weight"])

    def mask(self, state: FJSPState) -> Bool[Tensor, "row action"] | None:
        return None if self.actions is None else self.actions.mask(state)

    def as_built(self, state: FJSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
        return actions if self.actions is None else self.actions.ordered(state, actions)

    @property
    def blocks(self) -> list[Block]:
        return [*self.encoder.blocks, self.last]

    def prepare(self, state: FJSPState) -> Prepared | None:
        """Folds the weights once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self._prepare(state)

    def _prepare(self, state: FJSPState) -> Prepared:
        like = self.logit.weight
        return Prepared(sinusoids(state.operations, like), Alternating.of(self.blocks, self.config["heads"], like))

    def forward(self, state: FJSPState, context: Prepared | None = None) -> Float[Tensor, "row action"]:
        """Logits of the pairs to choose from, and zeros."""
        prepared = self._prepare(state) if context is None else context
        tokens = self._tokens(state)
        return self._logits(prepared.blocks(self._embed(state, prepared, tokens), tokens.layouts), state, tokens)

    def loss(self, examples: Examples[FJSPState]) -> tuple[Float[Tensor, "row action"], Float[Tensor, " row"] | None]:
        """The auxiliary loss: how badly the machines of unscheduled operations are predicted (the examples' `successor`)."""
        if self.assignment is None:
            return super().loss(examples)
        state, machines = examples.state, examples.successor
        require(machines is not None, "`assignment_weight` must be 0 for labels of instances that have begun already.")
        assert machines is not None
        prepared, tokens = self._prepare(state), self._tokens(state)
        x = prepared.blocks(self._embed(state, prepared, tokens), [*tokens.layouts[:-2], tokens.by_machine])
        chosen = prepared.blocks(x[tokens.asked], tokens.layouts[-1:])
        losses = self._assignment_losses(x, state, tokens, machines)
        return self._logits(chosen, state, tokens), self.assignment_weight * losses

    def _tokens(self, state: FJSPState) -> Tokens:
        space = self.mask(state)
        return _unscheduled(
            state, state.next_times() >= 0 if space is None else space.view(-1, state.jobs, state.machines), len(self.encoder)
        )

    def _logits(self, x: Float[Tensor, "candidate d"], state: FJSPState, tokens: Tokens) -> Float[Tensor, "row action"]:
        logits = self.logit(x).squeeze(1)
        zeros = logits.new_zeros(state.row_count * state.jobs * state.machines)
        return zeros.index_copy(0, tokens.candidates, logits).view(state.row_count, -1)

    def _embed(self, state: FJSPState, prepared: Prepared, tokens: Tokens) -> Float[Tensor, "token d"]:
        values = features(state, self.logit.weight.dtype).view(-1, FEATURES).index_select(0, tokens.place)
        places = embedding(tokens.step, prepared.positions + self.embedding.bias)
        return torch.addmm(places, values, self.embedding.weight.t())

    def _assignment_losses(
        self, x: Float[Tensor, "token d"], state: FJSPState, tokens: Tokens, machines: Int[Tensor, "row operation"]
    ) -> Float[Tensor, " row"]:
        """The mean negative log-probability of the machines of operations that have several, among their own; 0 if there are none."""
        assert self.assignment is not None
        score = self.assignment(x).squeeze(1)
        several = tokens.operation.bincount(minlength=machines.numel()) > 1
        highest = (
            score.new_zeros(machines.numel()).scatter_reduce(0, tokens.operation, score, "amax", include_self=False).detach()
        )
        sums = torch.zeros_like(highest).index_add(0, tokens.operation, (score - highest[tokens.operation]).exp())
        chosen = (tokens.place % state.machines == machines.flatten()[tokens.operation]) & several[tokens.operation]
        of = tokens.operation[chosen]
        loss = sums[of].log() + highest[of] - score[chosen]
        row = of // machines.shape[1]
        total = score.new_zeros(len(machines)).index_add(0, row, loss)
        return total / row.bincount(minlength=len(machines)).clamp(min=1)

    def row_bytes(self, state: FJSPState) -> int:
        """Working memory of one row: its pairs, their features, and some indices for each."""
        tokens = int((state.times[state.instance[:1]] >= 0).sum())
        dense = state.times[0].numel() * 4 * (FEATURES + 8)
        return dense + tokens * (token_bytes(self.blocks, state.jobs * state.operations) + 80)


def _unscheduled(state: FJSPState, allowed: Bool[Tensor, "row job machine"], blocks: int) -> Tokens:
    """Lists the pairs of an unscheduled operation and a machine, and who attends to whom: by job and by machine in turn, and at last those
    to choose from."""
    rows, jobs, count, machines = state.row_count, state.jobs, state.operations, state.machines
    left = torch.arange(count, device=state.device) >= state.scheduled[:, :, None]
    able = (state.times[state.instance] >= 0) & left[..., None]
    place = able.flatten().nonzero().squeeze(1)
    operation, machine = place // machines, place % machines
    row_job, step = operation // count, operation % count
    ends = state.counts[state.instance].flatten()[row_job]
    per_job = able.sum((2, 3)).flatten()
    by_job = Layout(
        starts=find_starts(per_job[per_job > 0]),
        positions=(step - (ends - 1)).float(),  # from the end of the job, so that no exponential overflows
    )
    row_machine = row_job // jobs * machines + machine
    by_machine = Layout(find_starts(row_machine.bincount(minlength=rows * machines)), row_machine.argsort(stable=True).int())

    pair = row_job * machines + machine
    asked = (allowed.flatten()[pair] & (step == state.scheduled.flatten()[row_job])).nonzero().squeeze(1)
    of_asked = row_machine.index_select(0, asked)
    order = of_asked.argsort(stable=True)
    last = replace(
        by_machine,
        query_starts=find_starts(of_asked.bincount(minlength=rows * machines)),
        query_tokens=asked.index_select(0, order).int(),
        query_rows=order.int(),
    )
    final = Layout(find_starts((row_job[asked] // jobs).bincount(minlength=rows)))
    layouts = [*[by_job, by_machine] * (blocks // 2 - 1), by_job, last, final]
    return Tokens(place, step, operation, asked, pair[asked], layouts, by_machine)
