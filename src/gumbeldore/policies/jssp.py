"""The paper's network for the job shop (appendix "Job Shop Scheduling Problem", "Policy Network")."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from gumbeldore.policies.folded import FoldedBlock, Move, Queries, Step, run_blocks, to_blocks, width
from gumbeldore.policies.layers import Block, Stack
from gumbeldore.policies.segments import GROUP, fill, find_move, find_places, find_queries, find_together
from gumbeldore.policy import Network
from gumbeldore.problems.jssp import JSSPState

PASS = 2048
"""Operations that go through the network together: more are not faster, for want of cache."""
KEPT = 32768
"""Operations up to which all is kept that gradients need (some 30 kB each). Beyond, passes are repeated for them."""


class Weights(NamedTuple):
    """The weights of the network, folded."""

    embedding: Float[Tensor, "feature width"]
    blocks: list[FoldedBlock]
    out: Float[Tensor, " d"]
    bias: Float[Tensor, " 1"]

    def tensors(self) -> list[Tensor]:
        return [self.embedding, self.out, self.bias, *(tensor for block in self.blocks for tensor in block.tensors)]

    def replaced(self, tensors: Sequence[Tensor]) -> Weights:
        """The same with other `tensors`."""
        embedding, out, bias, *rest = tensors
        return Weights(embedding, to_blocks(rest, self.blocks[0].heads), out, bias)


class Prepared(NamedTuple):
    """What does not change during a search."""

    times: Float[Tensor, " all_operations"]  # p / 100, of all instances
    machines: Int[Tensor, " all_operations"]
    by_machine: Int[Tensor, "batch machine_job"]  # the place job * M + operation of each job's operation on each machine
    positions: Float[Tensor, "position width"]  # a token without features: sinusoidal encoding, one, position; the zero token
    weights: Weights


class Operations(NamedTuple):
    """The unscheduled operations of all rows: what the network is told of them, and who attends to whom in its blocks.

    They stand in groups for the first block, with empty places between them and one at the end. Those have features 0 and
    step M.
    """

    values: Float[Tensor, "place feature"]
    step: Int[Tensor, " place"]  # the operation's index in its job
    steps: list[Step]  # of the blocks
    unfinished: Int[Tensor, " unfinished"]  # row * J + job of all unfinished jobs
    next: Int[Tensor, " unfinished"]  # the places of their next operations in the end


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
        """Folds the weights and sorts the operations by machine once; with gradients there is nothing to prepare."""
        return None if torch.is_grad_enabled() else self._prepare(state)

    def _prepare(self, state: JSSPState) -> Prepared:
        batch, jobs, operations = state.times.shape
        place = state.machines.argsort(2) + operations * torch.arange(jobs, device=state.device)[:, None]
        return Prepared(
            times=state.times.flatten().to(self.policy_linear_out.weight.dtype) / 100,
            machines=state.machines.flatten(),
            by_machine=place.transpose(1, 2).reshape(batch, operations * jobs),
            positions=positions(operations, self.policy_linear_out.weight),
            weights=self._fold(),
        )

    def _fold(self) -> Weights:
        heads, embedding, out = self.config["heads"], self.operation_embedding, self.policy_linear_out
        slopes = 2.0 ** (-8 * torch.arange(1, heads + 1, device=out.weight.device) / heads)
        constant: Tensor = embedding.bias
        blocks = []
        for index, block in enumerate([*self.encoder, self.final_trf_block]):
            assert isinstance(block, Block)
            job_wise = index % 2 == 0 and index < len(self.encoder)
            folded, constant = block.fold(constant, slopes if job_wise else None)
            blocks.append(folded)
        weight = pad(embedding.weight, (0, 0, 0, width(self.config["d"]) - self.config["d"])).t()
        return Weights(weight, blocks, out.weight[0], out.bias + out.weight[0] @ constant)

    def forward(self, state: JSSPState, context: Prepared | None = None) -> Float[Tensor, "row job"]:
        """Logits of the unfinished jobs, and zeros."""
        prepared = self._prepare(state) if context is None else context
        count = int((state.operations - state.scheduled).sum())
        places: list[Tensor] = []
        values: list[Tensor] = []
        for passes in self._passes(state, prepared, count):
            places += [operations.unfinished for operations in passes]
            values += run(passes, prepared.weights, prepared.positions, keep=count <= KEPT)
        logits = prepared.times.new_zeros(state.scheduled.numel())
        if values:
            logits = logits.scatter(0, torch.cat(places), torch.cat(values))
        return logits.view_as(state.scheduled)

    def _passes(self, state: JSSPState, prepared: Prepared, count: int) -> Iterator[list[Operations]]:
        """What goes through the network together; with gradients that are kept all at once, because weights share the sums."""
        size = max(1, state.row_count // -(-max(1, count) // PASS))

        def one_by_one() -> Iterator[Operations]:
            for start in range(0, state.row_count, size):
                rows = state.rows(slice(start, start + size))
                if bool(rows.unfinished.any()):
                    operations = unscheduled(rows, prepared, len(self.encoder))
                    yield operations._replace(unfinished=operations.unfinished + start * state.jobs)

        if torch.is_grad_enabled() and 0 < count <= KEPT:
            yield list(one_by_one())
        else:
            yield from ([operations] for operations in one_by_one())

    def row_bytes(self, state: JSSPState) -> int:
        """Working memory of one row in a search: residual stream, projections, attention weights, hidden layer, indices."""
        d, ff, heads = self.config["d"], self.config["ff"], self.config["heads"]
        tokens = int((state.operations - state.scheduled[:1]).sum())
        length = max(GROUP, state.jobs, state.operations)
        return 4 * tokens * (6 * d + ff + heads * (length + 16))


def run(
    passes: Sequence[Operations], weights: Weights, positions: Float[Tensor, "position width"], *, keep: bool
) -> list[Float[Tensor, " unfinished"]]:
    """The logits of the unfinished jobs, by pass. Without `keep`, what gradients need is computed again for them."""
    if torch.is_grad_enabled() and not keep:
        return [_RunTwice.apply(operations, weights, positions, *weights.tensors()) for operations in passes]
    steps = [operations.steps for operations in passes]
    outputs = run_blocks([embed(operations, weights, positions) for operations in passes], weights.blocks, steps)
    return [read(x, operations, weights) for x, operations in zip(outputs, passes, strict=True)]


def embed(operations: Operations, weights: Weights, positions: Float[Tensor, "position width"]) -> Float[Tensor, "place width"]:
    """Embedded operations with positional encodings. The embedding's bias is left to the blocks."""
    return torch.addmm(positions.index_select(0, operations.step), operations.values, weights.embedding)


