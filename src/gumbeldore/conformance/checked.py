"""A problem whose every call is checked, and comparisons of what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import ContractError
from gumbeldore.problem import Examples, Problem, S, State


@dataclass
class CheckedProblem(Problem[S]):
    """The same problem; every call is checked for purity, determinism and the form of its result."""

    problem: Problem[S]
    situation: str = "on generated instances"

    def fault(self, method: str, what: str, fix: str) -> ContractError:
        """The error to raise: what `method` did wrong, and how to put it right."""
        return ContractError(f"`{type(self.problem).__name__}.{method}` {what} ({self.situation}). {fix}")

    @contextmanager
    def when(self, situation: str) -> Iterator[None]:
        """Names what is being tried in the messages of faults."""
        before, self.situation = self.situation, situation
        try:
            yield
        finally:
            self.situation = before

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> S:
        state = self._attempt("generate", count, generator=generator, device=device)
        self.check_layout("generate", state)
        return state

    def mask(self, state: S) -> Bool[Tensor, "row action"]:
        return self._tensor("mask", state, (state.row_count, None), "torch.bool", "True where an action is allowed")

    def done(self, state: S) -> Bool[Tensor, " row"]:
        return self._tensor("done", state, (state.row_count,), "torch.bool", "True where a row is complete")

    def objective(self, state: S) -> Float[Tensor, " row"]:
        return self._tensor("objective", state, (state.row_count,), "floating point", "one number per row, larger is better")

    def key(self, state: S) -> Int[Tensor, "row 2"] | None:
        if self._attempt("key", state) is None:
            return None
        return self._tensor("key", state, (state.row_count, 2), "torch.int64", "two integers per row")

    def horizon(self, state: S) -> int:
        steps = self._pure("horizon", state)
        if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
            raise self.fault("horizon", f"returned {steps!r}", "Return an int of at least 0: wrap a tensor in `int(...)`.")
        return steps

    def step(self, state: S, action: Int[Tensor, " row"]) -> S:
        after: S = self._pure("step", state, action)
        self.check_layout("step", after)
        if type(after) is not type(state):
            raise self.fault(
                "step", f"returned a {type(after).__name__}", f"Return a {type(state).__name__}: `replace(state, ...)`."
            )
        for name, old in state.tensors().items():
            new = getattr(after, name)
            if new.shape != old.shape or new.dtype != old.dtype:
                raise self.fault(
                    "step",
                    f"turned the field `{name}` of shape {tuple(old.shape)} and {old.dtype} into {tuple(new.shape)} and {new.dtype}",
                    "A field keeps its shape and dtype; the data of an instance is shared by its rows, never copied per row.",
                )
            if (name == "instance" or name in state.per_instance) and not same(old, new):
                raise self.fault(
                    "step",
                    f"changed the field `{name}`, which belongs to the instance",
                    "Keep what changes in a field with a row axis, and leave `instance` and the fields in `per_instance` alone.",
                )
        return after

    def examples(self, state: S, actions: Int[Tensor, "row depth"], *, generator: torch.Generator) -> Examples[S]:
        return self._attempt("examples", state, actions, generator=generator)

    def check_layout(self, method: str, state: Any) -> None:
        """A state is a `State` of tensors with matching first axes on one device."""
        if not isinstance(state, State):
            raise self.fault(method, f"returned a {type(state).__name__}", "Return a subclass of `State`.")
        names = [f.name for f in fields(state)]
        for name in state.per_instance:
            if name not in names:
                raise self.fault(method, f"returned a state without the field `{name}`", "`per_instance` must name fields.")
        count = state.instance_count
        for name in names:
            tensor = getattr(state, name)
            wanted = count if name in state.per_instance else state.row_count
            axis = "instance" if name in state.per_instance else "row"
            if not isinstance(tensor, Tensor) or tensor.dim() == 0 or tensor.shape[0] != wanted:
                raise self.fault(
                    method,
                    f"returned a state whose field `{name}` is {form(tensor)}",
                    f"It must be a tensor with a leading {axis} axis of {wanted}; see `State.per_instance`.",
                )
            if tensor.device != state.device:
                raise self.fault(method, f"put `{name}` on {tensor.device}", f"All fields belong on {state.device}.")
        low, high = (int(state.instance.min()), int(state.instance.max())) if state.row_count else (0, 0)
        if state.instance.dtype != torch.int64 or low < 0 or (state.per_instance and high >= count):
            raise self.fault(
                method,
                f"returned `instance` of {state.instance.dtype} with values in {low} .. {high}",
                f"It must be int64 and say for each row to which of the {count} instances it belongs.",
            )

    def _tensor(self, method: str, state: S, shape: tuple[int | None, ...], dtype: str, meaning: str) -> Any:
        """The result of a method of one state, which must have the given shape and dtype."""
        result = self._pure(method, state)
        right = isinstance(result, Tensor) and result.dim() == len(shape) and result.device == state.device
        right = right and all(wanted in (None, size) for size, wanted in zip(result.shape, shape, strict=True))
        right = right and (result.is_floating_point() if dtype == "floating point" else str(result.dtype) == dtype)
        if not right:
            wanted = ", ".join("actions" if size is None else str(size) for size in shape)
            raise self.fault(
                method, f"returned {form(result)}", f"It must be {meaning}: shape ({wanted}), {dtype}, on {state.device}."
            )
        return result

    def _pure(self, method: str, state: S, *others: Tensor) -> Any:
        """The result of a method, called twice: both must agree."""
        result = self._attempt(method, state, *others)
        if not same(result, again := self._attempt(method, state, *others)):
            raise self.fault(
                method,
                f"gave two results for the same input{difference(result, again)}",
                "It must be a pure function of its arguments: no random numbers, nothing remembered on `self`.",
            )
        return result

    def _attempt(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Calls a method; an exception or a modified argument is a fault."""
        given = {f"argument {i}": a for i, a in enumerate(arguments) if isinstance(a, Tensor)}
        for argument in arguments:
            given |= {f"state.{name}": t for name, t in argument.tensors().items()} if isinstance(argument, State) else {}
        before = {name: tensor.clone() for name, tensor in given.items()}
        try:
            result = getattr(self.problem, method)(*arguments, **options)
        except Exception as error:
            fix = "It must accept any selection of rows: index per-instance fields with `state.instance`, not by row number."
            fix = "It must accept any count and any seeded generator." if method == "generate" else fix
            raise self.fault(method, f"raised {type(error).__name__}: {error}", fix) from error
        for name, tensor in given.items():
            if not same(before[name], tensor):
                raise self.fault(
                    method, f"modified its input `{name}`", "Work on new tensors: `scatter` instead of `scatter_`, or `clone`."
                )
        return result


