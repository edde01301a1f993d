"""Sets of instances as plain arrays, with or without expert solutions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gumbeldore.errors import FormatError, require
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problem import Problem, State
from gumbeldore.training.dataset import Dataset, Group

CHUNK = 10_000  # instances that are checked together

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class InstanceSchema:
    """What the instances of a problem consist of, and how a solution is checked.

    name: The name of the kit.
    problem: Its `instances` takes data of any size.
    axes: The axes of each array; a number is a size, "node" and "customer" and so on must agree.
    integer: Arrays that must hold integers.
    state: Initial states from the arrays as tensors with an axis of instances first.
    verify: One instance and a sequence of actions.
    size: As settings of the problem.
    unit: One instance as a policy should see it, and the factor from its costs to those of the instance.
    optional: The axes of arrays that instances may have beside these.
    """

    name: str
    problem: Problem[Any]
    axes: dict[str, str]
    integer: frozenset[str]
    state: Callable[[dict[str, Tensor]], Any]
    verify: Callable[[Arrays, Sequence[int]], Verdict]
    size: Callable[[Arrays], dict[str, Any]]
    unit: Callable[[Arrays], tuple[Arrays, float]] = lambda arrays: (arrays, 1.0)
    """One instance as a policy should see it, and the factor from its costs to those of the instance."""
    optional: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Labels:
    """One solution per instance.

    actions: Of the problem's `step`; -1 after the end.
    objective: Larger is better: minus the length or the makespan.
    optimal: Whether that is proved.
    solver: Who found them, and how.
    """

    actions: Int[np.ndarray, "instance depth"]
    objective: Float[np.ndarray, " instance"]
    optimal: Bool[np.ndarray, " instance"]
    solver: str


@dataclass(frozen=True)
class InstanceSet:
    """Instances of one problem and one size as plain arrays, checked when the set is made."""

    kind: InstanceSchema
    arrays: dict[str, NDArray[Any]]
    labels: Labels | None = None

    def __post_init__(self) -> None:
        _check_arrays(self.kind, self.arrays)
        if self.labels is not None:
            _check_labels(self.labels, len(self))

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def instance(self, index: int) -> dict[str, NDArray[Any]]:
        """The arrays of one instance, without the instance axis."""
        return {name: array[index] for name, array in self.arrays.items()}

    def state(self, device: torch.device | str = "cpu", rows: slice = slice(None)) -> State:
        """The instances as initial states, ready to be solved."""

        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.as_tensor(array if array.dtype.kind == "f" else array.astype(np.int64), device=device)

        return self.kind.state({name: tensor(array[rows]) for name, array in self.arrays.items()})

    def labelled(self, actions: Sequence[Sequence[int]], solver: str, optimal: Sequence[bool] | None = None) -> InstanceSet:
        """The same instances with a solution each, checked by independent code, which also computes the objectives."""
        require(len(actions) == len(self), f"Got {len(actions)} solutions for {len(self)} instances.")
        objective = np.empty(len(self))
        padded = np.full((len(self), max(map(len, actions))), -1, dtype=np.int32)
        for index, sequence in enumerate(actions):
            verdict = self.kind.verify(self.instance(index), sequence)
            require(verdict.feasible, f"The solution of instance {index} is infeasible: {verdict.reason}.")
            objective[index] = verdict.objective
            padded[index, : len(sequence)] = sequence
        proved = np.zeros(len(self), dtype=bool) if optimal is None else np.asarray(optimal, dtype=bool)
        return replace(self, labels=Labels(padded, objective, proved, solver))

    def dataset(self, device: torch.device | str = "cpu") -> Dataset[Any]:
        """The labelled instances to learn from. Every solution is replayed: it must be allowed and worth what it says."""
        require(self.labels is not None, "These instances have no solutions. Add some with `gumbeldore label`.")
        assert self.labels is not None
        actions = torch.as_tensor(self.labels.actions, dtype=torch.int64)
        for start in range(0, len(self), CHUNK):
            rows = slice(start, start + CHUNK)
            _replay(self.kind.problem, self.state(rows=rows), actions[rows], torch.tensor(self.labels.objective[rows]), start)
        return Dataset([Group(self.state(device), actions.to(device))])

    @property
    def digest(self) -> str:
        """A hash of the instances (not of their labels)."""
        content = hashlib.sha256(self.kind.name.encode())
        for name, array in sorted(self.arrays.items()):
            content.update(f"{name} {array.dtype.str} {array.shape}".encode())
            content.update(np.ascontiguousarray(array).tobytes())
        return content.hexdigest()


def largest(sets: Iterable[InstanceSet]) -> dict[str, Any]:
    """The size of the largest instances in several sets, as settings of their problem."""
    biggest = max(sets, key=lambda given: sum(array[0].size for array in given.arrays.values()))
    return biggest.kind.size(biggest.arrays)


def _check_arrays(kind: InstanceSchema, arrays: Arrays) -> None:
    """Names, numbers of axes, sizes that must agree, and types."""
    for name in set(kind.axes) ^ set(arrays) - set(kind.optional):
        require(name in arrays, f"The array `{name}` is missing; {kind.name} instances consist of {', '.join(kind.axes)}.")
        require(name in kind.axes, f"Unknown array `{name}`; {kind.name} instances consist of {', '.join(kind.axes)}.")
    sizes: dict[str, int] = {}
    for name, axes in {**kind.axes, **kind.optional}.items():
        if name not in arrays:
            continue
        shape, wanted = arrays[name].shape, axes.split()
        fits = len(shape) == len(wanted)
        for axis, size in zip(wanted, shape, strict=False):
            fits = fits and size == (int(axis) if axis.isdigit() else sizes.setdefault(axis, size))
        require(fits, f"`{name}` must have the axes ({', '.join(wanted)}), the same in all arrays, got the shape {shape}.")
        allowed = "iu" if name in kind.integer else "iuf"
        require(
            arrays[name].dtype.kind in allowed,
            f"`{name}` must hold {'integers' if allowed == 'iu' else 'numbers'}, got {arrays[name].dtype}.",
        )
    require(sizes["instance"] >= 1, "There must be at least one instance, got none.")


def _check_labels(labels: Labels, count: int) -> None:
    """Shapes, types, padding only at the end, finite objectives."""
    actions, objective, optimal = labels.actions, labels.objective, labels.optimal
    require(isinstance(labels.solver, str), "`solver` must be a text.")
    require(
        actions.ndim == 2 and len(actions) == count and actions.dtype.kind == "i",
        f"`actions` must be integers with the axes (instance, depth) for {count} instances, got {actions.dtype} {actions.shape}.",
    )
    require(
        objective.shape == (count,) and objective.dtype.kind == "f" and bool(np.isfinite(objective).all()),
        f"`objective` must be {count} finite floating point numbers, got {objective.dtype} {objective.shape}.",
    )
    require(
        optimal.shape == (count,) and optimal.dtype.kind == "b",
        f"`optimal` must be {count} booleans, got {optimal.dtype} {optimal.shape}.",
    )
    used = actions >= 0
    proper = bool((actions >= -1).all()) and bool((used[:, :-1] >= used[:, 1:]).all()) and bool(used.any(1).all())
    require(proper, "`actions` must be at least 0, with -1 only after the end of a sequence.")


def _replay(
    problem: Problem[Any], state: Any, actions: Int[Tensor, "row depth"], objective: Float[Tensor, " row"], offset: int
) -> None:
    """Raises a `FormatError` unless every sequence is allowed, complete, and worth its objective."""

    def refuse(wrong: Bool[Tensor, " row"], reason: str) -> None:
        if bool(wrong.any()):
            raise FormatError(f"The solution of instance {offset + int(wrong.int().argmax())} {reason}. Label it anew.")

    for depth, action in enumerate(actions.unbind(1)):
        mask, done = problem.mask(state), problem.done(state)
        refuse((action < 0) & ~done, f"ends after {depth} actions, before it is complete")
        refuse((action >= 0) & done, f"goes on after {depth} actions, when it is complete")
        legal = mask.gather(1, action.clamp(0, mask.shape[1] - 1)[:, None]).squeeze(1) & (action < mask.shape[1])
        refuse(~done & ~legal, f"takes a forbidden action at position {depth}")
        state = problem.step(state, action.clamp(min=0))
    refuse(~problem.done(state), f"is not complete after its {actions.shape[1]} actions")
    gap = (problem.objective(state) - objective).abs()
    refuse(~(gap <= 1e-4 * objective.abs().clamp(min=1)), "is not worth the objective beside it")


def check_generator(*, seed: int, **counts: int) -> None:
    """Raises where a count is too small or a seed is none of numpy's."""
    for name, value in counts.items():
        least = 3 if name == "cities" else 1
        require(value >= least, f"`{name}` must be at least {least}, got {value}.")
    require(0 <= seed < 2**32, f"`seed` must lie in 0 .. 2^32 - 1, got {seed}.")


def row_arrays(state: State, row: int) -> dict[str, NDArray[Any]]:
    """The instance of a row of an initial state as plain arrays, for problems without files: all fields of the state."""
    one = state.rows(slice(row, row + 1)).compact()
    return {name: tensor[0].cpu().numpy() for name, tensor in one.tensors().items() if name != "instance"}