def read(x: Float[Tensor, "place width"], operations: Operations, weights: Weights) -> Float[Tensor, " unfinished"]:
    return torch.addmv(weights.bias, x.index_select(0, operations.next)[:, : len(weights.out)], weights.out)


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


def unscheduled(state: JSSPState, prepared: Prepared, blocks: int) -> Operations:
    """Lists the unscheduled operations, and lays them out by job and by machine in turn for that many blocks and a last one."""
    rows, jobs, operations = state.row_count, state.jobs, state.operations
    remaining = torch.arange(operations, device=state.device) >= state.scheduled[:, :, None]
    row, job, step = remaining.nonzero().t().contiguous()
    operation = state.instance.index_select(0, row) * (jobs * operations) + job * operations + step
    row_job = row * jobs + job
    scheduled = state.scheduled.flatten()
    counts = operations - scheduled
    by_job = find_places(row_job, step - scheduled.index_select(0, row_job), counts)

    present = remaining.view(rows, -1).gather(1, prepared.by_machine.index_select(0, state.instance))
    seen = present.view(rows * operations, jobs).cumsum(1)  # operations on each machine, of jobs up to each job
    row_machine = row * operations + prepared.machines.index_select(0, operation)
    rank = seen.flatten().index_select(0, row_machine * jobs + job) - 1
    by_machine = find_places(row_machine, rank, seen[:, -1].contiguous())

    unfinished = state.unfinished.flatten().nonzero().squeeze(1)
    following = (counts.cumsum(0) - counts).index_select(0, unfinished)
    asking = find_queries(by_machine, following)
    seen = state.unfinished.cumsum(1)
    rank = seen.flatten().index_select(0, unfinished) - 1
    row_of = torch.div(unfinished, jobs, rounding_mode="floor")
    by_row = find_places(row_of, rank, seen[:, -1].contiguous())

    within_job = Step(by_job.groups, by_job.length, find_together(by_job, row_job, by_job, row_job))
    within_machine = Step(
        by_machine.groups,
        by_machine.length,
        find_together(by_machine, row_machine, by_machine, row_machine),
        find_move(by_job, by_machine),
    )
    chosen = row_machine.index_select(0, following)
    last = within_machine._replace(
        together=find_together(by_machine, row_machine, asking, chosen),
        queries=Queries(find_move(by_machine, asking, following), asking.length, find_move(asking, by_row)),
    )
    assert within_machine.move is not None
    back = within_job._replace(move=Move(within_machine.move.back, within_machine.move.forth))
    final = Step(by_row.groups, by_row.length, find_together(by_row, row_of, by_row, row_of))
    return Operations(
        values=fill(by_job.place, features(state, prepared, operation, row_job), by_job.total + 1, 0),
        step=fill(by_job.place, step, by_job.total + 1, operations),
        steps=[within_job, *[within_machine, back] * (blocks // 2 - 1), last, final],
        unfinished=unfinished,
        next=by_row.place,
    )


def positions(count: int, like: Float[Tensor, "1 d"]) -> Float[Tensor, "position width"]:
    """Sinusoidal encodings (Vaswani et al. 2017: sines in even, cosines in odd channels) and constant channels; then zeros.

    The position in the last constant channel is counted from the end of the job, so that no exponential overflows.
    """
    d = like.shape[1]
    steps = torch.arange(count, device=like.device)
    frequency = torch.exp(torch.arange(0, d, 2, device=like.device) * (-math.log(10000.0) / d))
    angle = steps[:, None] * frequency
    table = like.new_zeros(count + 1, width(d))
    table[:-1, 0:d:2], table[:-1, 1:d:2] = angle.sin(), angle.cos()[:, : d // 2]
    table[:-1, d], table[:-1, d + 1] = 1, steps - (count - 1)
    return table


class _RunTwice(torch.autograd.Function):
    """The network without keeping anything for the gradients: it is run again when they are asked for."""

    @staticmethod
    def forward(ctx: Any, operations: Operations, weights: Weights, positions: Tensor, *tensors: Tensor) -> Tensor:
        ctx.operations, ctx.weights, ctx.positions = operations, weights, positions
        ctx.save_for_backward(*tensors)
        return run([operations], weights.replaced(tensors), positions, keep=False)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        tensors = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
        with torch.enable_grad():
            (values,) = run([ctx.operations], ctx.weights.replaced(tensors), ctx.positions, keep=True)
        return None, None, None, *torch.autograd.grad(values, tensors, gradient)
