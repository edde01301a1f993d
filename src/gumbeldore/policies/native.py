"""Transformer blocks on a CPU, compiled (`blocks.cpp`): all of a block for a few segments at a time, with its gradient.

A product of small matrices, an exponential or a GELU is little work for a tensor library's operation, and its result leaves
the cache before the next one reads it. Compiled, blocks of d = 64 are two to three times as fast as by tensor operations.

Where there was no compiler when the package was installed, and for anything but 32-bit floats, `layers.Block` is used.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from gumbeldore.policies.segments import Layout, Slopes, address

Tokens = Float[Tensor, "_ d"]

SIZES = (4, 8, 16, 32)
"""Head sizes that are compiled."""
WORTH = 512
"""Tokens from which on a second thread pays."""


class Matrices(NamedTuple):
    """The weights of a block: ReZero scalar and scale of the scores are multiplied in, and each matrix is input by output.

    Scores are logarithms to base 2. A bias of the keys changes no softmax; one of the values is part of that of the output.
    """

    query: Float[Tensor, "d d"]
    query_bias: Float[Tensor, " d"]
    rest: Float[Tensor, "d 2d"]  # keys, then values
    out: Float[Tensor, "d d"]
    out_bias: Float[Tensor, " d"]
    widen: Float[Tensor, "d ff"]
    widen_bias: Float[Tensor, " ff"]
    narrow: Float[Tensor, "ff d"]
    narrow_bias: Float[Tensor, " d"]


class Block(NamedTuple):
    """A block's weights as the compiled code reads them."""

    matrices: Matrices
    heads: int
    slopes: Slopes | None  # head k adds slopes[k] * position of the key to the scores
    packed: list[Tensor]  # kept alive for the pointers
    pointers: Any

    @classmethod
    def of(cls, matrices: Matrices, heads: int, slopes: Tensor | None, *, gradients: bool) -> Block:
        detached = Matrices(*(matrix.detach() for matrix in matrices))
        back = [in_panels(matrix.t()) for matrix in detached if matrix.ndim == 2] if gradients else []
        packed = [in_panels(matrix) if matrix.ndim == 2 else to_panels(matrix) for matrix in detached]
        addresses = [*map(address, packed), address(slopes), *map(address, back)]
        pointers = _Weights(len(matrices.out), heads, len(matrices.narrow), *addresses)
        return cls(matrices, heads, slopes, [*packed, *back], pointers)


def run(x: Tokens, blocks: Sequence[Block], layouts: Sequence[Layout]) -> Tokens:
    """All blocks one after the other; without gradients x may be overwritten."""
    assert x.dtype == torch.float32
    if torch.is_grad_enabled():
        return _Run.apply(x, blocks, layouts, *(matrix for block in blocks for matrix in block.matrices))
    for block, layout in zip(blocks, layouts, strict=True):
        x = _forward(x, block, layout, None, x)
    return x


def usable(weight: Tensor, heads: int) -> bool:
    """Whether the compiled code can run a block with this weight."""
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and len(weight) // heads in SIZES
        and library() is not None
    )


def _code() -> Any:
    code = library()
    assert code is not None
    return code


@functools.cache
def library() -> Any | None:
    """The compiled code for this processor, or None."""
    kinds = {"AVX512": ("avx512", "avx2"), "AVX2": ("avx2",)}.get(torch.backends.cpu.get_cpu_capability(), ("plain",))
    return next((code for kind in kinds if (code := load(kind)) is not None), None)


@functools.cache
def load(kind: str) -> Any | None:
    """The compiled code for one kind of processor, if it was installed."""
    try:
        module = importlib.import_module(f"gumbeldore.policies._blocks_{kind}")
    except ImportError:
        return None
    code = ctypes.CDLL(str(module.__file__))
    code.gumbeldore_forward.restype = code.gumbeldore_backward.restype = None
    return code


def to_panels(x: Float[Tensor, "... column"]) -> Float[Tensor, "... padded"]:
    """The same with columns of zeros, up to a whole number of panels."""
    return pad(x, (0, -x.shape[-1] % _code().gumbeldore_panel())).contiguous()


def in_panels(matrix: Float[Tensor, "row column"]) -> Float[Tensor, "panel row lane"]:
    """A matrix cut into columns that the compiled code computes together."""
    return to_panels(matrix).view(len(matrix), -1, _code().gumbeldore_panel()).transpose(0, 1).contiguous()


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tokens, blocks: Sequence[Block], layouts: Sequence[Layout], *_: Tensor) -> Tensor:
        ctx.blocks, ctx.layouts, ctx.kept = blocks, layouts, []
        for index, (block, layout) in enumerate(zip(blocks, layouts, strict=True)):
            kept = Kept.room(len(x), block, layout)
            x = _forward(x, block, layout, kept, x.clone() if index == 0 else x)
            ctx.kept.append(kept)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        sums: list[Tensor] = []
        for block, layout in reversed(list(zip(ctx.blocks, ctx.layouts, strict=True))):
            if not ctx.kept:
                raise RuntimeError(
                    "The gradient of these blocks was computed before, and what it needs is gone. Call them again."
                )
            kept = ctx.kept.pop()
            gradient, total = _backward(gradient, block, layout, kept)
            kept.give_back()
            sums[:0] = total
        return gradient, None, None, *sums