def random_legal(mask: Bool[Tensor, "row action"], generator: torch.Generator) -> Int[Tensor, " row"]:
    """A random allowed action per row; some action where there is none."""
    lots = torch.rand(mask.shape, generator=generator, device=generator.device).to(mask.device)
    return lots.where(mask, -1).argmax(1)


def random_integers(
    shape: tuple[int, ...] | torch.Size, generator: torch.Generator, device: torch.device, *, below: int
) -> Int[Tensor, "..."]:
    return torch.randint(below, tuple(shape), generator=generator, device=generator.device).to(device)


def progress(state: State) -> dict[str, Tensor]:
    """What belongs to the rows alone."""
    return {name: t for name, t in state.tensors().items() if name != "instance" and name not in state.per_instance}


def same(a: Any, b: Any, *, exact: bool = True) -> bool:
    """Equality of tensors, states and dictionaries; NaN equals NaN. Not exact: floats may differ in their last digits."""
    if isinstance(a, State) and isinstance(b, State):
        return type(a) is type(b) and same(a.tensors(), b.tensors(), exact=exact)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name], exact=exact) for name in a)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        tolerance = 0.0 if exact or not a.is_floating_point() else 1e-5
        return torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    return bool(a == b)


def difference(a: Any, b: Any) -> str:
    """Names the first field in which two states differ."""
    left, right = (x.tensors() if isinstance(x, State) else x for x in (a, b))
    if not (isinstance(left, dict) and isinstance(right, dict)):
        return ""
    return next((f": the field `{name}` differs" for name in left if not same(left[name], right.get(name))), "")


def form(value: Any) -> str:
    """Shape, dtype and device of a tensor, or the type of anything else."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}, {value.dtype}, on {value.device}"
    return f"a {type(value).__name__}"
