"""The paper's network for the job shop (appendix "Job Shop Scheduling Problem", "Policy Network")."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding

from gumbeldore.errors import ContractError
from gumbeldore.networks import native, segments
from gumbeldore.networks.layers import Block, Stack, fold_all, token_bytes
from gumbeldore.networks.pointer import Pointer, segment_losses
from gumbeldore.networks.positions import sinusoids
from gumbeldore.networks.segments import Layout, find_starts
from gumbeldore.policy import Network
from gumbeldore.problems.jssp.active import active_jobs, active_order
from gumbeldore.problems.jssp.bounds import BOUNDS, bound_features, earliest_start
from gumbeldore.problems.jssp.problem import JSSPState

NEVER = -100.0
"""The logit of a job that must not come next in an active schedule. Its chance, 1e-44, is none, but a sampler that asks for all schedules
gets them all."""


class Prepared(NamedTuple):
    """What does not change during a search."""

    times: Float[Tensor, " all_operations"]  # p / 100, of all instances
    machines: Int[Tensor, " all_operations"]
    positions: Float[Tensor, "position d"]  # sinusoidal encodings
    slopes: list[Float[Tensor, " head"] | None]  # ALiBi's, of job-wise blocks
    blocks: list[native.Block] | None  # None where the compiled code cannot run them


class Operations(NamedTuple):
    """The unscheduled operations of all rows, job by job, and who attends to whom in the network's blocks."""

    operation: Int[Tensor, " token"]  # among all operations of all instances
    row_job: Int[Tensor, " token"]  # row * J + job
    step: Int[Tensor, " token"]  # the operation's index in its job
    unfinished: Int[Tensor, " unfinished"]  # row * J + job of all unfinished jobs
    layouts: list[Layout]  # of all blocks
    by_machine: Layout  # without the restriction of the last machine-wise block


class Choice(NamedTuple):
    """Some rows of a state, and the jobs that must not come next."""

    rows: Int[Tensor, " open"]
    excluded: Bool[Tensor, "row job"]

    def of(self, state: JSSPState) -> JSSPState:
        return state if len(self.rows) == state.row_count else state.rows(self.rows)

    def spread(self, values: Float[Tensor, "open *more"]) -> Float[Tensor, "row *more"]:
        """Those of all rows, 0 for the others."""
        if len(self.rows) == len(self.excluded):
            return values
        return values.new_zeros(len(self.excluded), *values.shape[1:]).index_copy(0, self.rows, values)

    def logits(self, values: Float[Tensor, "open job"]) -> Float[Tensor, "row job"]:
        return self.spread(values).masked_fill(self.excluded, NEVER)


