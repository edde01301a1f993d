"""Transformer blocks on a CPU, compiled (`compiled/`): all of a block for a few segments at a time, with its gradient.

A product of small matrices, an exponential or a GELU is little work for a tensor library's operation, and its result leaves
the cache before the next one reads it. Compiled, blocks of d = 64 are two to three times as fast as by tensor operations.

Where there was no compiler when the package was installed, and for anything but 32-bit floats, `layers.Block` is used.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from gumbeldore.networks.segments import Layout, Slopes, array

Tokens = Float[Tensor, "_ d"]
Memory = Float[Tensor, " number"]

SIZES = (4, 8, 16, 32)
"""Head sizes that are compiled."""
WORTH = 400
"""Tokens from which on further threads pay."""


class Parameters(NamedTuple):
    """The parameters of `layers.Block`."""

    in_weight: Float[Tensor, "3d d"]
    in_bias: Float[Tensor, " 3d"]
    out_weight: Float[Tensor, "d d"]
    out_bias: Float[Tensor, " d"]
    widen_weight: Float[Tensor, "ff d"]
    widen_bias: Float[Tensor, " ff"]
    narrow_weight: Float[Tensor, "d ff"]
    narrow_bias: Float[Tensor, " d"]
    scale: Float[Tensor, " 1"] | None


class Block(NamedTuple):
    """A block whose weights are folded, as they were then; for gradients too, if these were recorded."""

    parameters: Parameters
    sizes: tuple[int, int, int]  # d, heads, ff
    folded: Any

    @classmethod
    def of(cls, parameters: Parameters, heads: int, slopes: Slopes | None = None) -> Block:
        """With slopes, head k adds slopes[k] * position of the key to its scores, which are logarithms to base 2."""
        sizes = len(parameters.out_weight), heads, len(parameters.widen_weight)
        folded = _code().fold(*sizes, torch.is_grad_enabled(), array(slopes), *map(array, parameters))
        return cls(parameters, sizes, folded)


def run(x: Tokens, blocks: Sequence[Block], layouts: Sequence[Layout]) -> Tokens:
    """All blocks one after the other; without gradients x may be overwritten."""
    assert x.dtype == torch.float32
    if torch.is_grad_enabled():
        return _Run.apply(x, blocks, layouts, *(parameter for block in blocks for parameter in block.parameters))
    for block, layout in zip(blocks, layouts, strict=True):
        x = _forward(x, block, layout, None, x)
    return x


def usable(weight: Tensor, heads: int) -> bool:
    """Whether the compiled code can run a block with this weight."""
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and len(weight) // heads in SIZES
        and library() is not None
    )


@functools.cache
def library() -> Any | None:
    """The compiled code for this processor, or None."""
    kinds = {"AVX512": ("avx512", "avx2"), "AVX2": ("avx2",)}.get(torch.backends.cpu.get_cpu_capability(), ("plain",))
    return next((code for kind in kinds if (code := load(kind)) is not None), None)


@functools.cache
def load(kind: str) -> Any | None:
    """The compiled code for one kind of processor, if it was installed."""
    try:
        module = importlib.import_module(f"gumbeldore.networks._blocks_{kind}")
    except ImportError:
        return None
    return module


def _code() -> Any:
    code = library()
    assert code is not None
    return code


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tokens, blocks: Sequence[Block], layouts: Sequence[Layout], *_: Tensor | None) -> Tensor:
        ctx.blocks, ctx.layouts, ctx.kept = blocks, layouts, []
        for index, (block, layout) in enumerate(zip(blocks, layouts, strict=True)):
            queries = len(x) if layout.query_tokens is None else len(layout.query_tokens)
            kept = _take(_code().kept_size(*block.sizes, len(x), queries, layout.query_tokens is not None))
            ctx.kept.append((kept, len(x)))
            x = _forward(x, block, layout, kept, x.clone() if index == 0 else x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        gradients: list[Tensor | None] = []
        for block, layout in reversed(list(zip(ctx.blocks, ctx.layouts, strict=True))):
            if not ctx.kept:
                raise RuntimeError(
                    "The gradient of these blocks was computed before, and what it needs is gone. Call them again."
                )
            gradient, of_parameters = _backward(gradient, block, layout, *ctx.kept.pop())
            gradients[:0] = of_parameters
        return gradient, None, None, *gradients


def _forward(x: Tokens, block: Block, layout: Layout, kept: Memory | None, y: Tokens) -> Tokens:
    """The block; its output is written to `y`, which may be x, unless only some tokens go on."""
    if layout.query_tokens is not None:
        y = x.new_empty(len(layout.query_tokens), x.shape[1])
    begin = array(x)
    end = begin if y is x else array(y)
    _code().forward(block.folded, _segments(layout, len(x)), array(kept), _threads(len(x)), begin, end)
    return y


def _backward(of_y: Tokens, block: Block, layout: Layout, kept: Memory, tokens: int) -> tuple[Tokens, Parameters]:
    """The gradients of x and of the block's parameters, given that of y, which may be overwritten."""
    code, threads = _code(), _threads(tokens)
    of_x = of_y if layout.query_tokens is None else of_y.new_empty(tokens, of_y.shape[1])
    gradients = Parameters(*cast(list[Tensor], [None if each is None else torch.empty_like(each) for each in block.parameters]))
    sums = _take(threads * code.sums_size(*block.sizes))
    begin, end = array(of_y), array(of_x)
    code.backward(block.folded, _segments(layout, tokens), array(kept), array(sums), threads, begin, end)
    code.unfold(*block.sizes, array(sums), *map(array, block.parameters), *map(array, gradients))
    for each in (kept, sums):
        _give_back(block.parameters.in_weight, each)
    return of_x, gradients


def _segments(layout: Layout, tokens: int) -> Any:
    """The layout as compiled code knows it, checked once for each number of tokens."""
    found = layout.known.get(tokens)
    if found is None:
        found = layout.known[tokens] = _code().layout(tokens, *layout.arrays())
    return found


_spare: list[Memory] = []
"""Memory that was needed for gradients and is used again for the next ones: new memory would come page by page."""


def _take(count: int) -> Memory:
    """Spare memory, if there is any that suffices; of what does not, one is let go for it."""
    _spare.sort(key=len)
    fitting = next((i for i, memory in enumerate(_spare) if len(memory) >= count), None)
    if fitting is not None:
        return _spare.pop(fitting)
    if _spare:
        _spare.pop()
    return torch.empty(count)


_owners: set[int] = set()
"""The networks, by one of their weights, whose gradients needed the spare memory."""


def _give_back(owner: Tensor, memory: Memory) -> None:
    """Keeps memory for the next gradients, as long as a network lives that needed some."""
    if id(owner) not in _owners:
        _owners.add(id(owner))
        weakref.finalize(owner, _forget, id(owner))
    _spare.append(memory)


def _forget(owner: int) -> None:
    _owners.discard(owner)
    if not _owners:
        _spare.clear()


def _threads(tokens: int) -> int:
    return torch.get_num_threads() if tokens >= WORTH else 1
