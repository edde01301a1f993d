"""Transformer blocks in the form that is fast on a CPU: few and large products, over so many tokens that all stays in the cache.

Tokens are rows of a matrix. Beside its d channels a token has constant ones: the number one, and in some networks its
position, so that a projection adds biases within the matrix product. Places that hold no token are rows of zeros, and blocks
leave them so. A constant that a block would add to all tokens is left to the weights of those that read the tokens.

The gradient is written out. It is summed over parts of the tokens within the matrix products, and keeps no more than it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu, pad

from gumbeldore.policies.attention import Mixed, Parts, Together, Weights, attend_backward, attended, mix

CONSTANTS = 2
"""Channels of a token beside its d: the number one, and its position."""
TOKENS = 1024
"""Tokens that go through all blocks together on each core: more do not fit into its cache."""

Tokens = Float[Tensor, "_ width"]
Gradient = Float[Tensor, "_ d"]


class Move(NamedTuple):
    """Another order of the tokens, and the way back. The last row of both orders is zero; empty places refer to it."""

    forth: Int[Tensor, " after"]
    back: Int[Tensor, " before"]


class Queries(NamedTuple):
    """Tokens that alone attend to others, and alone go on."""

    pick: Move  # brings them to their groups, `length` for each
    length: int
    onward: Move  # the order in which they go on after the attention


class Step(NamedTuple):
    """What a block has to know beside its weights. Tokens are ordered by group; behind them may come one row of zeros."""

    groups: int  # tokens of a group attend to each other; groups are equally long
    length: int
    together: Together | None = None  # who may attend to whom within a group; None: all
    move: Move | None = None  # brings the tokens into this order first
    queries: Queries | None = None  # None: all tokens


class Kept(NamedTuple):
    """What the gradient of a block needs."""

    x: Tokens  # where keys and values come from
    asking: Tokens  # where queries come from
    parts: Parts
    weight: Weights
    mixed: Mixed
    values: Float[Tensor, "d token"]  # attended
    middle: Tokens
    hidden: Float[Tensor, "token ff"]


class FoldedBlock(NamedTuple):
    """The weights of a block, ready for few and large products: ReZero scalar, query scale and biases are multiplied in."""

    attention: Float[Tensor, "channel_head input"]  # the channels of `attention.Projected`
    out: Float[Tensor, "size_head d"]
    widen: Float[Tensor, "ff d_1"]
    narrow: Float[Tensor, "ff d"]
    heads: int

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.attention, self.out, self.widen, self.narrow

    @property
    def d(self) -> int:
        return len(self.out)

    def __call__(self, x: Tokens, step: Step) -> Tokens:
        """The block; may overwrite `x`."""
        x = moved(x, step.move)
        y = x if step.queries is None else moved(x, step.queries.pick)
        parts = self._project(x, y, step)
        self._add_product(y, attended(parts, mix(parts, step.together)[1]).view(self.d, -1).t(), self.out)
        if step.queries is not None:
            y = moved(y, step.queries.onward)
        self._add_product(y, torch.ops.aten.gelu_(self._hidden(y)), self.narrow)
        return y

    def forward(self, x: Tokens, step: Step) -> tuple[Tokens, Kept]:
        """The block without overwriting anything, and what its gradient needs."""
        x = moved(x, step.move)
        asking = x if step.queries is None else moved(x, step.queries.pick)
        parts = self._project(x, asking, step)
        weight, mixed = mix(parts, step.together)
        values = attended(parts, mixed).view(self.d, -1)
        middle = self._add_product(asking.clone(), values.t(), self.out)
        if step.queries is not None:
            middle = moved(middle, step.queries.onward)
        hidden = self._hidden(middle)
        y = self._add_product(middle.clone(), gelu(hidden), self.narrow)
        return y, Kept(x, asking, parts, weight, mixed, values, middle, hidden)

    def backward(self, gradient: Gradient, kept: Kept, step: Step, sums: FoldedBlock) -> Gradient:
        """The gradient of x, given that of y, which may be overwritten; the gradients of the weights are added to `sums`."""
        hidden = gelu(kept.hidden)
        sums.narrow.addmm_(hidden.t(), gradient)
        torch.mm(gradient, self.narrow.t(), out=hidden)
        torch.ops.aten.gelu_backward.grad_input(hidden, kept.hidden, grad_input=hidden)
        sums.widen.addmm_(hidden.t(), kept.middle[:, : self.d + 1])
        gradient.addmm_(hidden, self.widen[:, : self.d])
        if step.queries is not None:
            gradient = gradient.index_select(0, step.queries.onward.back)
        inside = gradient[: kept.values.shape[1]]
        sums.out.addmm_(kept.values, inside)
        values = torch.mm(self.out, inside.t()).view(-1, len(kept.mixed), kept.mixed.shape[2])
        queries, values, keys = attend_backward(values, kept.parts, kept.weight, kept.mixed)
        if step.queries is None:
            projected = torch.cat([queries, torch.zeros_like(queries[:1]), values, keys])
            self._add_projection(projected, self.attention, kept.x, sums.attention, inside)
        else:
            of_queries, of_rest = self._split()
            sum_queries, sum_rest = sums._split()
            self._add_projection(pad(queries, (0, 0, 0, 0, 0, 1)), of_queries, kept.asking, sum_queries, inside)
            gradient = gradient.index_select(0, step.queries.pick.back)
            projected = torch.cat([torch.zeros_like(values[:1]), values, keys])
            self._add_projection(projected, of_rest, kept.x, sum_rest, gradient[: step.groups * step.length])
        return gradient if step.move is None else gradient.index_select(0, step.move.back)

    def _project(self, x: Tokens, asking: Tokens, step: Step) -> Parts:
        """Queries, keys and values."""
        if step.queries is None:
            return Parts.of(self._product(self.attention, x, step.groups, step.length))
        of_queries, of_rest = self._split()
        queries = self._product(of_queries, asking, step.groups, step.queries.length)
        return Parts.of_two(queries, self._product(of_rest, x, step.groups, step.length))

    def _product(self, weight: Tensor, x: Tokens, groups: int, length: int) -> Float[Tensor, "channel head_group place"]:
        return torch.mm(weight, x[: groups * length, : weight.shape[1]].t()).view(-1, self.heads * groups, length)

    def _split(self) -> tuple[Tensor, Tensor]:
        """The weights for queries, and those for values and keys; both have the number one."""
        size = self.d // self.heads
        return self.attention[: (size + 1) * self.heads], self.attention[size * self.heads :]

    def _hidden(self, x: Tokens) -> Tensor:
        return torch.mm(x[:, : self.d + 1], self.widen.t())

    def _add_product(self, x: Tokens, factor: Float[Tensor, "place inner"], weight: Float[Tensor, "inner d"]) -> Tokens:
        """Adds to the first rows of x, in place."""
        x[: len(factor), : self.d].addmm_(factor, weight)
        return x

    def _add_projection(self, projected: Tensor, weight: Tensor, x: Tokens, total: Tensor, gradient: Gradient) -> None:
        """Adds what the gradient of projections means for their weights and for their input, in place."""
        flat = projected.view(len(weight), -1)
        total.addmm_(flat, x[: flat.shape[1], : weight.shape[1]])
        gradient.addmm_(flat.t(), weight[:, : self.d])


def moved(x: Tokens, move: Move | None) -> Tokens:
    return x if move is None else x.index_select(0, move.forth)


def run_blocks(parts: Sequence[Tokens], blocks: Sequence[FoldedBlock], steps: Sequence[Sequence[Step]]) -> Sequence[Tokens]:
    """All blocks for parts that go through them one after the other, each with its own steps. Without gradients they may be overwritten."""
    if torch.is_grad_enabled():
        outputs: tuple[Tensor, ...] = _Run.apply(
            blocks[0].heads, steps, *parts, *(w for block in blocks for w in block.tensors)
        )
        return outputs
    return [_run_one(x, blocks, each) for x, each in zip(parts, steps, strict=True)]


def _run_one(x: Tokens, blocks: Sequence[FoldedBlock], steps: Sequence[Step]) -> Tokens:
    for block, step in zip(blocks, steps, strict=True):
        x = block(x, step)
    return x


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, heads: int, steps: Sequence[Sequence[Step]], *tensors: Tensor) -> tuple[Tensor, ...]:
        blocks = to_blocks(tensors[len(steps) :], heads)
        ctx.blocks, ctx.steps, ctx.kept = blocks, steps, []
        outputs = []
        for x, each in zip(tensors[: len(steps)], steps, strict=True):
            kept = []
            for block, step in zip(blocks, each, strict=True):
                x, needed = block.forward(x, step)
                kept.append(needed)
            ctx.kept.append(kept)
            outputs.append(x)
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        blocks: list[FoldedBlock] = ctx.blocks
        sums = [torch.zeros_like(tensor) for block in blocks for tensor in block.tensors]
        totals = to_blocks(sums, blocks[0].heads)
        backs = []
        for gradient, kept, steps in zip(gradients, ctx.kept, ctx.steps, strict=True):
            back = gradient[:, : blocks[0].d].clone(memory_format=torch.contiguous_format)
            for block, needed, step, total in reversed(list(zip(blocks, kept, steps, totals, strict=True))):
                back = block.backward(back, needed, step, total)
            backs.append(pad(back, (0, gradient.shape[1] - back.shape[1])))
        return None, None, *backs, *sums


def to_blocks(tensors: Sequence[Tensor], heads: int) -> list[FoldedBlock]:
    """The inverse of `FoldedBlock.tensors`, of several blocks."""
    parts = zip(tensors[::4], tensors[1::4], tensors[2::4], tensors[3::4], strict=True)
    return [FoldedBlock(attention, out, widen, narrow, heads) for attention, out, widen, narrow in parts]


class FoldedStack(NamedTuple):
    """Blocks one after the other, over rows of tokens that attend to each other; and the constant that their output lacks."""

    blocks: list[FoldedBlock]
    constant: Float[Tensor, " d"]

    def __call__(self, x: Float[Tensor, "row token d"], blocked: Bool[Tensor, "row 1 1 token"] | None = None) -> Tensor:
        """All blocks; overwrites `x` unless gradients are recorded. What becomes of blocked tokens means nothing."""
        rows, tokens, d = x.shape
        size = max(1, TOKENS * torch.get_num_threads() // tokens)
        slices = [slice(start, start + size) for start in range(0, rows, size)]
        parts = (flattened(x[part], None if blocked is None else blocked[part]) for part in slices)
        steps = [[Step(len(x[part]), tokens)] * len(self.blocks) for part in slices]
        if torch.is_grad_enabled():
            y = torch.cat(list(run_blocks(list(parts), self.blocks, steps)))
            return (y[:, :d] + self.constant).view_as(x)
        for part, flat, each in zip(slices, parts, steps, strict=True):
            (y,) = run_blocks([flat], self.blocks, [each])
            torch.add(y[:, :d].view_as(x[part]), self.constant, out=x[part])
        return x


def flattened(x: Float[Tensor, "row token d"], blocked: Bool[Tensor, "row 1 1 token"] | None) -> Tokens:
    """The tokens with the number one in all further channels; zeros where they are blocked."""
    x = pad(x, (0, width(x.shape[2]) - x.shape[2]), value=1.0)
    return (x if blocked is None else x.masked_fill(blocked.view(*x.shape[:2], 1), 0)).flatten(0, 1)


def width(d: int) -> int:
    """Channels of a token with its constant ones, in whole cache lines."""
    return -(-(d + CONSTANTS) // 16) * 16