class JSSPPolicy(Network):
    """Transformer over the unscheduled operations, alternately within jobs and within machines; one logit per unfinished job.

    The defaults are the paper's. The same weights serve any number of jobs and machines. Scheduled operations cost nothing;
    in the last machine-wise block only the jobs' next operations are queries, and only they are followed up. With `pointer=1` it
    has another head, for training only, by which every operation predicts the next one on its machine. With `bounds=1` it knows when
    operations can begin, what must follow them, and how critical they are (`bounds.py`). With `active=1` it builds active schedules only
    (`active.py`), and where they leave no choice, nothing is computed.
    """

    addable = ("pointer", "bounds")

    def __init__(
        self, d: int = 64, pairs: int = 3, heads: int = 8, ff: int = 256, pointer: int = 0, bounds: int = 0, active: int = 0
    ) -> None:
        super().__init__()
        sizes = {"d": d, "pairs": pairs, "heads": heads, "ff": ff}
        self.config = {**sizes, "pointer": pointer, "bounds": bounds, "active": active}
        self.operation_embedding = nn.Linear(2, d)
        self.encoder = Stack(Block(d, heads, ff) for _ in range(2 * pairs))  # job-wise, machine-wise, job-wise, ...
        self.final_trf_block = Block(d, heads, ff)
        self.policy_linear_out = nn.Linear(d, 1)
        self.pointer = Pointer(d) if pointer else None
        self.bound_embedding = zeros(nn.Linear(BOUNDS, d, bias=False)) if bounds else None

    @property
    def blocks(self) -> list[Block]:
        return [*self.encoder.blocks, self.final_trf_block]

    def as_built(self, state: JSSPState, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
        return active_order(state, actions) if self.config["active"] else actions

    def prepare(self, state: JSSPState) -> Prepared | None:
        """Folds the weights once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self._prepare(state)

    def _prepare(self, state: JSSPState) -> Prepared:
        heads, like = self.config["heads"], self.policy_linear_out.weight
        alibi = 2.0 ** (-8 * torch.arange(1, heads + 1, device=like.device, dtype=like.dtype) / heads)
        slopes = [alibi if index % 2 == 0 and index < len(self.encoder) else None for index in range(len(self.blocks))]
        return Prepared(
            times=state.times.flatten().to(like.dtype) / 100,
            machines=state.machines.flatten(),
            positions=sinusoids(state.operations, like),
            slopes=slopes,
            blocks=fold_all(self.blocks, slopes),
        )

    def forward(self, state: JSSPState, context: Prepared | None = None) -> Float[Tensor, "row job"]:
        """Logits of the unfinished jobs, and zeros."""
        prepared = self._prepare(state) if context is None else context
        choice = self._choice(state)
        if len(choice.rows) == 0:
            return choice.logits(prepared.times.new_zeros(0, state.jobs))
        some = choice.of(state)
        operations = unscheduled(some, prepared, len(self.encoder))
        x = self._run(self._embed(some, prepared, operations), prepared, operations.layouts)
        return choice.logits(self._logits(x, some, operations))

    def taught(
        self, state: JSSPState, successor: Int[Tensor, "row operation"]
    ) -> tuple[Float[Tensor, "row job"], Float[Tensor, " row"]]:
        if self.pointer is None:
            raise ContractError(
                "`successor_weight` must be 0 for a JSSPPolicy without the head for it, or build one with `pointer=1`."
            )
        prepared, choice = self._prepare(state), self._choice(state)
        if len(choice.rows) == 0:
            return self(state), prepared.times.new_zeros(state.row_count)
        some = choice.of(state)
        operations = unscheduled(some, prepared, len(self.encoder))
        by_job, by_machine, layouts = operations.layouts[0], operations.by_machine, operations.layouts
        x = self._run(self._embed(some, prepared, operations), prepared, [*layouts[:-2], by_machine])
        following = target_tokens(some, operations, successor[choice.rows])
        losses = segment_losses(self.pointer, x, by_machine, following).view(some.row_count, -1).mean(1)
        logits = self._logits(self._run(x[by_job.starts[:-1]], prepared, layouts[-1:]), some, operations)
        return choice.logits(logits), choice.spread(losses)

    def _choice(self, state: JSSPState) -> Choice:
        """Rows that have to be computed: those with something to choose."""
        allowed = active_jobs(state) if self.config["active"] else state.unfinished
        least = 2 if self.config["active"] else 1
        return Choice((allowed.sum(1) >= least).nonzero().squeeze(1), state.unfinished & ~allowed)

    def _run(self, x: Float[Tensor, "token d"], prepared: Prepared, layouts: list[Layout]) -> Float[Tensor, "output d"]:
        """As many blocks as there are layouts: the first ones, or the last one."""
        some = slice(len(layouts)) if len(layouts) > 1 else slice(-1, None)
        if prepared.blocks is None:
            return segments.run(x, self.blocks[some], prepared.slopes[some], layouts)
        return native.run(x, prepared.blocks[some], layouts)

    def _logits(self, x: Float[Tensor, "unfinished d"], state: JSSPState, operations: Operations) -> Float[Tensor, "row job"]:
        logits = self.policy_linear_out(x).squeeze(1)
        zeros = logits.new_zeros(state.scheduled.numel())
        return zeros.index_copy(0, operations.unfinished, logits).view_as(state.scheduled)

    def _embed(self, state: JSSPState, prepared: Prepared, operations: Operations) -> Float[Tensor, "token d"]:
        values = features(state, prepared, operations.operation, operations.row_job)
        places = embedding(operations.step, prepared.positions + self.operation_embedding.bias)
        x = torch.addmm(places, values, self.operation_embedding.weight.t())
        if self.bound_embedding is None:
            return x
        known = bound_features(state, values.dtype).flatten(0, 2)
        return x + self.bound_embedding(known.index_select(0, operations.row_job * state.operations + operations.step))

    def row_bytes(self, state: JSSPState) -> int:
        """Working memory of one row: its operations, and some indices for each."""
        tokens = int((state.operations - state.scheduled[:1]).sum())
        return tokens * (token_bytes(self.blocks, max(state.jobs, state.operations)) + 80)


def features(
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


def target_tokens(state: JSSPState, operations: Operations, successor: Int[Tensor, "row operation"]) -> Int[Tensor, " token"]:
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
