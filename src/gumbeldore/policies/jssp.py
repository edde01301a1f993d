"""The paper's network for the job shop (appendix "Job Shop Scheduling Problem", "Policy Network")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from gumbeldore.policies.layers import Block, Stack
from gumbeldore.policies.packed import CONSTANTS, PackedBlock, add_product, pack_block
from gumbeldore.policies.segments import GROUP, Links, link_queries, link_segments
from gumbeldore.policy import Network
from gumbeldore.problems.jssp import JSSPState

PASS = 2048
"""Operations that go through the network together without gradients: more are not faster, for want of cache."""
KEPT = 32768
"""Operations up to which all is kept that gradients need (some 30 kB each). Beyond, passes of half as many are repeated."""


class Weights(NamedTuple):
    """The weights of the network, packed."""

    embedding: Float[Tensor, "feature d"]
    blocks: tuple[PackedBlock, ...]
    final: PackedBlock
    out: Float[Tensor, " d"]
    bias: Float[Tensor, " 1"]

    def tensors(self) -> list[Tensor]:
        return [self.embedding, self.out, self.bias, *(tensor for block in (*self.blocks, self.final) for tensor in block)]

    @classmethod
    def from_tensors(cls, tensors: Sequence[Tensor]) -> Weights:
        """The inverse of `tensors`."""
        embedding, out, bias, *rest = tensors
        size = len(PackedBlock._fields)
        *blocks, final = (PackedBlock(*rest[i : i + size]) for i in range(0, len(rest), size))
        return cls(embedding, tuple(blocks), final, out, bias)


class Prepared(NamedTuple):
    """What does not change during a search."""

    times: Float[Tensor, " all_operations"]  # p / 100, of all instances
    machines: Int[Tensor, " all_operations"]
    by_machine: Int[Tensor, "batch machine_job"]  # the place job * M + operation of each job's operation on each machine
    positions: Float[Tensor, "position width"]  # a token without features: sinusoidal encoding, one, position; the zero token
    weights: Weights


class Tokens(NamedTuple):
    """The unscheduled operations of all rows, ordered by row, job and operation: their features, and who attends to whom.

    They are followed by one that stands for nothing, with features 0 and step M, as are the next operations.
    """

    values: Float[Tensor, "token feature"]
    step: Int[Tensor, " token"]  # the operation's index in its job
    jobs: Links
    machines: Links
    unfinished: Int[Tensor, " unfinished"]  # row * J + job of all unfinished jobs
    next: Int[Tensor, " next"]  # the tokens of their next operations
    last: Links  # the next operations attending to all on their machine
    final: Links  # the next operations of a row among themselves


class JSSPPolicy(Network):
    """Transformer over the unscheduled operations, alternately within jobs and within machines; one logit per unfinished job.

    The defaults are the paper's. The same weights serve any number of jobs and machines. Scheduled operations cost nothing;
    after the last machine-wise attention only the jobs' next operations are followed up.
    """

    def __init__(self, d: int = 64, pairs: int = 3, heads: int = 8, ff: int = 256) -> None:
        super().__init__()
        self.config = {"d": d, "pairs": pairs, "heads": heads, "ff": ff}
        self.operation_embedding = nn.Linear(2, d)
        self.encoder = Stack(Block(d, heads, ff) for _ in range(2 * pairs))  # job-wise, machine-wise, job-wise, ...
        self.final_trf_block = Block(d, heads, ff)
        self.policy_linear_out = nn.Linear(d, 1)

    def prepare(self, state: JSSPState) -> Prepared | None:
        """Packs the weights and sorts the operations by machine once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self._prepare(state)

    def _prepare(self, state: JSSPState) -> Prepared:
        batch, jobs, operations = state.times.shape
        place = state.machines.argsort(2) + operations * torch.arange(jobs, device=state.device)[:, None]
        return Prepared(
            times=state.times.flatten().to(self.policy_linear_out.weight.dtype) / 100,
            machines=state.machines.flatten(),
            by_machine=place.transpose(1, 2).reshape(batch, operations * jobs),
            positions=positions(operations, self.policy_linear_out.weight),
            weights=self._pack(),
        )

    def _pack(self) -> Weights:
        heads, out = self.config["heads"], self.policy_linear_out
        slopes = 2.0 ** (-8 * torch.arange(1, heads + 1, device=out.weight.device) / heads)
        constant: Tensor = self.operation_embedding.bias
        blocks = []
        for index, block in enumerate([*self.encoder, self.final_trf_block]):
            job_wise = index % 2 == 0 and index < len(self.encoder)
            packed, constant = pack_block(block, constant, slopes if job_wise else None)
            blocks.append(packed)
        bias = out.bias + out.weight[0] @ constant
        return Weights(self.operation_embedding.weight.t(), tuple(blocks[:-1]), blocks[-1], out.weight[0], bias)

    def forward(self, state: JSSPState, context: Prepared | None = None) -> Float[Tensor, "row job"]:
        """Logits of the unfinished jobs, and zeros."""
        prepared = self._prepare(state) if context is None else context
        count = int((state.operations - state.scheduled).sum())
        kept = count <= KEPT
        limit = PASS if not torch.is_grad_enabled() else KEPT if kept else KEPT // 2
        size = max(1, state.row_count // -(-max(1, count) // limit))
        run = run_network if kept or not torch.is_grad_enabled() else run_twice
        index, values = [state.scheduled.new_empty(0)], [prepared.times.new_empty(0)]
        for start in range(0, state.row_count, size):
            rows = state.rows(slice(start, start + size))
            if bool(rows.unfinished.any()):
                tokens = unscheduled(rows, prepared, self.config["heads"])
                index.append(tokens.unfinished + start * state.jobs)
                values.append(run(tokens, prepared.weights, prepared.positions))
        logits = prepared.times.new_zeros(state.scheduled.numel()).scatter(0, torch.cat(index), torch.cat(values))
        return logits.view_as(state.scheduled)

    def row_bytes(self, state: JSSPState) -> int:
        """Working memory of one row in a search: residual stream, projections, attention weights, hidden layer, indices."""
        d, ff, heads = self.config["d"], self.config["ff"], self.config["heads"]
        tokens = int((state.operations - state.scheduled[:1]).sum())
        length = max(GROUP, state.jobs, state.operations)
        return 4 * tokens * (6 * d + ff + heads * (length + 16))


def run_network(tokens: Tokens, weights: Weights, positions: Float[Tensor, "position width"]) -> Float[Tensor, " unfinished"]:
    """The logits of the unfinished jobs."""
    x = embed(tokens, weights, positions)
    *blocks, last = weights.blocks
    for index, block in enumerate(blocks):
        x = block(x, tokens.machines if index % 2 else tokens.jobs)
    x = last(x, tokens.last, queries=x.index_select(0, tokens.next))
    x = weights.final(x, tokens.final)
    return torch.addmv(weights.bias, x[:-1, : len(weights.out)], weights.out)


def embed(tokens: Tokens, weights: Weights, positions: Float[Tensor, "position width"]) -> Float[Tensor, "token channel"]:
    """Embedded operations with positional encodings. The embedding's bias is left to the blocks."""
    if torch.is_grad_enabled():
        positions = positions[:, : weights.embedding.shape[1] + CONSTANTS]
    return add_product(positions.index_select(0, tokens.step), tokens.values, weights.embedding)


def features(
    state: JSSPState, prepared: Prepared, operation: Int[Tensor, " token"], row_job: Int[Tensor, " token"]
) -> Float[Tensor, "token 2"]:
    """The network's input, per operation: its time, and how long after the first unfinished job its own one could start.

    Both are divided by 100. `operation` and `row_job` say which operations, and which jobs they belong to.
    """
    start = state.next_starts()
    never = torch.inf if start.is_floating_point() else torch.iinfo(start.dtype).max
    behind = start - start.masked_fill(~state.unfinished, never).amin(1, keepdim=True)
    behind = (behind.to(prepared.times.dtype) / 100).flatten()
    return torch.stack([prepared.times.index_select(0, operation), behind.index_select(0, row_job)], 1)


def unscheduled(state: JSSPState, prepared: Prepared, heads: int) -> Tokens:
    """Lists the unscheduled operations and links them by job and by machine."""
    rows, jobs, operations = state.row_count, state.jobs, state.operations
    remaining = torch.arange(operations, device=state.device) >= state.scheduled[:, :, None]
    row, job, step = remaining.nonzero().t().contiguous()
    operation = state.instance.index_select(0, row) * (jobs * operations) + job * operations + step
    row_job = row * jobs + job
    scheduled = state.scheduled.flatten()
    counts = operations - scheduled
    job_links = link_segments(row_job, step - scheduled.index_select(0, row_job), counts, heads)

    present = remaining.view(rows, -1).gather(1, prepared.by_machine.index_select(0, state.instance))
    seen = present.view(rows * operations, jobs).cumsum(1)  # operations on each machine, of jobs up to each job
    row_machine = row * operations + prepared.machines.index_select(0, operation)
    rank = seen.flatten().index_select(0, row_machine * jobs + job) - 1
    machine_links = link_segments(row_machine, rank, seen[:, -1].contiguous(), heads)

    unfinished = state.unfinished.flatten().nonzero().squeeze(1)
    following = (counts.cumsum(0) - counts).index_select(0, unfinished)
    seen = state.unfinished.cumsum(1)
    rank = seen.flatten().index_select(0, unfinished) - 1
    row_of = torch.div(unfinished, jobs, rounding_mode="floor")
    return Tokens(
        values=pad(features(state, prepared, operation, row_job), (0, 0, 0, 1)),
        step=pad(step, (0, 1), value=operations),
        jobs=job_links,
        machines=machine_links,
        unfinished=unfinished,
        next=pad(following, (0, 1), value=len(step)),
        last=link_queries(machine_links, following, row_machine),
        final=link_segments(row_of, rank, seen[:, -1].contiguous(), heads),
    )


def positions(count: int, like: Float[Tensor, "1 d"]) -> Float[Tensor, "position width"]:
    """Sinusoidal encodings (Vaswani et al. 2017: sines in even, cosines in odd channels) and constant channels; then zeros.

    The position in the last constant channel is counted from the end of the job, so that no exponential overflows. Rows are
    widened to whole cache lines.
    """
    d = like.shape[1]
    steps = torch.arange(count, device=like.device)
    frequency = torch.exp(torch.arange(0, d, 2, device=like.device) * (-math.log(10000.0) / d))
    angle = steps[:, None] * frequency
    table = like.new_zeros(count + 1, -(-(d + CONSTANTS) // 16) * 16)
    table[:-1, 0:d:2], table[:-1, 1:d:2] = angle.sin(), angle.cos()[:, : d // 2]
    table[:-1, d], table[:-1, d + 1] = 1, steps - (count - 1)
    return table


def run_twice(tokens: Tokens, weights: Weights, positions: Float[Tensor, "position width"]) -> Float[Tensor, " unfinished"]:
    """`run_network` without keeping anything for the gradients: it is run again when they are asked for."""
    values: Tensor = _RunTwice.apply(tokens, positions, *weights.tensors())
    return values


class _RunTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tokens, positions: Tensor, *weights: Tensor) -> Tensor:
        ctx.tokens, ctx.positions = tokens, positions
        ctx.save_for_backward(*weights)
        return run_network(tokens, Weights.from_tensors(weights), positions)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        weights = [weight.detach().requires_grad_() for weight in ctx.saved_tensors]
        with torch.enable_grad():
            values = run_network(ctx.tokens, Weights.from_tensors(weights), ctx.positions)
        return None, None, *torch.autograd.grad(values, weights, gradient)
