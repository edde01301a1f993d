"""The paper's network for the job shop (appendix "Job Shop Scheduling Problem", "Policy Network")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding

from gumbeldore.errors import require
from gumbeldore.networks.alternating import Alternating
from gumbeldore.networks.features import ComposedNetwork, distinct, written
from gumbeldore.networks.layers import Block, Stack, token_bytes
from gumbeldore.networks.positions import sinusoids
from gumbeldore.networks.segments import Layout, find_starts
from gumbeldore.networks.successors import SuccessorHead, segment_losses
from gumbeldore.problem import Examples
from gumbeldore.problems.jssp.active import ActiveSchedules
from gumbeldore.problems.jssp.bounds import ScheduleBounds, earliest_start
from gumbeldore.problems.jssp.problem import JSSPState

_ACTIONS: dict[str, ActiveSchedules | None] = {"all": None, "active": ActiveSchedules()}
"""Which jobs may come next, by the names in settings and headers."""
_USUAL_WEIGHT = 0.5
"""Of the auxiliary loss, where a file does not say."""


class Prepared(NamedTuple):
    """What does not change during a search."""

    times: Float[Tensor, " all_operations"]  # p / 100, of all instances
    machines: Int[Tensor, " all_operations"]
    positions: Float[Tensor, "position d"]  # sinusoidal encodings
    blocks: Alternating  # job-wise, machine-wise, ...


class Operations(NamedTuple):
    """The unscheduled operations of all rows, job by job, and who attends to whom in the network's blocks."""

    operation: Int[Tensor, " token"]  # among all operations of all instances
    row_job: Int[Tensor, " token"]  # row * J + job
    step: Int[Tensor, " token"]  # the operation's index in its job
    unfinished: Int[Tensor, " unfinished"]  # row * J + job of all unfinished jobs
    layouts: list[Layout]  # of all blocks
    by_machine: Layout  # without the restriction of the last machine-wise block