def _forward(x: Tokens, block: Block, layout: Layout, kept: Kept | None, y: Tokens) -> Tokens:
    """The block; its output is written to `y`, which may be x, unless only some tokens go on."""
    if layout.query_tokens is not None:
        y = x.new_empty(len(layout.query_tokens), x.shape[1])
    keeping = None if kept is None else ctypes.byref(kept.pointers)
    what, where = ctypes.byref(block.pointers), ctypes.byref(_Layout(*layout.addresses))
    _code().gumbeldore_forward(what, where, keeping, layout.segments, _threads(len(x)), _pointer(x), _pointer(y))
    return y


def _backward(of_y: Tokens, block: Block, layout: Layout, kept: Kept) -> tuple[Tokens, list[Tensor]]:
    """The gradients of x and of the block's matrices, given that of y, which may be overwritten."""
    code, threads = _code(), _threads(kept.rows)
    of_x = of_y if layout.query_starts is None else of_y.new_empty(kept.rows, of_y.shape[1])
    shapes = [(threads, *matrix.shape[:-1], code.gumbeldore_stride(matrix.shape[-1])) for matrix in block.matrices]
    sums = [torch.zeros(shape) for shape in shapes]
    by_thread = (_Sums * threads)(*(_Sums(*(address(part[i]) for part in sums)) for i in range(threads)))
    what, where = ctypes.byref(block.pointers), ctypes.byref(_Layout(*layout.addresses))
    code.gumbeldore_backward(
        what, where, ctypes.byref(kept.pointers), by_thread, layout.segments, threads, _pointer(of_y), _pointer(of_x)
    )
    return of_x, [part.sum(0)[..., : matrix.shape[-1]] for part, matrix in zip(sums, block.matrices, strict=True)]


class Kept(NamedTuple):
    """What the gradient of a block needs, in memory that is used again for the next one: new memory would come page by page."""

    memory: Float[Tensor, " number"]
    pointers: Any
    rows: int

    @classmethod
    def room(cls, rows: int, block: Block, layout: Layout) -> Kept:
        stride = _code().gumbeldore_stride
        D, R, F = (stride(size) for size in (len(block.matrices.out), 2 * len(block.matrices.out), len(block.matrices.narrow)))
        queries = rows if layout.query_tokens is None else len(layout.query_tokens)
        asking = 0 if layout.query_tokens is None else queries * D
        sizes = [rows * D, asking, queries * D, rows * R, queries * D, queries * block.heads, queries * D, queries * F]
        memory = cls._take(sum(sizes))
        begins = [memory.data_ptr() + 4 * sum(sizes[:i]) for i in range(len(sizes))]
        return cls(memory, _Kept(*(begin if size else None for begin, size in zip(begins, sizes, strict=True))), rows)

    @staticmethod
    def _take(count: int) -> Tensor:
        """Memory that was given back, if there is any that suffices; of what does not, one is let go for it."""
        _spare.sort(key=len)
        fitting = next((i for i, memory in enumerate(_spare) if len(memory) >= count), None)
        if fitting is not None:
            return _spare.pop(fitting)
        if _spare:
            _spare.pop()
        return torch.empty(count)

    def give_back(self) -> None:
        _spare.append(self.memory)


_spare: list[Float[Tensor, " number"]] = []


def _threads(tokens: int) -> int:
    return torch.get_num_threads() if tokens >= WORTH else 1


def _pointer(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(address(tensor))


def _structure(name: str, pointers: str, numbers: str = "") -> type[ctypes.Structure]:
    members = [(field, ctypes.c_int) for field in numbers.split()] + [(field, ctypes.c_void_p) for field in pointers.split()]
    return type(name, (ctypes.Structure,), {"_fields_": members})


# The structures of blocks.cpp.
_MATRICES = " ".join(Matrices._fields)
_Weights = _structure("_Weights", f"{_MATRICES} slopes query_back rest_back out_back widen_back narrow_back", "d heads ff")
_Sums = _structure("_Sums", _MATRICES)
_Layout = _structure("_Layout", " ".join(field.name for field in fields(Layout)))
_Kept = _structure("_Kept", "x asking query rest mixed logs middle hidden")
