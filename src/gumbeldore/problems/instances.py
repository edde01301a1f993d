"""Sets of instances, with or without expert solutions, and their files (docs/files.md). Reading executes nothing.

tests = read_instances("tsp100.npz")
solutions = Greedy()(TSP(), policy, tests.state(), generator=generator)
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gumbeldore.errors import FormatError, SettingsError, require
from gumbeldore.files import write_atomically
from gumbeldore.problem import Problem, State
from gumbeldore.problems.cvrp.problem import CVRP, LARGEST_DEMAND
from gumbeldore.problems.cvrp.verify import verify_cvrp
from gumbeldore.problems.jssp.problem import JSSP
from gumbeldore.problems.jssp.verify import verify_jssp
from gumbeldore.problems.tsp.problem import TSP
from gumbeldore.problems.tsp.verify import verify_tsp
from gumbeldore.problems.verdict import Verdict
from gumbeldore.training.dataset import Dataset

FORMAT = "gumbeldore-instances-1"
CHUNK = 10_000  # instances that are checked together
UNREADABLE = (ValueError, OSError, EOFError, LookupError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error)

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Kind:
    """What the instances of a problem consist of, and how a solution is checked."""

    name: str
    problem: Problem[Any]  # its `instances` takes data of any size
    axes: dict[str, str]  # the axes of each array; a number is a size, "node" and "customer" and so on must agree
    integer: frozenset[str]  # arrays that must hold integers
    state: Callable[[dict[str, Tensor]], Any]
    verify: Callable[[Arrays, Sequence[int]], Verdict]  # one instance and a sequence of actions
    size: Callable[[Arrays], dict[str, Any]]  # as settings of the problem


def _verify_tsp(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_tsp(instance["coordinates"], [0, *actions])


def _verify_cvrp(instance: Arrays, actions: Sequence[int]) -> Verdict:
    customers, via_depot = [action // 2 for action in actions], [action % 2 for action in actions]
    return verify_cvrp(instance["nodes"], instance["demands"], int(instance["capacity"]), customers, via_depot)


def _verify_jssp(instance: Arrays, actions: Sequence[int]) -> Verdict:
    return verify_jssp(instance["times"], instance["machines"], actions)


def _cvrp_size(given: Arrays) -> dict[str, Any]:
    low, high = (max(LARGEST_DEMAND, int(bound)) for bound in (given["capacity"].min(), given["capacity"].max()))
    return {"customers": given["nodes"].shape[1] - 1, "capacity": low if low == high else (low, high)}


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "tsp",
            TSP(),
            {"coordinates": "instance city 2"},
            frozenset(),
            lambda given: TSP().instances(given["coordinates"].float()),
            _verify_tsp,
            lambda given: {"cities": given["coordinates"].shape[1]},
        ),
        Kind(
            "cvrp",
            CVRP(),
            {"nodes": "instance node 2", "demands": "instance node", "capacity": "instance"},
            frozenset({"demands", "capacity"}),
            lambda given: CVRP().instances(given["nodes"].float(), given["demands"], given["capacity"]),
            _verify_cvrp,
            _cvrp_size,
        ),
        Kind(
            "jssp",
            JSSP(),
            {"times": "instance job machine", "machines": "instance job machine"},
            frozenset({"machines"}),
            lambda given: JSSP().instances(given["times"], given["machines"].long()),
            _verify_jssp,
            lambda given: {"jobs": given["times"].shape[1], "machines": given["times"].shape[2]},
        ),
    )
}


def kind_of(name: str) -> Kind:
    """The kind of instances of a problem that has files of them."""
    require(name in KINDS, f"There are no instance files for `{name}`, only for {', '.join(KINDS)}.")
    return KINDS[name]


@dataclass(frozen=True)
class Labels:
    """One solution per instance."""

    actions: Int[np.ndarray, "instance depth"]  # of the problem's `step`; -1 after the end
    objective: Float[np.ndarray, " instance"]  # larger is better: minus the length or the makespan
    optimal: Bool[np.ndarray, " instance"]  # whether that is proved
    solver: str  # who found them, and how


@dataclass(frozen=True)
class InstanceSet:
    """Instances of one problem and one size as plain arrays, checked when the set is made."""

    kind: Kind
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
        return Dataset([(self.state(device), actions.to(device))])

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


def write_instances(path: str | Path, instances: InstanceSet) -> None:
    """Writes the set into one .npz file, atomically."""
    path = Path(path)
    require(path.suffix == ".npz", f"A file of instances must end in .npz, got {path.name}.")
    content: dict[str, Any] = {"format": np.array(FORMAT), "problem": np.array(instances.kind.name), **instances.arrays}
    if instances.labels is not None:
        content |= {
            "actions": instances.labels.actions,
            "objective": instances.labels.objective,
            "optimal": instances.labels.optimal,
            "solver": np.array(instances.labels.solver),
        }

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as handle:
            np.savez(handle, **content)  # no objects: the types were checked

    write_atomically(path, write)


def read_instances(path: str | Path, problem: str | None = None) -> InstanceSet:
    """The set in a file written by `write_instances`, all of it checked. `problem` says which one is wanted."""
    content = _read_arrays(Path(path))
    if _text(content.pop("format", None)) != FORMAT:
        raise FormatError(
            f"{path} is not a file of instances of this library (format {FORMAT}). Make one with `gumbeldore generate`."
        )
    name = _text(content.pop("problem", None))
    if name not in KINDS or name != (problem or name):
        raise FormatError(
            f"{path} must hold instances of {problem or ' or '.join(KINDS)}, but says it holds those of {name!r}."
        )
    kind = KINDS[name]
    try:
        label_names = ("actions", "objective", "optimal", "solver")
        present = [label for label in label_names if label in content]
        require(
            len(present) in (0, 4), f"labels are {', '.join(label_names)}, all or none, but only {', '.join(present)} are there"
        )
        given = {label: content.pop(label) for label in present}
        labels = Labels(**{**given, "solver": _text(given["solver"])}) if given else None  # type: ignore[arg-type]
        instances = InstanceSet(kind, content, labels)
        for start in range(0, len(instances), CHUNK):
            instances.state(rows=slice(start, start + CHUNK))  # the problem's own checks
    except SettingsError as error:
        raise FormatError(f"{path} is not a valid file of {name} instances: {error}") from error
    return instances


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file; objects, which could execute code, are refused."""
    if not path.is_file():
        raise FormatError(f"There is no file of instances {path}. Make one with `gumbeldore generate`.")
    try:
        with open(path, "rb") as handle:
            file = np.load(handle, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            content = {name: file[name] for name in file.files}
    except UNREADABLE as error:
        raise FormatError(f"{path} cannot be read as an .npz file of plain arrays: {error}") from error
    for name, array in content.items():
        if not isinstance(array, np.ndarray):  # numpy hands out anything else as bytes
            raise FormatError(f"{path} cannot be read as an .npz file of plain arrays: `{name}` is none.")
    return content


def _text(array: NDArray[Any] | None) -> str | None:
    return str(array) if array is not None and array.shape == () and array.dtype.kind == "U" else None


def _check_arrays(kind: Kind, arrays: Arrays) -> None:
    """Names, numbers of axes, sizes that must agree, and types."""
    for name in set(kind.axes) ^ set(arrays):
        require(name in arrays, f"The array `{name}` is missing; {kind.name} instances consist of {', '.join(kind.axes)}.")
        require(name in kind.axes, f"Unknown array `{name}`; {kind.name} instances consist of {', '.join(kind.axes)}.")
    sizes: dict[str, int] = {}
    for name, axes in kind.axes.items():
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