class JSSPPolicy(ComposedNetwork):
    """Transformer over the unscheduled operations, alternately within jobs and within machines; one logit per unfinished job.

    The defaults are the paper's. The same weights serve any number of jobs and machines. Scheduled operations cost nothing;
    in the last machine-wise block only the jobs' next operations are queries, and only they are followed up. With
    `actions=ActiveSchedules()` it builds active schedules only. With a `successor_weight` it has another head, for training only, by which
    every operation predicts the next one on its machine (the auxiliary successor loss).
    """

    known = (ScheduleBounds,)
    switches = {"bounds": "bounds"}  # noqa: RUF012
    renamed = {"pointer": "successor_head", "bound_embedding": "feature_embedding"}  # noqa: RUF012

    def __init__(
        self,
        d: int = 64,
        pairs: int = 3,
        heads: int = 8,
        ff: int = 256,
        features: Sequence[ScheduleBounds] = (),
        actions: ActiveSchedules | None = None,
        successor_weight: float = 0.0,
    ) -> None:
        super().__init__()
        require(0 <= successor_weight < math.inf, f"`successor_weight` must be a number from 0 on, got {successor_weight}.")
        space = next(name for name, each in _ACTIONS.items() if each == actions)
        sizes = {"d": d, "pairs": pairs, "heads": heads, "ff": ff}
        self.config = {**sizes, "features": written(features), "actions": space, "successor_weight": successor_weight}
        self.features, self.actions, self.successor_weight = distinct(features), actions, successor_weight
        self.operation_embedding = nn.Linear(2, d)
        self.encoder = Stack(Block(d, heads, ff) for _ in range(2 * pairs))  # job-wise, machine-wise, job-wise, ...
        self.final_trf_block = Block(d, heads, ff)
        self.policy_linear_out = nn.Linear(d, 1)
        self.successor_head = SuccessorHead(d) if successor_weight else None
        width = sum(feature.width for feature in features)
        self.feature_embedding = zeros(nn.Linear(width, d, bias=False)) if features else None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        named = config.get("actions", "all")
        require(named in _ACTIONS, f"`actions` must be one of {', '.join(_ACTIONS)}, got {named!r}.")
        return super().from_config({**config, "actions": _ACTIONS[named]})

    @classmethod
    def upgraded(cls, config: Mapping[str, Any], usual: Sequence[str] = ()) -> dict[str, Any]:
        """Whether there was a head for successors, was a switch of its own; `training.successor_weight` said how much it counted."""
        now = super().upgraded(config, usual)
        active, head = now.pop("active", None), now.pop("pointer", None)
        if active is not None:
            now.setdefault("actions", "active" if active else "all")
        if head is not None:
            now.setdefault("successor_weight", _USUAL_WEIGHT if head else 0.0)
        return now

    def goes_on_from(self, config: Mapping[str, Any]) -> bool:
        """What bounds and the head for successors add is nothing before they are trained."""
        theirs = {name: value for name, value in config.items() if name not in ("features", "successor_weight")}
        same = all(self.config[name] == value for name, value in theirs.items())
        head = bool(self.successor_weight) or not config["successor_weight"]
        return same and head and config["features"] in ([], self.config["features"])

    def mask(self, state: JSSPState) -> Bool[Tensor, "row job"] | None:
        return None if self.actions is None else self.actions.mask(state)

    @property
    def blocks(self) -> list[Block]:
        return [*self.encoder.blocks, self.final_trf_block]

    def as_built(self, state: JSSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
        return actions if self.actions is None else self.actions.ordered(state, actions)

    def prepare(self, state: JSSPState) -> Prepared | None:
        """Folds the weights once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self._prepare(state)

    def _prepare(self, state: JSSPState) -> Prepared:
        like = self.policy_linear_out.weight
        return Prepared(
            times=state.times.flatten().to(like.dtype) / 100,
            machines=state.machines.flatten(),
            positions=sinusoids(state.operations, like),
            blocks=Alternating.of(self.blocks, self.config["heads"], like),
        )

    def forward(self, state: JSSPState, context: Prepared | None = None) -> Float[Tensor, "row job"]:
        """Logits of the unfinished jobs, and zeros."""
        prepared = self._prepare(state) if context is None else context
        operations = unscheduled(state, prepared, len(self.encoder))
        x = prepared.blocks(self._embed(state, prepared, operations), operations.layouts)
        return self._logits(x, state, operations)

    def loss(self, examples: Examples[JSSPState]) -> tuple[Float[Tensor, "row job"], Float[Tensor, " row"] | None]:
        if self.successor_head is None:
            return super().loss(examples)
        state, successor = examples.state, examples.successor
        require(successor is not None, "`successor_weight` must be 0 for labels of instances that have begun already.")
        assert successor is not None
        prepared = self._prepare(state)
        operations = unscheduled(state, prepared, len(self.encoder))
        by_job, by_machine, layouts = operations.layouts[0], operations.by_machine, operations.layouts
        x = prepared.blocks(self._embed(state, prepared, operations), [*layouts[:-2], by_machine])
        losses = segment_losses(self.successor_head, x, by_machine, _target_tokens(state, operations, successor))
        logits = self._logits(prepared.blocks(x[by_job.starts[:-1]], layouts[-1:]), state, operations)
        return logits, self.successor_weight * losses.view(state.row_count, -1).mean(1)

    def _logits(self, x: Float[Tensor, "unfinished d"], state: JSSPState, operations: Operations) -> Float[Tensor, "row job"]:
        logits = self.policy_linear_out(x).squeeze(1)
        zeros = logits.new_zeros(state.scheduled.numel())
        return zeros.index_copy(0, operations.unfinished, logits).view_as(state.scheduled)

    def _embed(self, state: JSSPState, prepared: Prepared, operations: Operations) -> Float[Tensor, "token d"]:
        values = _inputs(state, prepared, operations.operation, operations.row_job)
        places = embedding(operations.step, prepared.positions + self.operation_embedding.bias)
        x = torch.addmm(places, values, self.operation_embedding.weight.t())
        if self.feature_embedding is None:
            return x
        known = torch.cat([feature.columns(state, values.dtype) for feature in self.features], -1).flatten(0, 2)
        return x + self.feature_embedding(known.index_select(0, operations.row_job * state.operations + operations.step))

    def row_bytes(self, state: JSSPState) -> int:
        """Working memory of one row: its operations, and some indices for each."""
        tokens = int((state.operations - state.scheduled[:1]).sum())
        return tokens * (token_bytes(self.blocks, max(state.jobs, state.operations)) + 80)


def _inputs(
    state: JSSPState, prepared: Prepared, operation: Int[Tensor, " token"], row_job: Int[Tensor, " token"]
) -> Float[Tensor, "token 2"]:
    """The network's input, per operation: its time, and how long after the first unfinished job its own one could start.

    Both are divided by 100. `operation` and `row_job` say which operations, and which jobs they belong to.
    """
    starts = state.next_starts()
    behind = starts - earliest_start(state, starts)
    behind = (behind.to(prepared.times.dtype) / 100).flatten()
    return torch.stack([prepared.times.index_select(0, operation), behind.index_select(0, row_job)], 1)


def unscheduled(state: JSSPState, prepared: Prepared, blocks: int) -> Operations:
    """Lists the unscheduled operations, and who attends to whom: by job and by machine in turn for that many blocks and a last one."""
    rows, jobs, count = state.row_count, state.jobs, state.operations
    remaining = torch.arange(count, device=state.device) >= state.scheduled[:, :, None]
    token = remaining.flatten().nonzero().squeeze(1)
    row_job, step = token // count, token % count
    row = row_job // jobs
    operation = token + (state.instance.index_select(0, row) - row) * (jobs * count)
    unfinished = state.unfinished.flatten().nonzero().squeeze(1)
    by_job = Layout(
        starts=find_starts((count - state.scheduled.flatten()).index_select(0, unfinished)),
        positions=(step - (count - 1)).to(prepared.times.dtype),  # from the end of the job, so that no exponential overflows
    )
    row_machine = row * count + prepared.machines.index_select(0, operation)
    by_machine = Layout(find_starts(row_machine.bincount(minlength=rows * count)), row_machine.argsort(stable=True).int())

    following = by_job.starts[:-1]
    of_following = row_machine.index_select(0, following)
    order = of_following.argsort(stable=True)
    last = replace(
        by_machine,
        query_starts=find_starts(of_following.bincount(minlength=rows * count)),
        query_tokens=following.index_select(0, order),
        query_rows=order.int(),
    )
    final = Layout(find_starts(state.unfinished.sum(1)))
    layouts = [*[by_job, by_machine] * (blocks // 2 - 1), by_job, last, final]
    return Operations(operation, row_job, step, unfinished, layouts, by_machine)


def _target_tokens(state: JSSPState, operations: Operations, successor: Int[Tensor, "row operation"]) -> Int[Tensor, " token"]:
    """The token that follows each token on its machine, -1 where none does."""
    own = operations.row_job * state.operations + operations.step  # among the operations of all rows
    token = torch.full((successor.numel(),), -1, device=own.device).index_copy_(
        0, own, torch.arange(len(own), device=own.device)
    )
    target = successor.flatten()[own]
    first = own - own % successor.shape[1]
    return token[(first + target).clamp(min=0)].where(target >= 0, -1)


def zeros(layer: nn.Linear) -> nn.Linear:
    """A layer that says nothing at first, so that a network that learnt without it can go on with it."""
    nn.init.zeros_(layer.weight)
    return layer
